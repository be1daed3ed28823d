"""How often each set of names occurs in some records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set

import msgspec


class HourTally(msgspec.Struct, array_like=True):
    """How often each set of names occurs in an hour's (or a segment's) records; counts for any names follow from it.

    ``sets``: little-endian numbers, bit n for ``names[n]``; ``counts``: one for each set.
    """

    count: int
    names: list[str]
    sets: list[bytes]
    counts: list[int]

    def carrying(self, keys: Set[str]) -> int:
        """The number of records that carry at least one of the names."""
        wanted = sum(1 << place for place, name in enumerate(self.names) if name in keys)
        if not wanted:
            return 0
        each = zip(self.sets, self.counts, strict=True)
        return sum(count for names, count in each if int.from_bytes(names, "little") & wanted)


def make_tally(records: Iterable[Iterable[str]]) -> HourTally:
    """The tally of records, each given by the names that it carries."""
    return tally_of(Counter(map(tuple, records)))


def tally_of(orders: Mapping[tuple[str, ...], int]) -> HourTally:
    """The tally of records, given how many carry these names in this order."""
    places: dict[str, int] = {}
    sets: Counter[int] = Counter()
    for names, count in orders.items():
        sets[sum(1 << places.setdefault(name, len(places)) for name in names)] += count
    width = (len(places) + 7) // 8
    return HourTally(
        count=sum(sets.values()),
        names=list(places),
        sets=[each.to_bytes(width, "little") for each in sets],
        counts=list(sets.values()),
    )
