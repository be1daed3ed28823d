"""Conditions and orders of list requests as SQL: field names and values are checked, values are bound parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal

from terrazzo.database.entity import Entity
from terrazzo.database.field import MAX_INTEGER, Field, FieldKind, check_storable, number, shorten, type_name
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Conditions
from terrazzo.errors import BadParameter
from terrazzo.reasons import say, told_by
from terrazzo.times import parse_time

MAX_CONDITIONS = 100
MAX_VALUES = 1_000
MAX_VALUES_IN_ALL = 10_000  # of all conditions of a request: each costs the event loop half a microsecond
_SHORT = 18  # digits of what is an integer in any case
MAX_PATTERN = 256  # characters: a database compares each with each of a long text, and can't be stopped in between

Column = sa.ColumnElement[Any]

_COMPARISONS: dict[str, Callable[[Column, Any], Column]] = {
    "=": lambda column, value: column.is_(None) if value is None else column == value,
    "<>": lambda column, value: column.is_distinct_from(value),
    "!=": lambda column, value: column.is_distinct_from(value),
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
}
_EQUALITIES = ("=", "<>", "!=")
OPERATORS = (*_COMPARISONS, "like", "in")

_ID = number("id")


class _Alike(sa.ColumnElement[bool]):
    """SQL ``LIKE`` that ignores the case of A to Z; both databases do it faster than comparing lowered texts."""

    inherit_cache = True
    type = sa.Boolean()
    _traverse_internals: Any = [  # noqa: RUF012 - as SQLAlchemy declares it
        ("column", InternalTraversal.dp_clauseelement),
        ("pattern", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, column: Column, pattern: Column) -> None:
        self.column = column
        self.pattern = pattern


@compiles(_Alike)
def _compile_alike(element: _Alike, compiler: Any, **options: Any) -> str:
    word = "LIKE" if compiler.dialect.name == "sqlite" else 'COLLATE "C" ILIKE'
    column, pattern = compiler.process(element.column, **options), compiler.process(element.pattern, **options)
    return f"({column} {word} {pattern} ESCAPE '\\')"


def contains(column: Column, text: str) -> Column:
    """Whether a column has the text in it; as ``like`` otherwise."""
    return _Alike(column, sa.literal(f"%{_plain(text)}%"))


def begins(column: Column, text: str) -> Column:
    """Whether a column begins with the text; as ``like`` otherwise."""
    return _Alike(column, sa.literal(f"{_plain(text)}%"))


def _plain(text: str) -> str:
    """The text as a pattern that fits nothing else."""
    for character in "\\%_":
        text = text.replace(character, f"\\{character}")
    return text


class Selection:
    """Makes WHERE and ORDER BY clauses of conditions on one entity.

    Args:
        zone: the time zone of times without an offset.
        referenced: the tables that REFERENCE columns point to, by column name.
        derived: SQL expressions for names that aren't columns.
    """

    def __init__(
        self,
        entity: Entity,
        referenced: dict[str, sa.Table],
        zone: tzinfo,
        *,
        derived: Mapping[str, Column] | None = None,
    ) -> None:
        self.table = entity.table
        self._fields = {"id": _ID} | {
            name: field
            for name, field in entity.fields.items()
            if not field.internal and field.kind is not FieldKind.SECRET
        }
        self._referenced = referenced
        self._zone = zone
        self._derived = derived or {}

    @property
    def ids(self) -> Column:
        """The id column, by which every order ends."""
        return self.table.c.id

    def where(self, conditions: Conditions) -> list[Column]:
        """The clauses that all have to hold.

        Raises:
            BadParameter: an unknown field or operator, or a value that doesn't fit the column; names the parameter and
                the condition in it, counted from 1.
        """
        _check_number_of_values(conditions)
        clauses = _each("where_and", conditions.all_of, self._clause)
        clauses += _each("where_in", conditions.within, self._within)
        any_of = _each("where_or", conditions.any_of, self._clause)
        return [*clauses, sa.or_(*any_of)] if any_of else clauses

    def order(self, order_by: tuple[str, bool] | None) -> list[Column]:
        """The columns to sort by; the id settles ties, so that pages never overlap."""
        name, descending = order_by or ("id", False)
        try:
            column = self._column(self._field(name))
        except BadParameter as error:
            raise BadParameter("order_by", told_by(error)) from None
        columns = [column] if name == "id" else [column, self.ids]
        return [_ordered(column, descending=descending) for column in columns]

    def _field(self, name: str) -> Field:
        field = self._fields.get(name)
        if field is None:
            raise BadParameter(name, say("no_such_field", fields=", ".join(self._fields)))
        return field

    def _clause(self, name: str, operator: str, value: Any) -> Column:
        field, operator = self._field(name), operator.strip().lower()
        if operator == "in":
            return self._within(name, _listed(value))
        if operator == "like":
            return self._like(field, value)
        compare = _COMPARISONS.get(operator)
        if compare is None:
            raise BadParameter(name, say("unknown_operator", operator=shorten(operator), operators=" ".join(OPERATORS)))
        if value == "" and operator in _EQUALITIES and self._may_be_null(field):
            return self._empty(field) if operator == "=" else sa.not_(self._empty(field))
        value = None if value is None else self._value(field, value)
        if isinstance(value, str) and field.kind is FieldKind.REFERENCE:
            return self._names(field, operator, value)
        return compare(self._column(field), value)

    def _within(self, name: str, values: Sequence[Any]) -> Column:
        field = self._field(name)
        if not isinstance(values, list | tuple):
            raise BadParameter(name, say("expected_list_got", got=type_name(values)))
        if len(values) > MAX_VALUES:
            raise BadParameter(name, say("too_many_values", most=MAX_VALUES))
        wanted = [value.strip() if isinstance(value, str) else value for value in values]
        is_empty_wanted = "" in wanted and self._may_be_null(field)
        found = self._values(field, [value for value in wanted if value != ""] if is_empty_wanted else wanted)
        is_reference = field.kind is FieldKind.REFERENCE
        uids = [value for value in found if is_reference and isinstance(value, str)]
        others = [value for value in found if not (is_reference and isinstance(value, str))]
        clauses: list[Column] = [one_of(self._column(field), others)]
        if uids:
            clauses.append(self._column(field).in_(self._ids_of(field, uids)))
        if is_empty_wanted:
            clauses.append(self._empty(field))
        return sa.or_(*clauses) if len(clauses) > 1 else clauses[0]

    def _may_be_null(self, field: Field) -> bool:
        """Whether the column has nulls, which records show as empty text, null or an empty structure."""
        return field.name not in self._derived and bool(self.table.c[field.name].nullable)

    def _empty(self, field: Field) -> Column:
        """The clause that nothing was written into a column; it is never null itself."""
        column = self.table.c[field.name]
        if not isinstance(column.type, sa.String):
            return column.is_(None)
        return sa.or_(column.is_(None), sa.and_(column.is_not(None), column == ""))

    def _names(self, field: Field, operator: str, uid: str) -> Column:
        """The clause that a reference points to the record with this uid, or (``<>``) doesn't."""
        column, ids = self._column(field), self._ids_of(field, [uid])
        if operator == "=":
            return column.in_(ids)
        if operator in ("<>", "!="):
            return sa.or_(column.is_(None), column.not_in(ids))
        raise BadParameter(field.name, say("expected_id", operator=operator, got=shorten(uid)))

    def _like(self, field: Field, value: Any) -> Column:
        if not isinstance(value, str):
            raise BadParameter(field.name, say("like_expected_text", got=type_name(value)))
        if len(value) > MAX_PATTERN:
            raise BadParameter(field.name, say("like_too_long", characters=len(value), most=MAX_PATTERN))
        if field.kind is FieldKind.JSON:
            raise BadParameter(field.name, say("like_of_structure"))
        column = self._column(field)
        if not isinstance(column.type, sa.String):
            column = sa.cast(column, sa.String)
        # Only % and _ are special; PostgreSQL would take a backslash for an escape, SQLite wouldn't.
        return _Alike(column, sa.literal(self._text(field, value).replace("\\", "\\\\")))

    def _column(self, field: Field) -> Column:
        column = self._derived[field.name] if field.name in self._derived else self.table.c[field.name]
        if field.unset is not None:
            return sa.func.coalesce(column, field.unset, type_=column.type)
        if field.is_link:  # no user and password can be guessed by conditions, letter by letter
            column = sa.case((column.like("%//%@%"), sa.literal("")), else_=column)
        # of a number that is too wide for the column SQLite finds none, and PostgreSQL would fail
        return sa.type_coerce(column, sa.BigInteger) if isinstance(column.type, sa.SmallInteger) else column

    def _ids_of(self, field: Field, uids: list[str]) -> sa.Select[Any]:
        table = self._referenced[field.name]
        return sa.select(table.c.id).where(one_of(table.c.uid, uids))

    def _value(self, field: Field, value: Any) -> Any:
        """Converts a condition's value to the column's type; many clients send every value as text."""
        if field.kind is FieldKind.REFERENCE and isinstance(value, str) and not value.isdecimal():
            return self._text(field, value)
        if field.kind is FieldKind.TIME and isinstance(value, str):
            return self._time(field, value)
        if field.kind in (FieldKind.TEXT, FieldKind.JSON):
            return self._text(field, value if isinstance(value, str) else _as_text(field, value))
        return _integer(field, _rank(field, value) if field.ranks else value)

    def _values(self, field: Field, values: list[Any]) -> list[Any]:
        """As ``_value`` for each, but that long lists of texts, or of numbers, are looked at as a whole."""
        kinds = set(map(type, values))
        if kinds == {str} and field.kind in (FieldKind.TEXT, FieldKind.REFERENCE):
            self._text(field, "".join(values))
            is_text = field.kind is FieldKind.TEXT
            return values if is_text else [_integer(field, each) if each.isdecimal() else each for each in values]
        is_short = kinds == {str} and max(map(len, values)) <= _SHORT
        if is_short and field.kind in (FieldKind.INTEGER, FieldKind.FLAG) and all(map(str.isdecimal, values)):
            return list(map(int, values))
        if kinds == {int} and field.kind not in (FieldKind.TEXT, FieldKind.JSON):
            for most in (min(values), max(values)):
                _integer(field, most)
            return values
        return [self._value(field, value) for value in values]

    def _time(self, field: Field, value: str) -> int:
        try:
            return parse_time(value, self._zone)
        except ValueError as error:
            raise BadParameter(field.name, told_by(error)) from None

    @staticmethod
    def _text(field: Field, value: str) -> str:
        try:
            check_storable(value)
        except ValueError as error:
            raise BadParameter(field.name, told_by(error)) from None
        return value


