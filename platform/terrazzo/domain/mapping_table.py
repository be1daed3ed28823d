"""A mapping's rows as one table: references checked, derived rows in order of computation, layout of the state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from terrazzo.domain.mapping_row import MappingRow, RowError, RowKind, parse_row
from terrazzo.domain.script_rows import check_cells, parts_check
from terrazzo.loop_pauses import Steps, at_once
from terrazzo.points import Reference
from terrazzo.reasons import say

MAX_ROWS = 1_000
_FIRST_SOURCE = 5  # the column from which on rows have points and expressions


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a row's state: after a change of the mapping a row keeps the state of the equal slot."""

    code: str
    kind: str
    rule: str  # an event's condition and point, a statistic's window and function


@dataclass(frozen=True)
class MappingTable:
    """A checked mapping. A row's index in ``rows`` is the index of its slot in an object's state."""

    rows: tuple[MappingRow, ...]
    places: Mapping[str, int]  # code -> slot
    derived: tuple[MappingRow, ...]  # FUNC, COL and STT rows, each after those that it names

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The slot of each row, in the order of ``rows``."""
        return tuple(Slot(row.code, row.kind.value, _rule(row)) for row in self.rows)

    @cached_property
    def layout(self) -> str:
        """A hash of the slots: equal for tables whose states have the same layout."""
        return hashlib.blake2b(msgspec.msgpack.encode(self.slots), digest_size=9).hexdigest()

    @cached_property
    def has_edges(self) -> bool:
        """Whether there are event rows (EVNT)."""
        return any(row.kind is RowKind.EVNT for row in self.rows)

    @cached_property
    def has_marks(self) -> bool:
        """Whether there are rows with an interval (Cycled)."""
        return any(row.interval_us for row in self.rows)

    @cached_property
    def windowed(self) -> tuple[int, ...]:
        """The indexes of the rows of rolling statistics (STT)."""
        return tuple(place for place, row in enumerate(self.rows) if row.kind is RowKind.STT)

    def preparation(self) -> Steps[None]:
        """Works out what would be worked out when it is asked for first: each is a millisecond of a large table."""
        for part in ("slots", "layout", "windowed", "_references"):
            getattr(self, part)
            yield

    def place(self, row: MappingRow) -> int:
        """The index of a row's slot."""
        return self.places[row.code]

    def bind(self, terminals: Sequence[str]) -> dict[str, dict[int, str]]:
        """Resolves the rows' sources to terminals: uid -> index of slot -> point.

        A source that none of the object's terminals matches stays without values.
        """
        fed: dict[str, dict[int, str]] = {}
        listed = frozenset(terminals)
        for place, reference in self._references:
            point = reference.among(terminals, listed)  # None: a shorter list, or another object's terminal
            if point is not None and point.key:
                fed.setdefault(point.terminal_id, {})[place] = point.key
        return fed

    @cached_property
    def _references(self) -> list[tuple[int, Reference]]:
        """The sources of the rows that have one, and that are well formed."""
        found = []
        for place, row in enumerate(self.rows):
            with suppress(ValueError):
                found += [(place, Reference(row.point))] if row.point else []
        return found


def mapping_rows_check(rows: Any) -> Steps[None]:
    """Checks that rows are a mapping, row by row.

    Raises:
        ValueError: says what is wrong, with row and column.
    """
    if isinstance(rows, list):
        check_cells(rows)
        yield from parts_check(rows, _FIRST_SOURCE)
    yield from table_steps(rows)


def mapping_problems(rows: Any) -> Steps[list[RowError]]:
    """All that is wrong with rows, row by row: the first of each; what rows are to each other where each is right.

    Raises:
        ValueError: something is wrong that isn't one row's.
    """
    _check_size(rows)
    check_cells(rows)
    yield from parts_check(rows, _FIRST_SOURCE)
    parsed: list[MappingRow] = []
    found: list[RowError] = []
    for number, cells in enumerate(rows, 1):
        try:
            parsed.append(parse_row(cells, number))
        except RowError as error:
            found.append(error)
        yield
    if found:
        return found
    try:
        places = _places(parsed)
        for row in parsed:
            try:
                _check_names(row, parsed, places)
            except RowError as error:
                found.append(error)
            yield
        if not found:
            yield from _in_order(parsed, places)
    except RowError as error:
        found.append(error)
    return found


def _check_size(rows: Any) -> None:
    if not isinstance(rows, list):
        raise ValueError(say("expected_rows"))
    if len(rows) > MAX_ROWS:
        raise ValueError(say("too_many_rows_got", most=MAX_ROWS, got=len(rows)))


def parse_table(rows: Any) -> MappingTable:
    """Parses and checks a mapping's rows.

    Raises:
        ValueError: says what is wrong, with row and column.
    """
    return at_once(table_steps(rows))


def table_steps(rows: Any) -> Steps[MappingTable]:
    """As ``parse_table``, row by row: a large mapping takes half a second."""
    _check_size(rows)
    parsed = []
    for number, cells in enumerate(rows, 1):
        parsed.append(parse_row(cells, number))
        yield
    places = _places(parsed)
    for row in parsed:
        _check_names(row, parsed, places)
        yield
    derived = yield from _in_order(parsed, places)
    table = MappingTable(tuple(parsed), places, derived)
    yield from table.preparation()
    return table


def _places(rows: Sequence[MappingRow]) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        if row.code in places:
            raise RowError(row.number, 1, say("code_of_other_row", code=row.code, row=places[row.code] + 1))
        places[row.code] = place
    return places


def _check_names(row: MappingRow, rows: Sequence[MappingRow], places: Mapping[str, int]) -> None:
    for name, column in row.names:
        if name not in places:
            raise RowError(row.number, column, say("no_row_with_code", code=name[:64]))
        if rows[places[name]].kind is RowKind.EVNT:
            raise RowError(row.number, column, say("is_an_event", code=name))


def _in_order(rows: Sequence[MappingRow], places: Mapping[str, int]) -> Steps[tuple[MappingRow, ...]]:
    """Sorts the derived rows so that each comes after those that it names, otherwise in their own order."""
    derived = [row for row in rows if row.kind in (RowKind.FUNC, RowKind.COL, RowKind.STT)]
    codes = {row.code for row in derived}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for row in derived:
        sorter.add(row.code, *(name for name, _ in row.names if name in codes))
        yield
    try:
        return tuple(rows[places[code]] for code in sorter.static_order())
    except CycleError as error:
        circle = error.args[1]
        row = rows[min(places[code] for code in circle)]
        raise RowError(row.number, row.expression_column, say("circular", codes=" -> ".join(circle))) from None


def _rule(row: MappingRow) -> str:
    if row.kind is RowKind.EVNT and row.condition is not None:
        return f"{row.point} {row.interval_us} {row.condition.text}"
    if row.kind is RowKind.STT:
        return f"{row.window_us} {row.fn} {row.of}"
    return f"{row.interval_us}"
