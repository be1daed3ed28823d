"""``Field``: the definition of one column, which values it accepts, and the messages for those that it doesn't."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import chain
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import Steps, at_once
from terrazzo.reasons import say, told_by

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers its rows only by INTEGER PRIMARY KEY
MAX_INTEGER = 2**63 - 1
JSON_DEPTH = 64  # levels of JSON that a record keeps
_LONG_BYTES = 65_536
_VALUES_A_STEP = 5_000  # of a structure, which are looked at in half a millisecond

Check = Callable[[Any], object]
"""Checks a value of the right type; raises ``ValueError`` that says what is wrong with it."""

CheckSteps = Callable[[Any], Steps[None]]
"""A check that takes long."""


class FieldKind(Enum):
    """What a column holds, and how a row shows it."""

    TEXT = "text"
    INTEGER = "integer"
    FLAG = "flag"  # 0 or 1
    JSON = "json"  # an object or array, stored as compact text
    SECRET = "secret"  # text, encrypted at rest
    TIME = "time"  # UTC microseconds or null
    REFERENCE = "reference"  # the id of a record of the same company, or null


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A column's definition: kind, length or range, default, and a check of its own."""

    name: str
    kind: FieldKind
    default: Any = None
    required: bool = False  # given at creation, and never empty
    max_length: int | None = None  # characters
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = MAX_INTEGER
    references: str | None = None  # an entity's name
    read: Callable[[Any], Any] | None = None  # turns other forms that clients use into the column's own
    check: Check | None = None
    check_steps: CheckSteps | None = None
    read_only: bool = False  # set by the platform; ignored where a client sends it back
    internal: bool = False  # never shown to clients
    unset: str | None = None  # of a structure: the JSON text that it reads as where nothing was written
    ranks: tuple[str, ...] = ()  # of a number: the names of 1, 2, 3, ..., which conditions may use
    is_link: bool = False  # a URL that may have a user and password in it, which are secrets

    def parse(self, value: Any) -> Any:
        """The value as rows show it; an empty one becomes the default. The repository looks up references later.

        Raises:
            BadParameter: the value doesn't fit; names the column.
        """
        return at_once(self.parsing(value))

    def parsing(self, value: Any) -> Steps[Any]:
        """As ``parse``, in steps."""
        if value is None or value == "":
            value = self.default
        try:
            if self.required and (value is None or (isinstance(value, str) and not value.strip())):
                raise ValueError(say("is_required_not_empty"))
            value = value if value is None or self.read is None else self.read(value)
            if value is not None:
                value = (yield from _reading_json(value)) if self.kind is FieldKind.JSON else self._parsed(value)
            if self.check is not None and value not in (None, ""):
                self.check(value)
            if self.check_steps is not None and value not in (None, ""):
                yield
                yield from self.check_steps(value)
        except ValueError as error:
            raise BadParameter(self.name, told_by(error)) from None
        return value

    def _parsed(self, value: Any) -> Any:
        return _PARSERS[self.kind](self, value)

    def column(self) -> sa.Column[Any]:
        """The SQLAlchemy column."""
        arguments: list[Any] = [self.name, self._type()]
        if self.references is not None:
            arguments.append(sa.ForeignKey(f"{self.references}.id", ondelete="RESTRICT"))
        return sa.Column(*arguments, nullable=self.default is None and not self.required)

    def _type(self) -> sa.types.TypeEngine[Any]:
        if self.kind is FieldKind.TEXT:
            return sa.String(self.max_length) if self.max_length else sa.Text()
        if self.kind is FieldKind.FLAG:
            return sa.SmallInteger()
        return sa.Text() if self.kind in (FieldKind.JSON, FieldKind.SECRET) else BIG


def text(name: str, max_length: int, *, default: str | None = "", **rules: Any) -> Field:
    """A text column of at most ``max_length`` characters."""
    return Field(name=name, kind=FieldKind.TEXT, max_length=max_length, default=default, **rules)


def link(name: str, max_length: int, **rules: Any) -> Field:
    """A text column of a URL or a path; user and password in a URL are for administrators alone."""
    return text(name, max_length, is_link=True, **rules)


def number(name: str, *, default: int | None = 0, **rules: Any) -> Field:
    """An integer column."""
    return Field(name=name, kind=FieldKind.INTEGER, default=default, **rules)


def flag(name: str, *, default: int = 0, **rules: Any) -> Field:
    """A column of 0 (false) or 1 (true)."""
    return Field(name=name, kind=FieldKind.FLAG, default=default, maximum=1, **rules)


def structure(name: str, **rules: Any) -> Field:
    """A column of JSON objects or arrays; one that was never written reads as ``unset``, or else as null."""
    return Field(name=name, kind=FieldKind.JSON, **rules)


def secret(name: str, max_length: int, **rules: Any) -> Field:
    """A text column that is encrypted at rest; ``max_length`` is that of the clear text."""
    return Field(name=name, kind=FieldKind.SECRET, max_length=max_length, default="", **rules)


