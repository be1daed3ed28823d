"""The five actions of a stored entity, made from its definition: an entity costs what is special about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.access.actor import Actor, Role
from terrazzo.api.fields import Flag, Json, Key
from terrazzo.api.operation import Operation
from terrazzo.api.paging import PageRequest
from terrazzo.api.services import Services
from terrazzo.metadata.entity import COMPANY, Entity
from terrazzo.metadata.field import Field, Kind
from terrazzo.metadata.port import EVERYTHING, Conditions, Repository, Row
from terrazzo.times import format_spaced

MASK = "******"  # stands for a secret that the user may not see


class Created(msgspec.Struct):
    """The new record's two keys."""

    id: int
    uid: str


class Changed(msgspec.Struct):
    """The record that was changed or deleted."""

    uid: str


class ByUid(msgspec.Struct, kw_only=True):
    """Which record."""

    uid: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityActions:
    """An entity's name in the API, and in what its actions differ from the others'."""

    name: str
    title: str
    entity: Entity
    repository: Callable[[Services], Repository]
    required: frozenset[str]  # besides what the definition requires
    constants: Mapping[str, Any] = field(default_factory=dict)  # fields that read the same in every record
    list_request: type[PageRequest] = PageRequest
    conditions: Callable[[Any], Conditions] = lambda request: EVERYTHING

    def operations(self) -> Iterable[Operation]:
        """Its rows in the table."""
        record = self._record_type()
        rows = (
            ("create", "Creates a", self._create_type(), Created, Role.ADMIN, self.handle_create),
            ("update", "Changes the given fields of a", self._update_type(), Changed, Role.ADMIN, self.handle_update),
            ("delete", "Deletes a", ByUid, Changed, Role.ADMIN, self.handle_delete),
            ("item", "One", ByUid, record, Role.VIEWER, self.handle_get_item),
            ("list", "A page of the", self.list_request, list[record], Role.VIEWER, self.handle_get_list),  # type: ignore[valid-type]
        )
        for verb, words, request, result, permission, handler in rows:
            yield Operation(
                name=f"get_{self.name}_{verb}" if verb in ("item", "list") else f"{verb}_{self.name}",
                summary=f"{words} {self.title}" + ("s" if verb == "list" else ""),
                request=request,
                result=result,
                permission=permission,
                handler=handler,
            )

    async def handle_create(self, services: Services, actor: Actor, request: msgspec.Struct) -> Created:
        """Adds a record."""
        row = await self.repository(services).create(actor, _given(request))
        return Created(row["id"], row[self.entity.uid_name])

    async def handle_update(self, services: Services, actor: Actor, request: msgspec.Struct) -> Changed:
        """Changes the given fields."""
        values = _given(request)
        row = await self.repository(services).update(actor, values.pop("uid"), values)
        return Changed(row[self.entity.uid_name])

    async def handle_delete(self, services: Services, actor: Actor, request: ByUid) -> Changed:
        """Deletes a record."""
        row = await self.repository(services).delete(actor, request.uid)
        return Changed(row[self.entity.uid_name])

    async def handle_get_item(self, services: Services, actor: Actor, request: ByUid) -> dict[str, Any]:
        """One record."""
        return self._present(services, actor, await self.repository(services).item(actor, request.uid))

    async def handle_get_list(self, services: Services, actor: Actor, request: PageRequest) -> list[dict[str, Any]]:
        """A page of records, as a bare array."""
        rows = await self.repository(services).page(
            actor,
            page_index=request.page_index,
            page_size=request.page_size,
            conditions=self.conditions(request),
        )
        return [self._present(services, actor, row) for row in rows.rows]

    def _present(self, services: Services, actor: Actor, row: Row) -> dict[str, Any]:
        record: dict[str, Any] = {"id": row["id"]}
        for field_ in _shown(self.entity):
            name = field_.name
            match field_.kind:
                case Kind.TIME:
                    record[name] = "" if row[name] is None else format_spaced(row[name], services.zone)
                case Kind.SECRET:
                    record[name] = row[name] if actor.may(Role.ADMIN) or not row[name] else MASK
                case Kind.REFERENCE:
                    record[name] = str(row[name]) if name == COMPANY else row[f"{name.removesuffix('_id')}_uid"]
                case _:
                    record[name] = row[name]
        record.update(self.constants)
        return record

    def _create_type(self) -> type[msgspec.Struct]:
        company = (COMPANY, Key | None | UnsetType, UNSET)  # a super user's choice
        return _struct(f"create_{self.name}", f"A new {self.title}.", [*self._fields_written(), company])

    def _update_type(self) -> type[msgspec.Struct]:
        columns = [column for column in self._fields_written() if column[0] != "uid"]
        return _struct(f"update_{self.name}", f"Changes of a {self.title}.", [("uid", Key), *columns])

    def _fields_written(self) -> list[tuple[Any, ...]]:
        """Required ones first, as in the documents."""
        columns = [field_ for field_ in self.entity.writable() if field_.name != COMPANY]
        required = [field_ for field_ in columns if field_.required or field_.name in self.required]
        return [(field_.name, _written_type(field_)) for field_ in required] + [
            (field_.name, _written_type(field_) | None | UnsetType, UNSET)
            for field_ in columns
            if field_ not in required
        ]

    def _record_type(self) -> type[msgspec.Struct]:
        columns = [("id", int), *((field_.name, _read_type(field_)) for field_ in _shown(self.entity))]
        constants = [(name, type(value)) for name, value in self.constants.items()]
        return _struct(f"{self.name}_record", f"A {self.title}.", [*columns, *constants])


def _struct(name: str, summary: str, columns: list[Any]) -> type[msgspec.Struct]:
    title = "".join(word.capitalize() for word in name.split("_"))
    return msgspec.defstruct(title, columns, kw_only=True, namespace={"__doc__": summary}, module=__name__)


def _shown(entity: Entity) -> list[Field]:
    return [field_ for field_ in entity.fields.values() if not field_.internal]


def _written_type(field_: Field) -> Any:
    match field_.kind:
        case Kind.INTEGER:
            return Annotated[int, Meta(ge=field_.minimum, le=field_.maximum)]
        case Kind.FLAG:
            return Flag
        case Kind.JSON:
            return Json
        case Kind.REFERENCE:
            return Key
    shape = Meta(min_length=1 if field_.required else None, max_length=field_.max_length)
    return Annotated[str, shape, Meta(description=" or ".join(field_.choices) or None)]


def _read_type(field_: Field) -> Any:
    match field_.kind:
        case Kind.INTEGER | Kind.FLAG:
            return int
        case Kind.JSON:
            return dict[str, Any] | list[Any] | None
        case Kind.REFERENCE:
            return str | None
    return str


def _given(request: msgspec.Struct) -> dict[str, Any]:
    """The columns that the client sent; null counts as not sent."""
    values = {name: getattr(request, name) for name in request.__struct_fields__}
    return {
        name: value.value if isinstance(value, Json) else value
        for name, value in values.items()
        if value is not UNSET and value is not None
    }