def _ordered(column: Column, *, descending: bool) -> Column:
    """A column in an order where null is less than everything, on both databases; PostgreSQL's own is the reverse."""
    order = column.desc() if descending else column.asc()
    if not getattr(column, "nullable", False):
        return order
    return order.nulls_last() if descending else order.nulls_first()


def _each(parameter: str, conditions: Sequence[Any], clause: Callable[..., Column]) -> list[Column]:
    if len(conditions) > MAX_CONDITIONS:
        raise BadParameter(parameter, say("too_many_conditions", most=MAX_CONDITIONS))
    clauses = []
    for position, condition in enumerate(conditions, 1):
        try:
            clauses.append(clause(*condition))
        except BadParameter as error:
            raise BadParameter(parameter, say("condition_wrong", condition=position, reason=error)) from None
    return clauses


def _check_number_of_values(conditions: Conditions) -> None:
    values = number_of_values(values for _, values in conditions.within)
    for parameter, comparisons in (("where_and", conditions.all_of), ("where_or", conditions.any_of)):
        values += number_of_values(value for _, operator, value in comparisons if operator.strip().lower() == "in")
        if values > MAX_VALUES_IN_ALL:
            raise BadParameter(parameter, say("too_many_values_in_all", most=MAX_VALUES_IN_ALL))


def number_of_values(lists: Iterable[Any]) -> int:
    """How many values there are in lists, or in texts that separate them by commas."""
    return sum(
        values.count(",") + 1 if isinstance(values, str) else len(values) if isinstance(values, list | tuple) else 1
        for values in lists
    )


def _listed(values: Any) -> Any:
    """Splits text with values separated by commas; anything else is returned as it is and checked later."""
    if not isinstance(values, str):
        return values
    return values.split(",") if values.strip() else []


def _as_text(field: Field, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadParameter(field.name, say("expected_text_got", got=type_name(value)))
    return str(value)


def _rank(field: Field, value: Any) -> Any:
    """The number that the name of a rank stands for."""
    if value not in field.ranks:
        raise BadParameter(field.name, say("expected_one_of_got", expected=", ".join(field.ranks), got=shorten(value)))
    return field.ranks.index(value) + 1


def _integer(field: Field, value: Any) -> int:
    try:
        if isinstance(value, str) and len(value) <= 20:
            value = int(value)
    except ValueError:
        raise BadParameter(field.name, say("expected_integer_got", got=shorten(value))) from None
    if not isinstance(value, int) or not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise BadParameter(field.name, say("expected_integer_got", got=shorten(value)))
    return int(value)
