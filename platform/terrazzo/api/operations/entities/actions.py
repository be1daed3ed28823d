"""The five actions of a stored entity, made from its definition: an entity costs what is special about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import Enum
from typing import Any

import msgspec

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import CountedList, Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.records import RecordView
from terrazzo.api.operations.entities.types import (
    IF_VERSION,
    ByUid,
    create_type,
    given,
    key_type,
    record_type,
    take_key,
    update_type,
)
from terrazzo.database.entity import Entity
from terrazzo.database.port import Conditions, Repository, Row, Rows
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.versions import version_of
from terrazzo.times import format_spaced

Extend = Callable[[Services, Any, Sequence[Row]], Awaitable[Sequence[Mapping[str, Any]]]]
"""``extend(services, request, rows)``: for each row the columns that no table has."""


ReadPage = Callable[[Services, Actor, Any], Awaitable[Rows]]
"""``read_page(services, actor, request)``: the rows of a page, and how many there are in all."""


class Created(msgspec.Struct):
    """The new record's two keys."""

    id: int
    uid: str


class Changed(msgspec.Struct):
    """The record that was changed or deleted."""

    uid: str


class ChangedVersion(Changed):
    """The record that was changed, and its version since."""

    version: str


class Says(Enum):
    """What the answer to a change tells of the record."""

    UID = "uid"
    RECORD = "record"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityActions:
    """The names of an entity's five actions, and in what they differ from the others'."""

    title: str
    name: str  # of the entity in the names of its schemas, ``TerminalRecord``
    create: str  # the five actions
    update: str
    delete: str
    get_item: str
    get_list: str
    entity: Entity
    repository: Callable[[Services], Any]  # a Repository
    required: frozenset[str] = frozenset()  # at creation, besides what the definition requires
    required_to_update: frozenset[str] = frozenset()  # besides the key; ``id``: must be given and be the record's
    keys: tuple[str, ...] = ("uid", "id")  # what names a record; the first one that is given counts
    written: Mapping[str, Any] = field(default_factory=dict)  # columns that a client sends and no record shows
    readers: Role = Role.VIEWER
    is_paged: bool = True  # False: a list is a bare array
    says: Says = Says.UID
    has_version: bool = (
        False  # its records (which say ``Says.UID``) tell their version, and a change may be made of that version only
    )
    format_time: Callable[[int, tzinfo], str] = format_spaced
    more: Mapping[str, Any] = field(default_factory=dict)  # columns that no table has, with their types
    extend: Extend | None = None  # fills them
    extend_one: Callable[[Services, Row], Mapping[str, Any]] | None = None  # fills them of each row, without waiting
    item_request: type[msgspec.Struct] | None = None
    list_request: type[ListRequest] = ListRequest
    conditions: Callable[[Any], Conditions] = conditions_of
    read_page: ReadPage | None = None  # None: from the repository
    _view: RecordView = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_view", RecordView(self.entity, self.format_time))

    def operations(self) -> Iterable[Operation]:
        """The rows of its five actions."""
        name, title, entity = self.name, self.title, self.entity
        record = record_type(name, title, entity, {**self.more, **({"version": str} if self.has_version else {})})
        key, more = key_type(name, self.keys), [*self.written.items()]
        create = create_type(name, title, entity, self.required, more)
        update = update_type(
            name, title, entity, self.required_to_update, more, self.keys, has_version=self.has_version
        )
        changed = {Says.UID: Changed, Says.RECORD: record, Says.NOTHING: Empty}[self.says]
        updated = ChangedVersion if self.has_version else changed
        page = Paged[record] if self.is_paged else list[record]  # type: ignore[valid-type]
        admin, readers = Role.ADMIN, self.readers
        for action, summary, request, result, permission, handler in (
            (self.create, f"Creates a {title}", create, Created, admin, self.handle_create),
            (self.update, f"Changes the given fields of a {title}", update, updated, admin, self.handle_update),
            (self.delete, f"Deletes a {title}", key, changed, admin, self.handle_delete),
            (self.get_item, f"One {title}", self.item_request or key, record, readers, self.handle_get_item),
            (self.get_list, f"A page of the {plural(title)}", self.list_request, page, readers, self.handle_get_list),
        ):
            yield Operation(
                name=action,
                summary=summary,
                request=request,
                result=result,
                permission=permission,
                handler=handler,
            )

    async def handle_create(self, services: Services, actor: Actor, request: msgspec.Struct) -> Created:
        """Adds a record to the actor's company.

        Raises:
            BadParameter: a value that a column can't have.
            Conflict: a value that another record has already.
        """
        row = await self.repository(services).create(actor, given(request))
        return Created(row["id"], row[self.entity.uid_name])

    async def handle_update(self, services: Services, actor: Actor, request: msgspec.Struct) -> Any:
        """Changes the given columns of a record; what is not given stays as it is.

        Raises:
            Conflict: it is another version than the one that was read.
        """
        values = given(request)
        key, version = take_key(values, self.keys), {}
        if self.has_version:
            version = {"version": values.pop(IF_VERSION, None)}
        row = await self.repository(services).update(actor, key, values, **version)
        if self.has_version:
            return ChangedVersion(row[self.entity.uid_name], version_of(self.entity, row))
        return await self._say(services, actor, request, row)

    async def handle_delete(self, services: Services, actor: Actor, request: msgspec.Struct) -> Any:
        """Deletes a record that no other names."""
        key = take_key(given(request), self.keys)
        return await self._say(services, actor, request, await self.repository(services).delete(actor, key))

    async def handle_get_item(self, services: Services, actor: Actor, request: msgspec.Struct) -> dict[str, Any]:
        """One record of the actor's company."""
        key = request.uid if isinstance(request, ByUid) else take_key(given(request), self.keys)
        row = await self.repository(services).item(actor, key)
        return (await self._present(services, actor, request, [row]))[0]

    async def handle_get_list(self, services: Services, actor: Actor, request: ListRequest) -> Any:
        """A page of records, or a bare array of them where the entity isn't paged."""
        rows = await (self.read_page or self._read_page)(services, actor, request)
        records = await self._present(services, actor, request, rows.rows)
        return paged(request, records, rows.total) if self.is_paged else CountedList(records, rows.total)

    async def _read_page(self, services: Services, actor: Actor, request: ListRequest) -> Rows:
        repository: Repository = self.repository(services)
        return await repository.page(
            actor,
            page_index=request.page_index,
            page_size=request.page_size,
            conditions=self.conditions(request),
            order_by=request.order_by.by,
        )

    async def _say(self, services: Services, actor: Actor, request: Any, row: Row) -> Any:
        match self.says:
            case Says.UID:
                return Changed(row[self.entity.uid_name])
            case Says.RECORD:
                return (await self._present(services, actor, request, [row]))[0]
        return Empty()

    async def _present(
        self, services: Services, actor: Actor, request: Any, rows: Sequence[Row]
    ) -> list[dict[str, Any]]:
        records = self._view.records(services.zone, actor, rows)
        if self.extend_one is not None:
            for record, row in zip(records, rows, strict=True):
                record.update(self.extend_one(services, row))
        elif self.extend is not None:
            for record, more in zip(records, await self.extend(services, request, rows), strict=True):
                record.update(more)
        if self.has_version:
            for record, row in zip(records, rows, strict=True):
                record["version"] = version_of(self.entity, row)
        return records


def plural(title: str) -> str:
    """The plural of an entity's title, such as ``companies``."""
    return f"{title[:-1]}ies" if title.endswith("y") else f"{title}s"
