"""Records that come after their hour was computed: marked in the commit that stores them, so that no kill loses it.

A company's marks are bounded, however many of its records come late before the analysis has worked them off: many notes
become one, and of too many spans all the company's objects are one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

import msgspec

from terrazzo.memory_shares import Kept
from terrazzo.ports.store import Notes, Record
from terrazzo.sparse_log import SparseLog

PREFIX = "late/"
MOST_SPANS = 2_000  # of a company, when many notes become one; twice as many before
MOST_NOTES = 64  # of a company, besides what one commit adds
SPAN_BYTES = 150  # of memory
_SPAN_US = 900_000_000  # every hour of every zone is made of these
_NOBODY = 0

LateSpan = tuple[int, int, int]
"""An object, and from when to when (exclusive) something came late; below zero: a company, with all its objects."""

_log = logging.getLogger(__name__)
_sparse = SparseLog(_log)
_spans = msgspec.msgpack.Decoder(list[LateSpan])
_Marks = dict[str, list[LateSpan]]  # of a company, by the note's name


class LateMarks:
    """Stands between the ingest, which asks for marks at each commit, and the analysis, which works them off.

    An object's *fence* is the time up to which something was computed, or is about to be.
    """

    def __init__(self) -> None:
        self.unreadable = 0  # notes that were there at the start; they stay where they are
        self._fences: dict[str, int] = {}  # by series
        self._owners: dict[str, int] = {}  # their companies
        self._last = 0  # number of the last note
        self._marked: dict[int, _Marks] = {}  # notes of commits, by company
        self._sealed: dict[int, _Marks] = {}  # not committed yet
        self._replaced: list[tuple[int, str]] = []  # notes that are gone with the commit of those, and whose they were
        self._settled = asyncio.Event()
        self._settled.set()

    def load(self, notes: dict[str, bytes]) -> None:
        """Takes over the marks that an earlier run left; ``notes``: those that begin with ``PREFIX``.

        They are nobody's: of whom they are isn't known yet.
        """
        found: _Marks = {}
        for name, body in notes.items():
            try:
                number, spans = int(name.removeprefix(PREFIX)), _spans.decode(body)
            except ValueError:  # msgspec's, too
                self.unreadable += 1
                _sparse.error("the store's note %r of late records can't be read and is left as it is", name)
                continue
            self._last, found[name] = max(self._last, number), spans
        self._marked = {_NOBODY: found} if found else {}

    # What the ingest calls

    def on_sealed(self, records: Sequence[Record]) -> Notes:
        """The notes that a group's mosaic records need; None in place of those that are not needed any more."""
        self._settled.clear()
        self._replaced = []
        fences, spans = self._fences, dict[int, set[tuple[str, int]]]()
        for record in records if fences else ():
            if record.time_us < fences.get(record.series, 0):
                owner = self._owners.get(record.series, _NOBODY)
                spans.setdefault(owner, set()).add((record.series, record.time_us // _SPAN_US))
        notes: dict[str, bytes | None] = {}
        for owner, some in spans.items():
            notes |= self._note(owner, [(int(series[2:]), at * _SPAN_US, (at + 1) * _SPAN_US) for series, at in some])
        return notes

    def _note(self, owner: int, spans: list[LateSpan]) -> dict[str, bytes | None]:
        """A note for a company; it takes the place of all that are there when these are many."""
        there, gone = self._marked.get(owner, {}), list[str]()
        if len(there) >= MOST_NOTES or sum(map(len, there.values())) > 2 * MOST_SPANS:
            gone = list(there)
            spans += [span for some in there.values() for span in some]
        found = joined(spans)
        if owner != _NOBODY and len(found) > MOST_SPANS:
            found = [(-owner, min(each[1] for each in found), max(each[2] for each in found))]
            _sparse.warning("company %d: too much came late: all its objects from then on are computed again", owner)
        self._last += 1
        name = f"{PREFIX}{self._last:020}"
        self._sealed.setdefault(owner, {})[name] = found
        self._replaced += [(owner, each) for each in gone]
        return {name: msgspec.msgpack.encode(found), **dict.fromkeys(gone)}

    def on_committed(self) -> None:
        """The ingest calls this when the group of the last ``on_sealed`` is stored: its marks count from now on."""
        for owner, name in self._replaced:
            self._drop(owner, name)
        for owner, marks in self._sealed.items():
            self._marked.setdefault(owner, {}).update(marks)
        self._sealed, self._replaced = {}, []
        self._settled.set()

    # What the analysis calls

    async def fence(self, company_id: int, object_id: int, until_us: int) -> None:
        """From now on records before ``until_us`` are marked; returns when all others are stored."""
        series = f"m/{object_id}"
        if until_us > self._fences.get(series, 0):
            self._fences[series], self._owners[series] = until_us, company_id
            await self._settled.wait()

    def lift(self, object_id: int) -> None:
        """Ends what ``fence`` began: nothing is computed of this object any more, so nothing of it is marked."""
        self._fences.pop(f"m/{object_id}", None)
        self._owners.pop(f"m/{object_id}", None)

    def companies(self) -> list[int]:
        """Whose marks there are; 0: those of earlier runs."""
        return list(self._marked)

    def marked(self, company_id: int) -> Mapping[str, Sequence[LateSpan]]:
        """The spans that came late, by the name of the store's note that keeps each, the oldest first."""
        return self._marked.get(company_id, {})

    def forget(self, company_id: int, names: Sequence[str]) -> None:
        """Forgets the spans of these notes, which the caller has deleted from the store."""
        for name in names:
            self._drop(company_id, name)

    def _drop(self, owner: int, name: str) -> None:
        marks = self._marked.get(owner, {})
        marks.pop(name, None)
        if not marks:
            self._marked.pop(owner, None)

    def kept(self) -> Mapping[int, Kept]:
        """What each company's marks take of memory."""
        items = {owner: sum(map(len, marks.values())) for owner, marks in self._marked.items()}
        return {owner: Kept(SPAN_BYTES * spans, len(self._marked[owner])) for owner, spans in items.items()}


def joined(spans: list[LateSpan]) -> list[LateSpan]:
    """The spans sorted by time, with those that touch or overlap joined."""
    found: list[LateSpan] = []
    for object_id, start_us, end_us in sorted(spans):
        if found and found[-1][0] == object_id and start_us <= found[-1][2]:
            found[-1] = (object_id, found[-1][1], max(end_us, found[-1][2]))
        else:
            found.append((object_id, start_us, end_us))
    return found
