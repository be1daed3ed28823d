"""The five paths of a stored entity, made from its definition: an entity costs what is special about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from msgspec import UnsetType

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Handler, Operation, nothing
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import plural
from terrazzo.api.operations.entities.types import given, struct_of
from terrazzo.api.paths.component_columns import ComponentColumns
from terrazzo.database.pages import OrderBy
from terrazzo.database.port import Conditions, Row, Rows
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotFound
from terrazzo.metadata.lookup import as_id

ExtendRows = Callable[[Services, Sequence[Row]], Any]
"""``await extend(services, rows)``: for each row the columns that no table has."""


class EntityById(msgspec.Struct, kw_only=True):
    """Which record."""

    id: Key


ReadPage = Callable[[Services, Actor, Any, Conditions, OrderBy], Awaitable[Rows]]
"""``read_page(services, actor, request, conditions, order_by)``: the rows of a page, and how many there are in all."""


@dataclass(frozen=True, kw_only=True)
class EntityPaths:
    """An entity's place among the components, and in what it differs from the others there."""

    title: str
    name: str  # of the entity in the names of its schemas, ``AddTerminal``
    add: str  # the five paths, with the default prefix
    edit: str
    delete: str
    get_item: str
    get_list: str
    columns: ComponentColumns
    repository: Callable[[Services], Any]  # a Repository
    writers: Role = Role.ADMIN
    more: Mapping[str, Any] = field(default_factory=dict)  # columns that no table has, with their types
    extend: ExtendRows | None = None  # fills them
    list_request: type[ListRequest] = ListRequest
    read_page: ReadPage | None = None  # of conditions and order with the names of columns; None: from the repository

    @cached_property
    def record_type(self) -> Any:
        """The Struct of a record: the component's columns, and those of ``more``."""
        known = self.columns.record_type(f"component_{self.name}", f"A {self.title}.")
        if not self.more:
            return known
        of = [(each.name, each.type) for each in msgspec.structs.fields(known)]
        return struct_of(f"component_{self.name}", f"A {self.title}.", [*of, *self.more.items()])

    def paths(self) -> Iterable[Operation]:
        """The rows of the five paths."""
        title = self.title
        add = self.columns.request(f"add_{self.name}", f"A new {title}.", required=True)
        edit = self.columns.request(f"edit_{self.name}", f"Changes of a {title}.", ("id", Key), required=False)
        page = Paged[self.record_type]  # type: ignore[name-defined]
        yield self.change(self.add, f"Creates a {title}", add, self.handle_add)
        yield self.change(self.edit, f"Changes the given fields of a {title}", edit, self.handle_edit)
        yield self.change(self.delete, f"Deletes a {title}", EntityById, self.handle_delete)
        yield self.read(self.get_item, f"One {title}", EntityById, self.record_type, self.handle_get_item)
        yield self.read(self.get_list, f"A page of the {plural(title)}", self.list_request, page, self.handle_get_list)

    def change(self, path: str, summary: str, request: Any, handler: Handler) -> Operation:
        """The row of a path that changes something: POST, for ``writers``, without a result."""
        return Operation(
            name=operation_name(path),
            summary=summary,
            request=request,
            result=UnsetType,
            permission=self.writers,
            handler=handler,
            method="POST",
            path=path,
            shape=nothing,
        )

    def read(self, path: str, summary: str, request: Any, result: Any, handler: Handler) -> Operation:
        """The row of a path that changes nothing: GET, for everybody who has a token."""
        return Operation(
            name=operation_name(path),
            summary=summary,
            request=request,
            result=result,
            permission=Role.VIEWER,
            handler=handler,
            method="GET",
            path=path,
        )

    async def handle_add(self, services: Services, actor: Actor, request: msgspec.Struct) -> Empty:
        """Adds a record to the actor's company; errors name fields as the component does."""
        with self.columns.errors():
            await self.repository(services).create(actor, self.columns.values(given(request)))
        return Empty()

    async def handle_edit(self, services: Services, actor: Actor, request: msgspec.Struct) -> Empty:
        """Changes the given columns of a record; what is not given stays as it is."""
        values = given(request)
        key = number_of(values.pop("id"))
        with self.columns.errors(), naming(key):
            await self.repository(services).update(actor, key, self.columns.values(values))
        return Empty()

    async def handle_delete(self, services: Services, actor: Actor, request: EntityById) -> Empty:
        """Deletes a record that no other names."""
        key = number_of(request.id)
        with naming(key):
            await self.repository(services).delete(actor, key)
        return Empty()

    async def handle_get_item(self, services: Services, actor: Actor, request: EntityById) -> dict[str, Any]:
        """One record of the actor's company."""
        key = number_of(request.id)
        with naming(key):
            row = await self.repository(services).item(actor, key)
        return (await self.present(services, actor, [row]))[0]

    async def handle_get_list(self, services: Services, actor: Actor, request: ListRequest) -> Any:
        """A page of records."""
        conditions = self.columns.conditions(conditions_of(request))
        order_by = self.columns.order(request.order_by.by)
        with self.columns.errors():
            rows = await (self.read_page or self._read_page)(services, actor, request, conditions, order_by)
        return paged(request, await self.present(services, actor, rows.rows), rows.total)

    async def _read_page(
        self, services: Services, actor: Actor, request: ListRequest, conditions: Conditions, order_by: OrderBy
    ) -> Rows:
        rows: Rows = await self.repository(services).page(
            actor,
            page_index=request.page_index,
            page_size=request.page_size,
            conditions=conditions,
            order_by=order_by,
        )
        return rows

    async def present(self, services: Services, actor: Actor, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Rows as the component shows them to this actor."""
        records = [self.columns.record(row, actor, services.zone) for row in rows]
        if self.extend is not None:
            for record, more in zip(records, await self.extend(services, rows), strict=True):
                record.update(more)
        return records


def operation_name(path: str) -> str:
    """What of a path names its operation in metrics: ``terminal/add`` of ``/object/api/v1/terminal/add``."""
    return path.partition("/api/v1/")[2]


@contextmanager
def naming(key: int | str) -> Iterator[None]:
    """A record that isn't there is named by ``id``, whatever it was looked for by."""
    try:
        yield
    except NotFound as error:
        if error.field == "id":
            raise
        raise NotFound("id", key) from None


def number_of(key: int | str) -> int | str:
    """A record's number where the text is one; else its uid."""
    number = as_id(key)
    return key if number is None else number
