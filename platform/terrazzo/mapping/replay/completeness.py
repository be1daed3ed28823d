"""Whether the reports that were read say all that is to be known of an object, whatever came before them. Pure.

A variable is known when its point was reported; one that is computed from variables, when those were known before it;
the edge of an event, when its condition was true or false since then; a label, when its variable has closed it since.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from terrazzo.domain.mapping_row import RowKind
from terrazzo.domain.mapping_table import MappingTable
from terrazzo.mapping.catalogue import BoundMapping
from terrazzo.mapping.labels import Key, LabelRule

_UNKNOWN: Any = None
"""An edge of which nothing is known: false, to whatever looks at it."""


class Completeness:
    """Follows one run from its first report on.

    Args:
        bound: the object, with the state that the run changes.
    """

    def __init__(self, bound: BoundMapping, terminals: Sequence[str]) -> None:
        table = bound.state.table
        self._bound = bound
        self._fed = table.bind(terminals)
        self._places = frozenset(place for places in self._fed.values() for place in places)
        self._left = rounds(table)  # None: it depends on its whole past
        self._settle_us = sum(row.window_us + row.interval_us for row in table.rows)
        self._missing = set(self._places)
        self._next_us = 0  # from then on the next round counts
        self._is_settled = False
        self._loose = self._rules()  # labels that nothing has closed yet

    def see(self, uid: str, points: Collection[str], time_us: int) -> None:
        """Takes note of a report that the state has taken in."""
        self._see_labels()
        if self._is_settled or self._left is None or time_us < self._next_us:
            return
        if self._left:
            self._missing -= {place for place, point in self._fed.get(uid, {}).items() if point in points}
            if not self._missing:
                self._left -= 1
                self._missing = set(self._places) if self._left else set()
                self._next_us = time_us + self._settle_us
        if not self._left and time_us >= self._next_us:
            self._settle()

    def _settle(self) -> None:
        """Notes that all variables are known: edges and labels can be trusted from here on."""
        self._is_settled = True
        state, self._loose = self._bound.state, self._rules()
        for place, row in enumerate(state.table.rows):
            if row.kind is RowKind.EVNT:
                state.edges[place] = _UNKNOWN
        self._see_labels()

    def _rules(self) -> dict[Key, LabelRule]:
        return {rule.key: rule for some in self._bound.rules.values() for rule in some}

    def _see_labels(self) -> None:
        for key, rule in list(self._loose.items()):
            value = self._bound.state.value(rule.code)
            if value is not None and rule.closes(value):
                del self._loose[key]

    @property
    def is_all(self) -> bool:
        """Whether the reports seen so far determine everything about the object."""
        return self._is_settled and not self._loose and _UNKNOWN not in self._bound.state.edges

    def end(self) -> list[str]:
        """The codes of which not all is known, sorted. What is unknown of edges counts as false from now on."""
        state = self._bound.state
        places = set(self._missing)
        if not self._is_settled and not places:
            places = {place for place, row in enumerate(state.table.rows) if row.window_us or row.interval_us}
        for place, edge in enumerate(state.edges):
            if edge is _UNKNOWN:
                places.add(place)
                state.edges[place] = False
        return sorted({state.table.rows[place].code for place in places} | {code for _, code in self._loose})


def rounds(table: MappingTable) -> int | None:
    """How often every point has to be reported until all variables are known; None: that can't be said.

    A variable with an expression over others is computed with its own point from what they are then.
    """
    rows = {row.code: row for row in table.rows}
    depths: dict[str, int] = {}
    open_: set[str] = set()

    def depth(code: str) -> int:
        if code in depths:
            return depths[code]
        if code in open_:
            raise RecursionError
        open_.add(code)
        row = rows[code]
        below = [depth(name) for name, _ in row.names]
        depths[code] = max(below, default=0) + (1 if below and row.kind is RowKind.STA else 0)
        return depths[code]

    try:
        return 1 + max(map(depth, rows), default=0)
    except RecursionError:
        return None


def worded(codes: Sequence[str], most: int = 10) -> str:
    """Names codes in a sentence: the first few, and how many more."""
    return ", ".join(codes[:most]) + (f" and {len(codes) - most} more" if len(codes) > most else "")
