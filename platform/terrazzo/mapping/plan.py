"""The rows that one terminal feeds, as one Python function: a message costs an object one call.

The function takes the message's points (flat), its time and the object's state, updates the state and returns
``(changes, is_late, is_fed)``: the variables to record, whether something was older than what the state has, and
whether anything was taken in. What it does, row by row:

- STA rows whose point is in the message, in their order: computed from the point and the values known so far.
- FUNC, COL and STT rows, each after those that it names, unless the message is older than their last computation.
- EVNT rows: an event when the condition turns true, noted by the row's index; ``~index`` notes that it turns false.
  Null leaves the edge as it is.

It has two ways through: ``run`` for a message that carries all points and is newer than all that the object knows, as
most are, and ``any_run``, which looks at each point and each time. The first returns its changes as a Struct made for
the plan, whose fields are unset where a variable is as it was: it is filled and encoded in half the time of a dict.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import msgspec

from terrazzo.domain.mapping_row import MappingRow, RowKind
from terrazzo.domain.mapping_table import MappingTable
from terrazzo.domain.payload import point_name
from terrazzo.expressions.expression import Expression
from terrazzo.expressions.functions import Value
from terrazzo.expressions.source import NAMESPACE, expression_source, is_float, is_number, is_settled
from terrazzo.expressions.tree import X
from terrazzo.mapping.state import ObjectState

Changes = dict[str, Value] | msgspec.Struct | None
"""Variables to record, by code; encodes as a map. None: there are none."""

Run = Callable[[Mapping[str, Any], int, ObjectState], tuple[Any, bool, bool]]
"""``(changes, is_late, is_fed)``; the changes are a dict where the message is late."""

T = TypeVar("T")
PlanSteps = Generator[str | None, CodeType | None, T]
"""Work in small steps, with a result at the end. A text that a step yields is to be answered with its code."""

_MISSING = object()
_LARGE = 9 * 10**18
_SMALL = 2**30  # below, the interpreter compares in a fraction of the time
_UNSPEAKABLE = frozenset('"\\')  # no Struct's field has these in its name
_ANY_HEAD = """
def any_run(p, T, s):
 v = s.values; t = s.times; w = s.windows; get = p.get
 out = {}; late = fed = False
"""
_HEAD = """
def run(p, T, s):
 if {older}: return any_run(p, T, s)
 try: {points} = take(p)
 except KeyError: return any_run(p, T, s)
 s.newest_us = T
 v = s.values; t = s.times{windows}
 {times} = T
"""
_DERIVED_HEAD = """
def run(p, T, s):
 v = s.values; t = s.times; w = s.windows
 out = {}
"""


class PlanSource(NamedTuple):
    """The Python text of a terminal's function.

    Attributes:
        any_run: the way for any message.
        run: the way for a message that has all points and is new; None: a code can't be a Struct's field.
        codes: the variables that the function may change, in the order of its changes.
    """

    any_run: str
    run: str | None
    codes: tuple[str, ...]


def source_steps(table: MappingTable, points: Mapping[int, str]) -> PlanSteps[PlanSource]:
    """The text of a terminal's function; ``points``: slot -> the name of the point that feeds it."""
    writer = _Writer(table, points)
    any_run, codes = (yield from _joined(_ANY_HEAD, writer.any_lines())), tuple(writer.codes)
    if any(_UNSPEAKABLE & set(code) for code in codes):
        return PlanSource(any_run, None, codes)
    names, times = [writer.name_of(place) for place in points], [f"t[{place}]" for place in writer.timed]
    head = _HEAD.format(
        older="T < s.newest_us or T < s.derived_us" if table.derived else "T < s.newest_us",
        points=", ".join(names),
        times=" = ".join(times),
        windows="; w = s.windows" if table.windowed else "",
    )
    run = yield from _joined(head, writer.lines())
    return PlanSource(any_run, run, codes)


def _joined(head: str, lines: Iterable[str]) -> PlanSteps[str]:
    found = [head]
    for line in lines:
        found.append(line)
        yield None
    return "\n".join(found)


def derived_source_steps(table: MappingTable) -> PlanSteps[str]:
    """The text of the function for a change that no message brought."""
    return _joined(_DERIVED_HEAD, _Writer(table, {}).derived_lines())


def plan_steps(table: MappingTable, points: Mapping[int, str]) -> PlanSteps[Run]:
    """The function for a terminal.

    Args:
        points: slot -> the name of the point that feeds it.
    """
    source = yield from source_steps(table, points)
    namespace: dict[str, Any] = {
        **NAMESPACE,
        **{kind.__name__: kind for kind in (bool, float, int, KeyError)},
        "MISSING": _MISSING,
        "UNSET": msgspec.UNSET,
        "take": itemgetter(*map(point_name, points.values())),
    }
    yield from _define(source.any_run, namespace)
    if source.run is None:
        return namespace["any_run"]  # type: ignore[no-any-return]
    namespace["Changes"] = _changes_type(source.codes)
    yield from _define(source.run, namespace)
    return namespace["run"]  # type: ignore[no-any-return]


