"""An entry of the audit log: the fields of a record that changed, secrets masked, bounded in size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from terrazzo.database.entity import COMPANY, Entity
from terrazzo.database.field import Field, FieldKind
from terrazzo.domain.actor import Actor
from terrazzo.userinfo import MASK, without_userinfo

MAX_VALUE_BYTES = 4_096  # of one field as JSON; a longer one is cut
MAX_ENTRY_BYTES = 32_768  # of ``before``, and of ``after``
SHOWN_CHARACTERS = 64  # of a longer value, where the entry as a whole would be too long

_EMPTY: tuple[Any, ...] = ("", [], {})
_HASH = "_hash"
_LINKS = ("lua_file", "mcu_file", "remosu_file", "file")  # what earlier versions told with user and password
RecordValues = Mapping[str, Any]
"""A record's fields, name to value."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What one actor did to one thing. ``before`` and ``after`` have the fields that changed only."""

    actor: Actor
    company_id: int | None  # whose it is: its administrators read it; None: a super user's business
    action: (
        str  # create | update | delete | command | login | login_refused | logout | kick | end_tokens | rotate | unlock
        # | mail_reset_code | reset_password | renew_recovery_codes | command_refused | run_missed | trace
        # | recall
    )
    entity: str
    record_id: int | None = None
    uid: str = ""
    before: RecordValues | None = None
    after: RecordValues | None = None


def about_user(actor: Actor, action: str) -> AuditEntry:
    """The entry of a user's own login, logout or the like; ``action`` as in ``AuditEntry``."""
    return AuditEntry(
        actor=actor,
        company_id=actor.company_id,
        action=action,
        entity="user",
        record_id=actor.user_id,
        uid=actor.username,
    )


def entry_of(
    actor: Actor, entity: Entity, before: RecordValues | None, after: RecordValues | None
) -> AuditEntry | None:
    """The entry of a record's creation, change or deletion; None where nothing was changed.

    Args:
        before: the row as it was, internal columns and clear secrets included; None at creation.
        after: the row as it is; None at deletion.
    """
    told = _told_of(entity)
    was, becomes = _shown(told, before), _shown(told, after)
    if was and becomes:
        changed = [name for name in {**was, **becomes} if was.get(name) != becomes.get(name)]
    else:
        changed = [*was, *becomes]
    row = after or before
    if row is None or not changed:
        return None
    return AuditEntry(
        actor=actor,
        company_id=row[entity.company],
        action="create" if before is None else "delete" if after is None else "update",
        entity=entity.name,
        record_id=row["id"],
        uid=str(row[entity.uid_name]),
        before=_masked({name: was[name] for name in changed if name in was}, told.masked, told.links) or None,
        after=_masked({name: becomes[name] for name in changed if name in becomes}, told.masked, told.links) or None,
    )


def masked_values(values: RecordValues | None, columns: Collection[str]) -> dict[str, Any] | None:
    """The values of an entry, with ``columns`` masked: an older version told some that are secret now."""
    return None if values is None else _masked(dict(values), set(columns), _LINKS)


def secret_columns(entities: Iterable[Entity]) -> dict[str, frozenset[str]]:
    """The columns of secrets of each entity, by its name."""
    return {
        entity.name: frozenset(_name(field) for field in entity.fields.values() if _is_secret(field))
        for entity in entities
    }


def encode_values(values: RecordValues | None) -> str | None:
    """JSON text of at most ``MAX_ENTRY_BYTES``; a value that is too long is replaced by its beginning."""
    if values is None:
        return None
    encoded = msgspec.json.encode({name: _cut(value, MAX_VALUE_BYTES) for name, value in values.items()})
    if len(encoded) > MAX_ENTRY_BYTES:
        encoded = msgspec.json.encode({name: _cut(value, SHOWN_CHARACTERS) for name, value in values.items()})
    return encoded.decode()


def _is_told(field: Field) -> bool:
    """Whether entries show the field: not times and the last author; of internal ones only password hashes."""
    if field.internal:
        return field.name.endswith(_HASH)
    return field.kind is not FieldKind.TIME and field.name not in ("last_modified_by", "last_modified")


def _is_secret(field: Field) -> bool:
    return field.kind is FieldKind.SECRET or field.internal


def _name(field: Field) -> str:
    return field.name.removesuffix(_HASH)


class _Told(NamedTuple):
    """What entries show of an entity's records: the same for each of them."""

    names: list[tuple[str, str, str]]  # a column, where the row has its value, and the name that the entry tells
    masked: frozenset[str]
    links: frozenset[str]


@cache
def _told_of(entity: Entity) -> _Told:
    fields = [field for field in entity.fields.values() if _is_told(field)]
    names = [(field.name, _shown_as(field), _name(field)) for field in fields]
    masked = frozenset(_name(field) for field in fields if _is_secret(field))
    return _Told(names, masked, frozenset(field.name for field in fields if field.is_link))


def _shown_as(field: Field) -> str:
    """The column of a row that has what is told: references by uid, as in the API."""
    is_by_uid = field.kind is FieldKind.REFERENCE and field.name != COMPANY
    return f"{field.name.removesuffix('_id')}_uid" if is_by_uid else field.name


def _shown(told: _Told, row: RecordValues | None) -> dict[str, Any]:
    """A record's fields that are not empty."""
    if row is None:
        return {}
    shown = {}
    for column, where, name in told.names:
        value = row[where] if where in row else row.get(column)
        if value or (value is not None and value not in _EMPTY):
            shown[name] = value
    return shown


def _masked(values: dict[str, Any], masked: Collection[str], links: Collection[str]) -> dict[str, Any]:
    if not values:
        return values
    shown = {name: MASK if name in masked else value for name, value in values.items()}
    return shown | {name: without_userinfo(shown[name]) for name in links if isinstance(shown.get(name), str)}


def _cut(value: Any, most: int) -> Any:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text.encode()) <= most:
        return value
    return f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"
