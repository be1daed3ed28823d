"""The Structs of an entity's actions, made from its definition."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.api.kernel.fields import Flag, Json, Key, KeyList, KeyOrNone
from terrazzo.database.entity import COMPANY, Entity
from terrazzo.database.field import Field, FieldKind
from terrazzo.errors import BadParameter
from terrazzo.reasons import say

StructColumn = tuple[Any, ...]
"""A field of a Struct that is made here: name, type and, where it may be left out, default."""


IF_VERSION = "if_version"
IfVersion = Annotated[
    str,
    Meta(
        max_length=64,
        description="the `version` that was read: the change is refused (`changed_since_read`) where it is another now",
    ),
]


class ByUid(msgspec.Struct, kw_only=True):
    """Which record."""

    uid: Key


@cache
def key_type(name: str, keys: tuple[str, ...]) -> type[msgspec.Struct]:
    """A request that names a record by the first of ``keys`` that it has."""
    return ByUid if keys == ByUid.__struct_fields__ else struct_of(f"{name}_key", "Which record.", _keys(keys))


def create_type(name: str, title: str, entity: Entity, required: Collection[str], more: Iterable[StructColumn]) -> Any:
    """The Struct of a request that creates a record; ``more`` are columns that no record shows."""
    company = (COMPANY, Key | None | UnsetType, UNSET)  # a super user's choice
    required = {*required, *(field.name for field in entity.writable() if field.required)}
    return struct_of(f"create_{name}", f"A new {title}.", [*more, *written_columns(entity, required), company])


def update_type(
    name: str,
    title: str,
    entity: Entity,
    required: Collection[str],
    more: Iterable[StructColumn],
    keys: tuple[str, ...],
    *,
    has_version: bool = False,
) -> Any:
    """The Struct of a request that changes a record; ``more`` are columns that no record shows."""
    columns = [column for column in written_columns(entity, required) if column[0] not in (*keys, entity.uid_name)]
    number = [("id", Key)] if "id" in required else []
    optional = [(column, of | None | UnsetType, UNSET) for column, of, *_ in more]
    version = [(IF_VERSION, IfVersion | None | UnsetType, UNSET)] if has_version else []
    return struct_of(f"update_{name}", f"Changes of a {title}.", [*_keys(keys), *number, *columns, *optional, *version])


def record_type(name: str, title: str, entity: Entity, more: Mapping[str, Any]) -> Any:
    """A record as clients see it; ``more`` are columns that no table has."""
    columns = [("id", int), *((field.name, read_type(field)) for field in shown(entity)), *more.items()]
    return struct_of(f"{name}_record", f"A {title}.", columns)


def shown(entity: Entity) -> list[Field]:
    """The columns that leave the platform."""
    return [field for field in entity.fields.values() if not field.internal]


def take_key(values: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """Takes what names the record out of the values that a client sent.

    Raises:
        BadParameter: nothing does.
    """
    given = [values.pop(key) for key in keys if key in values]
    if not given:
        raise BadParameter(keys[0], say("is_required"))
    return given[0]


def given(request: msgspec.Struct) -> dict[str, Any]:
    """The columns that the client sent; null counts as not sent."""
    values = {name: getattr(request, name) for name in request.__struct_fields__}
    return {
        name: value.value if isinstance(value, Json) else value
        for name, value in values.items()
        if value is not UNSET and value is not None
    }


def struct_of(name: str, summary: str, columns: list[Any]) -> type[msgspec.Struct]:
    """A Struct of columns; ``name`` is in snake case."""
    title = "".join(word.capitalize() for word in name.split("_"))
    return msgspec.defstruct(title, columns, kw_only=True, namespace={"__doc__": summary}, module=__name__)


def _keys(keys: tuple[str, ...]) -> list[StructColumn]:
    return [(key, Key) if len(keys) == 1 else (key, Key | None | UnsetType, UNSET) for key in keys]


def written_columns(entity: Entity, required: Collection[str]) -> list[StructColumn]:
    """The columns that requests may have, without the company; required ones first, as in the documents."""
    columns = [field for field in entity.writable() if field.name != COMPANY]
    first = [(field.name, written_type(field)) for field in columns if field.name in required]
    optional = [field for field in columns if field.name not in required]
    return [*first, *((field.name, written_type(field) | None | UnsetType, UNSET) for field in optional)]


def written_type(field: Field) -> Any:
    """The type of a column in requests."""
    match field.kind:
        case FieldKind.INTEGER:
            return Annotated[int, Meta(ge=field.minimum, le=field.maximum)]
        case FieldKind.FLAG:
            return Flag
        case FieldKind.JSON:
            return Json if field.read is None else KeyList
        case FieldKind.REFERENCE:
            return Key if field.required else KeyOrNone
    shape = Meta(min_length=1 if field.required else None, max_length=field.max_length)
    return Annotated[str, shape, Meta(description=" or ".join(field.choices) or None)]


def read_type(field: Field) -> Any:
    """The type of a column in records."""
    match field.kind:
        case FieldKind.INTEGER | FieldKind.FLAG:
            return int | None if field.default is None and not field.required else int
        case FieldKind.JSON:
            return dict[str, Any] | list[Any] | None if field.unset is None else dict[str, Any] | list[Any]
        case FieldKind.REFERENCE:
            return str | None
    return str
