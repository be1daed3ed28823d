"""The five paths of a stored entity, made from its definition: an entity costs what is special about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from msgspec import UnsetType

from terrazzo.api.kernel.component_path import ComponentPath, as_it_is, nothing
from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Handler, Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import plural
from terrazzo.api.operations.entities.types import given, struct_of
from terrazzo.api.operations.session import Empty
from terrazzo.api.paths.entity_form import Form
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotFound
from terrazzo.metadata.lookup import as_id

Extend = Callable[[Services, Sequence[Row]], Any]
"""``await extend(services, rows)``: for each row the columns that no table has."""


class EntityById(msgspec.Struct, kw_only=True):
    """Which record."""

    id: Key


@dataclass(frozen=True, kw_only=True)
class EntityPaths:
    """An entity's place among the components, and in what it differs from the others there."""

    name: str  # the segment before the verb
    title: str
    base: str
    form: Form
    repository: Callable[[Services], Any]  # a Repository
    writers: Role = Role.ADMIN
    more: Mapping[str, Any] = field(default_factory=dict)  # columns that no table has, with their types
    extend: Extend | None = None  # fills them

    @cached_property
    def record_type(self) -> Any:
        """The Struct of a record."""
        columns = self.form.record_type(f"component_{self.name}", f"A {self.title}.")
        if not self.more:
            return columns
        of = [(each.name, each.type) for each in msgspec.structs.fields(columns)]
        return struct_of(f"component_{self.name}", f"A {self.title}.", [*of, *self.more.items()])

    def paths(self) -> Iterable[ComponentPath]:
        """``add``, ``edit``, ``delete``, ``getItem`` and ``getList``."""
        add = self.form.request(f"add_{self.name}", f"A new {self.title}.", required=True)
        edit = self.form.request(f"edit_{self.name}", f"Changes of a {self.title}.", ("id", Key), required=False)
        yield self.change("add", f"Creates a {self.title}", add, self.handle_add)
        yield self.change("edit", f"Changes the given fields of a {self.title}", edit, self.handle_edit)
        yield self.change("delete", f"Deletes a {self.title}", EntityById, self.handle_delete)
        yield self.read("getItem", f"One {self.title}", EntityById, self.record_type, self.handle_get_item)
        page = Paged[self.record_type]  # type: ignore[name-defined]
        yield self.read("getList", f"A page of the {plural(self.title)}", ListRequest, page, self.handle_get_list)

    def change(self, verb: str, summary: str, request: Any, handler: Handler) -> ComponentPath:
        """A path that changes something."""
        operation = Operation(
            name=f"{self.name}/{verb}",
            summary=summary,
            request=request,
            result=Empty,
            permission=self.writers,
            handler=handler,
        )
        return self._path(operation, "POST", UnsetType, nothing)

    def read(self, verb: str, summary: str, request: Any, result: Any, handler: Handler) -> ComponentPath:
        """A path that changes nothing."""
        operation = Operation(
            name=f"{self.name}/{verb}",
            summary=summary,
            request=request,
            result=result,
            permission=Role.VIEWER,
            handler=handler,
        )
        return self._path(operation, "GET", result, as_it_is)

    def _path(self, operation: Operation, method: str, result: Any, shape: Callable[[Any], Any]) -> ComponentPath:
        path = f"/api/v1/{operation.name}"
        return ComponentPath(base=self.base, path=path, operation=operation, method=method, result=result, shape=shape)

    async def handle_add(self, services: Services, actor: Actor, request: msgspec.Struct) -> Empty:
        """Adds a record."""
        with self.form.errors():
            await self.repository(services).create(actor, self.form.values(given(request)))
        return Empty()

    async def handle_edit(self, services: Services, actor: Actor, request: msgspec.Struct) -> Empty:
        """Changes the given fields."""
        values = given(request)
        key = number_of(values.pop("id"))
        with self.form.errors(), naming(key):
            await self.repository(services).update(actor, key, self.form.values(values))
        return Empty()

    async def handle_delete(self, services: Services, actor: Actor, request: EntityById) -> Empty:
        """Deletes a record."""
        key = number_of(request.id)
        with naming(key):
            await self.repository(services).delete(actor, key)
        return Empty()

    async def handle_get_item(self, services: Services, actor: Actor, request: EntityById) -> dict[str, Any]:
        """One record."""
        key = number_of(request.id)
        with naming(key):
            row = await self.repository(services).item(actor, key)
        return (await self.present(services, actor, [row]))[0]

    async def handle_get_list(self, services: Services, actor: Actor, request: ListRequest) -> Any:
        """A page of records."""
        with self.form.errors():
            rows = await self.repository(services).page(
                actor,
                page_index=request.page_index,
                page_size=request.page_size,
                conditions=self.form.conditions(conditions_of(request)),
                order_by=self.form.order(request.order_by.by),
            )
        return paged(request, await self.present(services, actor, rows.rows), rows.total)

    async def present(self, services: Services, actor: Actor, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Records as this actor sees them."""
        records = [self.form.record(row, actor, services.zone) for row in rows]
        if self.extend is not None:
            for record, more in zip(records, await self.extend(services, rows), strict=True):
                record.update(more)
        return records


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