def moment(name: str, **rules: Any) -> Field:
    """A column of times in UTC microseconds."""
    return Field(name=name, kind=FieldKind.TIME, **rules)


def reference(name: str, entity: str, **rules: Any) -> Field:
    """A column that names a record of another entity; ``name`` ends in ``_id``."""
    return Field(name=name, kind=FieldKind.REFERENCE, references=entity, **rules)


def _parse_text(field: Field, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(say("expected_text_got", got=type_name(value)))
    check_storable(value)
    if field.max_length is not None and len(value) > field.max_length:
        raise ValueError(say("too_many_characters", most=field.max_length, got=len(value)))
    if field.choices and value not in field.choices:
        raise ValueError(say("expected_one_of_got", expected=", ".join(field.choices), got=shorten(value)))
    return value


def _parse_integer(field: Field, value: Any) -> int:
    if not isinstance(value, int) or (isinstance(value, bool) and field.kind is not FieldKind.FLAG):
        raise ValueError(say("expected_integer_got", got=type_name(value)))
    if not field.minimum <= value <= field.maximum:
        raise ValueError(say("expected_range_got", least=field.minimum, most=field.maximum, got=shorten(value)))
    return int(value)


def _reading_json(value: Any) -> Steps[Any]:
    """A JSON object or array, as such or as text, in steps.

    One that isn't given as text is copied in the form that its text has, unless it is long: then it is a client's, and
    has that form.
    """
    is_text = isinstance(value, str)
    try:
        if is_text:
            value = msgspec.json.decode(value)
            yield
        if not isinstance(value, list | dict):
            raise ValueError(say("expected_json_got", got=type_name(value)))
        encoded = b"" if is_text else msgspec.json.encode(value)
        encoded.decode()
    except RecursionError:
        raise ValueError(say("nested_too_deeply")) from None
    except (msgspec.MsgspecError, UnicodeError, OverflowError, TypeError) as error:
        raise ValueError(say("not_valid_json", why=error)) from None
    yield
    yield from _checking_json(value)
    return msgspec.json.decode(encoded) if 0 < len(encoded) < _LONG_BYTES else value


def _checking_json(value: Any) -> Steps[None]:
    """Levels, and texts with a NUL character, which may be copied into text columns later."""
    level = [value]
    for _ in range(JSON_DEPTH):
        inner: list[Any] = []
        for begin in range(0, len(level), _VALUES_A_STEP):
            for outer in level[begin : begin + _VALUES_A_STEP]:
                if isinstance(outer, str):
                    if "\0" in outer:
                        raise ValueError(say("contains_nul"))
                elif isinstance(outer, dict):
                    inner += outer
                    inner += outer.values()
                elif isinstance(outer, list):
                    inner += outer
            yield
        if not inner:
            return
        level = inner
    if level:
        raise ValueError(say("nested_deeper_than", most=JSON_DEPTH))


def _parse_reference(field: Field, value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(say("expected_uid_or_id_got", got=type_name(value)))
    return value


_PARSERS: dict[FieldKind, Callable[[Field, Any], Any]] = {
    FieldKind.TEXT: _parse_text,
    FieldKind.SECRET: _parse_text,
    FieldKind.INTEGER: _parse_integer,
    FieldKind.FLAG: _parse_integer,
    FieldKind.TIME: _parse_integer,
    FieldKind.REFERENCE: _parse_reference,
}


_NESTS = frozenset((list, dict))


def check_depth(value: Any) -> None:
    """Checks that a JSON value has at most ``JSON_DEPTH`` levels. Raises ``ValueError``."""
    level = [value]
    for _ in range(JSON_DEPTH):
        if _NESTS.isdisjoint(map(type, level)):
            return
        lists = [each for each in level if each.__class__ is list and each]
        objects = [each for each in level if each.__class__ is dict and each]
        level = [*chain.from_iterable(lists), *chain.from_iterable(map(dict.values, objects))]
    if level:
        raise ValueError(say("nested_deeper_than", most=JSON_DEPTH))


def check_storable(value: str) -> None:
    """Checks that every database can store a text.

    Raises:
        ValueError: it has a NUL character or an unpaired surrogate.
    """
    if "\0" in value:
        raise ValueError(say("contains_nul"))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(say("contains_surrogate")) from None


def storable_text(text: str) -> str:
    """Text from outside with its NUL characters replaced by U+FFFD, because no database stores them."""
    return text.replace("\0", "\ufffd")


def type_name(value: Any) -> str:
    """The type of a JSON value in words, for error messages."""
    names = {type(None): "null", bool: "a boolean", int: "an integer", float: "a number", str: "text"}
    return names.get(type(value)) or ("an array" if isinstance(value, list | tuple) else "an object")


def shorten(value: Any) -> str:
    """A value's repr, cut to the length that error messages allow."""
    shown = repr(value)
    return shown if len(shown) <= 64 else f"{shown[:61]}..."
