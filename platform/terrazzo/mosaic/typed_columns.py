"""Which type a column of a file has: one for all its points, decided before the first is written.

============================================= ==========================================
a variable's points in the range               its column
============================================= ==========================================
numbers                                        float64
true and false                                 boolean
numbers, true and false                        float64, true is 1, false 0
texts                                          text
texts and others                               text, others as ``21.5``, ``21``, ``true``
============================================= ==========================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from terrazzo.mosaic.body import text_of
from terrazzo.ports.store import Points

ColumnType = Literal["number", "flag", "text"]

NUMBER, FLAG, TEXT, NONE = 0, 1, 2, 3
"""The kinds of ``Points``, and of a row that has none."""


class UnforeseenType(Exception):
    """A point has no place in its column: it came while the file was made."""


class TypeTally:
    """The kinds that each name's points have; the types follow from them."""

    def __init__(self) -> None:
        self._kinds: dict[str, int] = {}

    def add(self, columns: Mapping[str, Points]) -> None:
        """Takes note of some points."""
        for name, points in columns.items():
            found = self._kinds.get(name, 0)
            for kind in (NUMBER, FLAG, TEXT):
                if not found & 1 << kind and (points.kinds == kind).any():
                    found |= 1 << kind
            self._kinds[name] = found

    def types(self) -> dict[str, ColumnType]:
        """The type of each name that has points."""
        return {name: _type(kinds) for name, kinds in self._kinds.items()}


def _type(kinds: int) -> ColumnType:
    if kinds & 1 << TEXT:
        return "text"
    return "number" if kinds & 1 << NUMBER else "flag"


def check_type(points: Points, type: ColumnType) -> None:
    """Raises ``UnforeseenType`` where a point doesn't fit into its column."""
    kinds = points.kinds
    if type != "text" and ((kinds == TEXT).any() or (type == "flag" and (kinds == NUMBER).any())):
        raise UnforeseenType(type)


def texts_of(points: Points) -> list[str | None]:
    """The values of a column of texts."""
    return [
        None
        if kind == NONE
        else points.texts[int(number)]
        if kind == TEXT
        else text_of(bool(number) if kind else number)
        for kind, number in zip(points.kinds.tolist(), points.numbers.tolist(), strict=True)
    ]
