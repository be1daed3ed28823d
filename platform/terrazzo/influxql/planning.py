"""What a SELECT reads, and whether it makes sense."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from terrazzo.influxql.aggregates import CHOOSERS, OF_ALL_KINDS, REDUCERS, SELECTORS
from terrazzo.influxql.conditions import Span
from terrazzo.influxql.digests import CHOSEN, REDUCED
from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.moments import SECOND_NS
from terrazzo.influxql.syntax import (
    Binary,
    Call,
    Column,
    Expr,
    Logic,
    Ref,
    Select,
    Wildcard,
)
from terrazzo.influxql.transforms import TRANSFORMS
from terrazzo.influxql.values import MATH, MATH_OF_TWO, is_tag

AGGREGATES = frozenset((*REDUCERS, *SELECTORS, *CHOOSERS, *TRANSFORMS, "integral"))
"""The functions over more than one row."""

_ALONE = frozenset(("bottom", "distinct", "top"))
_REWINDS = frozenset(TRANSFORMS) - {"cumulative_sum"}
_MOST_EXPANDED = 1_000
_LEAST_WINDOW_NS = 900 * SECOND_NS


class Needs(msgspec.Struct, frozen=True):
    """The fields that are read: by name, and by wildcards over all that there are."""

    names: frozenset[str]
    wildcards: tuple[Wildcard, ...]

    def names_of(self, every: Iterable[str]) -> list[str]:
        """The fields to read of a series that has fields of these names; sorted."""
        found = {name for name in every if any(_fits(wildcard, name) for wildcard in self.wildcards)}
        return sorted(found | self.names)


def needs_of(select: Select, where: Expr | None, tags: Collection[str]) -> Needs:
    """What is read for the columns and the condition."""
    names, wildcards = set(), []
    for expr in walk([column.expr for column in select.columns] + ([] if where is None else [where])):
        if isinstance(expr, Ref) and not is_tag(expr.name, expr.cast, tags) and expr.name.lower() != "time":
            names.add(expr.name)
        elif isinstance(expr, Wildcard) and expr.cast != "tag":
            wildcards.append(expr)
    return Needs(frozenset(names), tuple(wildcards))


def walk(exprs: Iterable[Expr]) -> Iterator[Expr]:
    """Expressions and all within them."""
    waiting = list(exprs)
    while waiting:
        expr = waiting.pop()
        yield expr
        match expr:
            case Binary(_, left, right):
                waiting += (left, right)
            case Call(_, args):
                waiting += args
            case Logic(_, parts):
                waiting += parts


def calls_in(exprs: Iterable[Expr]) -> list[Call]:
    """The calls over more than one row that are not within others."""
    found, waiting = [], list(exprs)[::-1]
    while waiting:
        expr = waiting.pop()
        match expr:
            case Call(name, args) if name in AGGREGATES:
                found.append(expr)
            case Call(_, args):
                waiting += args[::-1]
            case Binary(_, left, right):
                waiting += (right, left)
    return found


def check(select: Select) -> None:
    """Raises ``QueryError`` where a SELECT makes no sense, or asks for what is not served."""
    exprs = [column.expr for column in select.columns]
    for expr in walk(exprs):
        if isinstance(expr, Call) and expr.name not in AGGREGATES | MATH.keys() | MATH_OF_TWO.keys():
            raise QueryError(f"undefined function {expr.name[:100]}()")
    for column in select.columns:
        if not any(isinstance(each, Ref | Wildcard) for each in walk([column.expr])):
            raise QueryError("field must contain at least one variable")
    calls = calls_in(exprs)
    if not calls:
        if select.interval_ns:
            raise QueryError("GROUP BY requires at least one aggregate function")
        return
    _check_mixture(exprs, calls)


def _check_mixture(exprs: Sequence[Expr], calls: Sequence[Call]) -> None:
    plain = any(_has_plain(expr) for expr in exprs)
    chosen = calls[0].name in SELECTORS or calls[0].name in ("bottom", "top")
    if plain and not (len(calls) == 1 and chosen and calls[0] in exprs):
        raise QueryError("mixing aggregate and non-aggregate queries is not supported")
    for call in calls:
        if call.name in _ALONE and (len(calls) > 1 or call not in exprs):
            kind = "aggregate function" if call.name == "distinct" else "selector function"
            raise QueryError(f"{kind} {call.name}() cannot be combined with other functions")


def _has_plain(expr: Expr) -> bool:
    """Whether it names a field outside of calls over more than one row."""
    match expr:
        case Ref() | Wildcard():
            return True
        case Binary(_, left, right):
            return _has_plain(left) or _has_plain(right)
        case Call(name, args) if name not in AGGREGATES:
            return any(map(_has_plain, args))
    return False


def rewound(select: Select, span: Span) -> Span:
    """The range that is read: what follows from values before needs some from before the range."""
    if not select.interval_ns:
        return span
    before = 0
    for expr in walk(column.expr for column in select.columns):
        if isinstance(expr, Call):
            before = max(before, windows_before(expr))
    return moved(span, before * select.interval_ns, is_descending=select.is_descending)


def windows_before(call: Call) -> int:
    """How many windows before the range a function needs."""
    return int(call.name in _REWINDS and bool(call.args) and isinstance(call.args[0], Call))


def moved(span: Span, length_ns: int, *, is_descending: bool) -> Span:
    """A range that begins earlier, or ends later where it is gone through backwards."""
    if is_descending:
        return Span(span.start_ns, span.end_ns + length_ns) if span.has_end else span
    return Span(span.start_ns - length_ns, span.end_ns) if span.has_start else span


# Digests


def takes_digests(select: Select, tags: Collection[str]) -> bool:
    """Whether digests say enough for all that is asked for: functions of fields by name, over one range.

    Windows shorter than what stores have figures of are quicker from rows.
    """
    if 0 < select.interval_ns < _LEAST_WINDOW_NS:
        return False
    exprs = [column.expr for column in select.columns]
    if any(map(_has_plain, exprs)) or any(isinstance(expr, Wildcard) for expr in walk(exprs)):
        return False
    reaches = [reach for expr in exprs for reach in _reaches(expr, tags)]
    return bool(reaches) and None not in reaches and len(set(reaches)) == 1


def _reaches(expr: Expr, tags: Collection[str]) -> Iterator[int | None]:
    """How many windows before the range each function takes; None: it needs more than a digest."""
    match expr:
        case Call(name, (Ref(field, cast),)) if name in CHOSEN or name in REDUCED:
            yield None if is_tag(field, cast, tags) else 0
        case Call(name, (Call() as inner, *_)) if name in TRANSFORMS:
            for reach in _reaches(inner, tags):
                yield None if reach is None else reach + windows_before(expr)
        case Call(name, args) if name not in AGGREGATES:
            for arg in args:
                yield from _reaches(arg, tags)
        case Binary(_, left, right):
            yield from _reaches(left, tags)
            yield from _reaches(right, tags)
        case Call():
            yield None


# Wildcards


def expanded(
    select: Select, fields: Sequence[str], numeric: Collection[str], texts: Collection[str], tags: Sequence[str]
) -> Select:
    """The same with names in place of wildcards.

    Args:
        fields: all names of fields; ``numeric`` and ``texts``: those with numbers, and with texts.
        tags: all names of tags, but for those that rows are grouped by.
    """
    columns: list[Column] = []
    for column in select.columns:
        columns += _expanded(column, fields, numeric, texts, tags)
        if len(columns) > _MOST_EXPANDED:
            raise QueryError(f"more than {_MOST_EXPANDED} columns; name the fields that you want")
    return replace(select, columns=tuple(columns))


def _expanded(
    column: Column, fields: Sequence[str], numeric: Collection[str], texts: Collection[str], tags: Sequence[str]
) -> list[Column]:
    match column.expr:
        case Wildcard(cast) as wildcard:
            names = sorted({*(fields if cast != "tag" else ()), *(tags if cast != "field" else ())})
            return [Column(Ref(name), column.alias) for name in names if _fits(wildcard, name)]
        case Call(name, (Wildcard() as wildcard, *rest)):
            wanted = [each for each in fields if _takes(name, each, numeric, texts) and _fits(wildcard, each)]
            alias = column.alias or name
            return [Column(Call(name, (Ref(each, "field"), *rest)), f"{alias}_{each}") for each in wanted]
        case Call(name, (Call(inner, (Wildcard(), *_)) as within, *rest)) if inner in AGGREGATES:
            found = _expanded(Column(within), fields, numeric, texts, tags)
            return [
                Column(Call(name, (each.expr, *rest)), f"{column.alias or name}_{each.alias[len(inner) + 1 :]}")
                for each in found
            ]
    if any(isinstance(expr, Wildcard) for expr in walk([column.expr])):
        raise QueryError("unsupported expression with wildcard")
    return [column]


def _takes(function: str, field: str, numeric: Collection[str], texts: Collection[str]) -> bool:
    return field in numeric or (function in OF_ALL_KINDS and field in texts)


def _fits(wildcard: Wildcard, name: str) -> bool:
    return wildcard.pattern is None or wildcard.pattern.finds(name)


# Names of columns


def column_names(columns: Sequence[Column]) -> list[str]:
    """What the columns of an answer are called: by alias, or by what they are, each once."""
    taken = {"time"} | {column.alias for column in columns if column.alias}
    names = []
    for column in columns:
        name = column.alias or _free(default_name(column.expr), taken)
        taken.add(name)
        names.append(name)
    return names


def _free(name: str, taken: Collection[str]) -> str:
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def default_name(expr: Expr) -> str:
    """What a column without an alias is called."""
    match expr:
        case Ref(name):
            return name
        case Call(name):
            return name
        case Binary():
            return "_".join(_named(expr))
    return ""


def _named(expr: Expr) -> list[str]:
    match expr:
        case Ref(name) | Call(name):
            return [name]
        case Binary(_, left, right):
            return _named(left) + _named(right)
    return []
