"""Statements and expressions of InfluxQL as values."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from terrazzo.influxql.patterns import Pattern

Cast = Literal["", "field", "tag"]


class Constant(msgspec.Struct, frozen=True):
    """A number, text or true/false."""

    value: float | int | str | bool


class Length(msgspec.Struct, frozen=True):
    """A length of time in nanoseconds."""

    ns: int


class Ref(msgspec.Struct, frozen=True):
    """A field or tag by name."""

    name: str
    cast: Cast = ""


class Wildcard(msgspec.Struct, frozen=True):
    """All fields, all tags, or both; with a pattern those whose names it finds."""

    cast: Cast = ""
    pattern: Pattern | None = None


class PatternOperand(msgspec.Struct, frozen=True):
    """What stands right of ``=~`` and ``!~``."""

    pattern: Pattern


class Call(msgspec.Struct, frozen=True):
    """A function with its arguments; names are in lower case."""

    name: str
    args: tuple[Expr, ...]


class Binary(msgspec.Struct, frozen=True):
    """Arithmetic, or a comparison."""

    sign: str
    left: Expr
    right: Expr


class Logic(msgspec.Struct, frozen=True):
    """All, or one, of some conditions."""

    is_and: bool
    parts: tuple[Expr, ...]


Expr: TypeAlias = Constant | Length | Ref | Wildcard | PatternOperand | Call | Binary | Logic

COMPARISONS = frozenset(("=", "!=", "<>", "<", "<=", ">", ">=", "=~", "!~"))


class Column(msgspec.Struct, frozen=True):
    """One of the things that a SELECT asks for; ``alias`` is empty where it has none."""

    expr: Expr
    alias: str = ""


class Measurement(msgspec.Struct, frozen=True):
    """Measurements by name, or by a pattern of names; ``database`` is empty where the request's is meant."""

    name: str | Pattern
    database: str = ""


FillKind = Literal["null", "none", "previous", "linear", "number"]


class Fill(msgspec.Struct, frozen=True):
    """What stands for windows without points; ``number``: for that kind."""

    kind: FillKind = "null"
    number: float = 0.0


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the rows, and of the series, an answer has. 0: all of them."""

    limit: int = 0
    offset: int = 0
    series_limit: int = 0
    series_offset: int = 0


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """``interval_ns``: of GROUP BY time, 0 where there is none. ``tags``: what rows are grouped by beside that."""

    columns: tuple[Column, ...]
    sources: tuple[Measurement | Select, ...]
    where: Expr | None = None
    interval_ns: int = 0
    offset_ns: int = 0
    tags: tuple[str | Wildcard, ...] = ()
    fill: Fill = Fill()
    is_descending: bool = False
    cut: Cut = Cut()
    zone: str = ""


ShowKind = Literal["DATABASES", "RETENTION POLICIES", "MEASUREMENTS", "TAG KEYS", "TAG VALUES", "FIELD KEYS", "SERIES"]


class KeyFilter(msgspec.Struct, frozen=True):
    """Which names: ``sign`` is ``=``, ``!=``, ``=~``, ``!~`` or ``in``."""

    sign: str
    names: tuple[str, ...] = ()
    pattern: Pattern | None = None

    def selects(self, name: str) -> bool:
        """Whether a name is one of them."""
        if self.pattern is not None:
            return self.pattern.finds(name) == (self.sign == "=~")
        return (name in self.names) == (self.sign != "!=")


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """``keys``: of WITH KEY; of measurements those of WITH MEASUREMENT. ``counts``: only how many there are."""

    kind: ShowKind
    database: str = ""
    sources: tuple[Measurement, ...] = ()
    keys: KeyFilter | None = None
    where: Expr | None = None
    cut: Cut = msgspec.field(default_factory=Cut)
    counts: bool = False


class Unserved(msgspec.Struct, frozen=True):
    """A statement that is known and not answered; ``reason`` says so."""

    reason: str


Statement: TypeAlias = Select | Show | Unserved