def derived_steps(table: MappingTable) -> PlanSteps[Run]:
    """The function for a change that no message brought: the rows that follow from others, and events."""
    namespace: dict[str, Any] = {**NAMESPACE, "bool": bool, "float": float, "int": int, "UNSET": msgspec.UNSET}
    source = yield from derived_source_steps(table)
    yield from _define(source, namespace)
    return namespace["run"]  # type: ignore[no-any-return]


def made_at_once(steps: PlanSteps[T]) -> T:
    """Does all the steps, and compiles here what they ask for."""
    code: CodeType | None = None
    while True:
        try:
            source = steps.send(code)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        code = None if source is None else compile_source(source)


def compile_source(source: str) -> CodeType:
    """The code of a text that a step has yielded; 4 ms for 10 KB, in which nothing else runs in this process."""
    return compile(source, "<plan>", "exec")


def changed_values(changes: Changes) -> Mapping[str, Value]:
    """The changed variables that a plan's function has returned, by code."""
    if changes is None or isinstance(changes, dict):
        return changes or {}
    values = zip(changes.__struct_encode_fields__, msgspec.structs.astuple(changes), strict=True)
    return {code: value for code, value in values if value is not msgspec.UNSET}


def _define(source: str, namespace: dict[str, Any]) -> PlanSteps[None]:
    code = yield source
    assert code is not None  # what was asked for
    exec(code, namespace)  # made of whitelisted parts only  # nosec B102


def _changes_type(codes: Sequence[str]) -> type[msgspec.Struct]:
    names = {f"n{number}": code for number, code in enumerate(codes)}
    return msgspec.defstruct("Changes", list(names), rename=names, gc=False)


