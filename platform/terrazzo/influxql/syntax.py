"""Statements and expressions of InfluxQL as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from terrazzo.influxql.patterns import Pattern

Cast = Literal["", "field", "tag"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, text or true/false."""

    value: float | int | str | bool


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time in nanoseconds."""

    ns: int


@dataclass(frozen=True, slots=True)
class Ref:
    """A field or tag by name."""

    name: str
    cast: Cast = ""


@dataclass(frozen=True, slots=True)
class Wildcard:
    """All fields, all tags, or both; with a pattern those whose names it finds."""

    cast: Cast = ""
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True)
class PatternOperand:
    """What stands right of ``=~`` and ``!~``."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; names are in lower case."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, or a comparison."""

    sign: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic:
    """All, or one, of some conditions."""

    is_and: bool
    parts: tuple[Expr, ...]


Expr: TypeAlias = Constant | Length | Ref | Wildcard | PatternOperand | Call | Binary | Logic

COMPARISONS = frozenset(("=", "!=", "<>", "<", "<=", ">", ">=", "=~", "!~"))


@dataclass(frozen=True, slots=True)
class Column:
    """One of the things that a SELECT asks for; ``alias`` is empty where it has none."""

    expr: Expr
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurements by name, or by a pattern of names; ``database`` is empty where the request's is meant."""

    name: str | Pattern
    database: str = ""


FillKind = Literal["null", "none", "previous", "linear", "number"]


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands for windows without points; ``number``: for that kind."""

    kind: FillKind = "null"
    number: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Which of the rows, and of the series, an answer has. 0: all of them."""

    limit: int = 0
    offset: int = 0
    series_limit: int = 0
    series_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
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


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Which names: ``sign`` is ``=``, ``!=``, ``=~``, ``!~`` or ``in``."""

    sign: str
    names: tuple[str, ...] = ()
    pattern: Pattern | None = None

    def selects(self, name: str) -> bool:
        """Whether a name is one of them."""
        if self.pattern is not None:
            return self.pattern.finds(name) == (self.sign == "=~")
        return (name in self.names) == (self.sign != "!=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """``keys``: of WITH KEY; of measurements those of WITH MEASUREMENT. ``counts``: only how many there are."""

    kind: ShowKind
    database: str = ""
    sources: tuple[Measurement, ...] = ()
    keys: KeyFilter | None = None
    where: Expr | None = None
    cut: Cut = field(default_factory=Cut)
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Unserved:
    """A statement that is known and not answered; ``reason`` says so."""

    reason: str


Statement: TypeAlias = Select | Show | Unserved
