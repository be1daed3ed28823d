"""How a component writes and reads an entity's columns, where it isn't as the gateway does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from terrazzo.api.kernel.fields import Flag
from terrazzo.api.operations.entities.types import read_type, struct_of, written_type
from terrazzo.database.entity import COMPANY, Entity
from terrazzo.database.field import Field, FieldKind
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, Conflict
from terrazzo.reasons import Said
from terrazzo.times import format_spaced
from terrazzo.userinfo import MASK, without_userinfo


class ColumnShape(NamedTuple):
    """How records of a component show a column: the type, and what makes it of the stored value."""

    type: Any
    make: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class ComponentColumns:
    """An entity's columns as one component has them."""

    entity: Entity
    hidden: Collection[str] = ()  # columns that the component doesn't have, besides the uid and the owner
    names: Mapping[str, str] = field(default_factory=dict)  # column -> its name here
    shapes: Mapping[str, ColumnShape] = field(default_factory=dict)  # by column
    booleans: Collection[str] = ()  # flags that are true and false here
    format_time: Callable[[int, tzinfo], str] = format_spaced

    @cached_property
    def shown(self) -> list[Field]:
        """The columns that a record has, besides its id."""
        kept = {self.entity.uid_name} if self.entity.uid_name in self.names else set()
        hidden = {self.entity.uid_name, COMPANY, *self.hidden} - kept
        return [each for each in self.entity.fields.values() if not each.internal and each.name not in hidden]

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """Names here to columns, where they differ."""
        return {name: column for column, name in self.names.items()}

    def name(self, column: str) -> str:
        """What the component calls a column."""
        return self.names.get(column, column)

    def request(self, name: str, summary: str, *first: tuple[str, Any], required: bool) -> type[msgspec.Struct]:
        """The Struct of what a client writes.

        Args:
            first: fields before the columns, with their types.
            required: whether what the definition requires must be given.
        """
        writable = [each for each in self.shown if not each.read_only]
        needed = [each for each in writable if required and each.required]
        others = [each for each in writable if each not in needed]
        columns: list[Any] = [*first, *((self.name(each.name), self._written(each)) for each in needed)]
        columns += [(self.name(each.name), self._written(each) | None | UnsetType, UNSET) for each in others]
        return struct_of(name, summary, columns)

    def record_type(self, name: str, summary: str) -> type[msgspec.Struct]:
        """The Struct of a record: ``id`` and the columns that are shown."""
        return struct_of(
            name, summary, [("id", int), *((self.name(each.name), self._read(each)) for each in self.shown)]
        )

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a request, by column instead of by the component's names."""
        return {self.columns.get(name, name): value for name, value in given.items()}

    def record(self, row: Row, actor: Actor, zone: tzinfo) -> dict[str, Any]:
        """A row as the component shows it to this actor: times as text in ``zone``, secrets masked."""
        found: dict[str, Any] = {"id": row["id"]}
        for each in self.shown:
            value = row[each.name]
            if each.kind is FieldKind.TIME:
                value = "" if value is None else self.format_time(value, zone)
            elif each.kind is FieldKind.SECRET and not actor.may(Role.ADMIN):
                value = MASK if value else ""
            elif each.is_link and not actor.may(Role.ADMIN):
                value = without_userinfo(value or "")
            elif each.name in self.booleans:
                value = bool(value)
            shape = self.shapes.get(each.name)
            found[self.name(each.name)] = value if shape is None else shape.make(value)
        return found

    def conditions(self, conditions: Conditions) -> Conditions:
        """Conditions with the names of columns."""
        return Conditions(
            [(self.columns.get(name, name), *rest) for name, *rest in conditions.all_of],
            [(self.columns.get(name, name), *rest) for name, *rest in conditions.any_of],
            [(self.columns.get(name, name), values) for name, values in conditions.within],
        )

    def order(self, order_by: tuple[str, bool] | None) -> tuple[str, bool] | None:
        """An order with the name of a column."""
        return None if order_by is None else (self.columns.get(order_by[0], order_by[0]), order_by[1])

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Errors within name fields as the component does."""
        try:
            yield
        except BadParameter as error:
            if error.field not in self.names:
                raise
            raise BadParameter(self.names[error.field], error.reason) from None
        except Conflict as error:
            told = error.args[0]
            if not isinstance(told, Said) or told.values.get("field") not in self.names:
                raise
            raise Conflict(told.again(field=self.names[told.values["field"]])) from None

    def _written(self, column: Field) -> Any:
        return bool | Flag if column.name in self.booleans else written_type(column)

    def _read(self, column: Field) -> Any:
        if column.name in self.shapes:
            return self.shapes[column.name].type
        if column.kind is FieldKind.REFERENCE:
            return int if column.required else int | None
        return bool if column.name in self.booleans else read_type(column)


def joined(keys: Sequence[Any] | None) -> str:
    """A list of keys as text with commas, empty for none."""
    return ",".join(map(str, keys or ()))


JOINED = ColumnShape(str, joined)
ARRAY = ColumnShape(list[Any], lambda value: value or [])
OBJECT = ColumnShape(dict[str, Any] | list[Any], lambda value: {} if value is None else value)