class _Writer:
    """Writes the body of the function; a blank in front is a level of indentation."""

    def __init__(self, table: MappingTable, points: Mapping[int, str]) -> None:
        self._table = table
        self._points = points
        fed = [place for place in points if table.rows[place].kind is not RowKind.EVNT]
        derived = [table.place(row) for row in table.derived]
        self._places = [*fed, *derived]
        self.codes = [table.rows[place].code for place in self._places]
        """Of the variables that the function may change."""
        self.timed = [*points, *(place for place in derived if not table.rows[place].interval_us)]
        """Slots whose time is that of any newer message."""
        self._samples: dict[str, list[int]] = {}  # code -> slots of the windows over it
        for row in table.derived:
            if row.kind is RowKind.STT:
                self._samples.setdefault(row.of, []).append(table.place(row))

    def lines(self) -> Iterator[str]:
        """The body of ``run``: all points are there and newer than what is known."""
        rows = self._table.rows
        for place in self._points:
            if rows[place].kind is RowKind.EVNT:
                yield f" v[{place}] = x{place}"
            else:
                yield from _indented(1, [*self._given(rows[place], place), *self._keep(rows[place], place)])
        if self._table.derived:
            yield " s.derived_us = T"
            yield from _indented(1, self._all_derived(self._keep_spaced))
        yield from _indented(1, self._all_events())
        if not self._places:
            yield " return None, False, True"
            return
        yield f" if {' is '.join(f'n{place}' for place in self._places)} is UNSET: return None, False, True"
        yield f" return Changes({', '.join(f'n{place}' for place in self._places)}), False, True"

    def name_of(self, place: int) -> str:
        """The variable that ``run`` puts a slot's point into: the slot's own where it is taken as it comes."""
        row = self._table.rows[place]
        return f"n{place}" if row.kind is not RowKind.EVNT and row.expression is None else f"x{place}"

    def any_lines(self) -> Iterator[str]:
        """The body of ``any_run``: it looks at each point and each time."""
        for place, point in self._points.items():
            yield from self._point(self._table.rows[place], place, point)
        yield " if fed and T > s.newest_us: s.newest_us = T"
        if self._table.derived:
            yield " if fed and T >= s.derived_us:"
            yield "  s.derived_us = T"
            yield from _indented(2, self._all_derived(self._record_timed))
        yield " if fed:"
        yield from _indented(2, self._all_events())
        yield "  pass"
        yield " return out, late, fed"

    def derived_lines(self) -> Iterator[str]:
        """The body of the function for a change that no message brought."""
        yield " s.derived_us = T"
        yield from _indented(1, self._all_derived(self._record_timed))
        yield from _indented(1, self._all_events())
        yield " return out, False, True"

    def _all_derived(self, keep: Callable[[MappingRow, int], Iterable[str]]) -> Iterator[str]:
        for row in self._table.derived:
            place = self._table.place(row)
            if row.interval_us:
                yield f"n{place} = UNSET"
            n = "n" if keep == self._record_timed else f"n{place}"
            yield from self._spaced(row, place, [*self._derived(row, place, n), *keep(row, place)])

    def _all_events(self) -> Iterator[str]:
        events = [(place, row) for place, row in enumerate(self._table.rows) if row.kind is RowKind.EVNT]
        if events:
            yield "e = s.edges"
        for place, row in events:
            yield from self._event(row, place)

    def _point(self, row: MappingRow, place: int, point: str) -> Iterator[str]:
        yield f" x = get({point!r}, MISSING)"
        yield " if x is not MISSING:"
        yield f"  if T >= t[{place}]:"
        yield f"   t[{place}] = T; fed = True"
        if row.kind is RowKind.EVNT:
            yield f"   v[{place}] = x"
            return
        yield from _indented(3, [*self._compute(row.expression, "x", "n"), *self._record(row, place)])
        yield "  else: late = True"

    def _given(self, row: MappingRow, place: int) -> Iterator[str]:
        if row.expression is not None:
            yield from self._compute(row.expression, self.name_of(place), f"n{place}")

    def _derived(self, row: MappingRow, place: int, n: str) -> Iterator[str]:
        if row.kind is RowKind.STT:
            yield f"{n} = w[{place}].value(T)"
            return
        if row.kind is RowKind.COL:
            yield f"x = s.collected.get({row.project!r})"
        yield from self._compute(row.expression, "x", n)

    def _event(self, row: MappingRow, place: int) -> Iterator[str]:
        steps = [
            *self._compute(row.condition, f"v[{place}]", "n"),
            "if n:",
            f" if not e[{place}]: e[{place}] = True; s.raised.append({place})",
            f"elif n is not None and e[{place}] is not False:",
            f" if e[{place}]: s.raised.append({~place})",
            f" e[{place}] = False",
        ]
        yield from self._spaced(row, place, steps)

    def _spaced(self, row: MappingRow, place: int, steps: list[str]) -> Iterator[str]:
        """Lets the steps of a row with an interval run once in each interval; others run with each report."""
        if not row.interval_us:
            yield from steps
            return
        yield f"k = T // {row.interval_us}"
        yield f"if k > s.marks[{place}]:"
        yield f" s.marks[{place}] = k"
        yield from _indented(1, steps)

    def _compute(self, expression: Expression | None, x: str, n: str) -> Iterator[str]:
        """Lines that set the variable ``n`` to the value of an expression or, without one, of the point."""
        if expression is None:
            yield f"{n} = {x}"
            return
        tree, places = expression.tree, {X: x}
        source = expression_source(tree, lambda code: places.get(code) or f"v[{self._table.places[code]}]")
        yield "try:"
        yield f" {n} = {source}"
        fits = f"-9e18 <= {n} <= 9e18"  # more steps of the interpreter than ``n - n``, in half of its time
        if is_float(tree):
            yield f" if not {fits}: {n} = settle({n})"
        elif is_number(tree):  # an integer is compared with integers: with floats it takes four times as long
            as_integer = f"{-_SMALL} < {n} < {_SMALL} or {-_LARGE} <= {n} <= {_LARGE}"
            yield f" if not ({as_integer} if {n}.__class__ is int else {fits}): {n} = settle({n})"
        elif not is_settled(tree):
            yield f" {n} = settle({n})"
        yield f"except FAULTS: {n} = None"

    def _record(self, row: MappingRow, place: int) -> Iterator[str]:
        """Lines for ``any_run``: a changed ``n`` goes into the state and into ``out``."""
        yield from self._sample(row, "n")
        yield from _if_changed(row, place, f"v[{place}] = out[{row.code!r}] = n", "n")

    def _record_timed(self, row: MappingRow, place: int) -> Iterator[str]:
        yield f"t[{place}] = T"
        yield from self._record(row, place)

    def _keep(self, row: MappingRow, place: int) -> Iterator[str]:
        """The short way: ``n`` and the slot's number is the change, or unset."""
        yield from self._sample(row, f"n{place}")
        yield from _if_changed(row, place, f"v[{place}] = n{place}", f"n{place}")
        if not row.cycled:
            yield f"else: n{place} = UNSET"

    def _keep_spaced(self, row: MappingRow, place: int) -> Iterator[str]:
        if row.interval_us:
            yield f"t[{place}] = T"
        yield from self._keep(row, place)

    def _sample(self, row: MappingRow, n: str) -> Iterator[str]:
        for window in self._samples.get(row.code, ()):
            yield f"w[{window}].add(T, {n})"


def _if_changed(row: MappingRow, place: int, store: str, n: str) -> Iterator[str]:
    if row.cycled:
        yield store
        return
    yield f"o = v[{place}]"
    is_other_kind = f"{n}.__class__ is not o.__class__ and ({n}.__class__ is bool or o.__class__ is bool)"
    yield f"if {n} != o or ({is_other_kind}):"
    yield f" {store}"


def _indented(levels: int, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield " " * levels + line
