"""Records that come after their hour was computed: marked in the commit that stores them, so that no kill loses it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from terrazzo.ports.store import Notes, Record

PREFIX = "late/"
_SPAN_US = 900_000_000  # every hour of every zone is made of these

LateSpan = tuple[int, int, int]
"""An object, and from when to when (exclusive) something came late."""

_spans = msgspec.msgpack.Decoder(list[LateSpan])


class LateMarks:
    """Stands between the ingest, which asks for marks at each commit, and the analysis, which works them off.

    An object's *fence* is the time up to which something was computed, or is about to be.
    """

    def __init__(self) -> None:
        self._fences: dict[str, int] = {}  # by series
        self._last = 0  # number of the last note
        self._marked: dict[str, list[LateSpan]] = {}  # notes of commits, by name
        self._sealed: dict[str, list[LateSpan]] = {}  # not committed yet
        self._settled = asyncio.Event()
        self._settled.set()

    def load(self, notes: dict[str, bytes]) -> None:
        """Takes over the marks that an earlier run left; ``notes``: those that begin with ``PREFIX``."""
        self._marked = {name: _spans.decode(body) for name, body in notes.items()}
        self._last = max((int(name.removeprefix(PREFIX)) for name in notes), default=0)

    # What the ingest calls

    def on_sealed(self, records: Sequence[Record]) -> Notes:
        """The notes that a group's mosaic records need."""
        self._settled.clear()
        fences, spans = self._fences, set()
        for record in records if fences else ():
            if record.time_us < fences.get(record.series, 0):
                spans.add((record.series, record.time_us // _SPAN_US))
        if not spans:
            return {}
        self._last += 1
        name = f"{PREFIX}{self._last:020}"
        found = joined([(int(series[2:]), at * _SPAN_US, (at + 1) * _SPAN_US) for series, at in spans])
        self._sealed[name] = found
        return {name: msgspec.msgpack.encode(found)}

    def on_committed(self) -> None:
        """The ingest calls this when the group of the last ``on_sealed`` is stored: its marks count from now on."""
        self._marked |= self._sealed
        self._sealed = {}
        self._settled.set()

    # What the analysis calls

    async def fence(self, object_id: int, until_us: int) -> None:
        """From now on records before ``until_us`` are marked; returns when all others are stored."""
        series = f"m/{object_id}"
        if until_us > self._fences.get(series, 0):
            self._fences[series] = until_us
            await self._settled.wait()

    def lift(self, object_id: int) -> None:
        """Ends what ``fence`` began: nothing is computed of this object any more, so nothing of it is marked."""
        self._fences.pop(f"m/{object_id}", None)

    def marked(self) -> dict[str, list[LateSpan]]:
        """The spans that came late, by the name of the store's note that keeps each."""
        return dict(self._marked)

    def forget(self, names: Sequence[str]) -> None:
        """Forgets the spans of these notes, which the caller has deleted from the store."""
        for name in names:
            self._marked.pop(name, None)


def joined(spans: list[LateSpan]) -> list[LateSpan]:
    """The spans sorted by time, with those that touch or overlap joined."""
    found: list[LateSpan] = []
    for object_id, start_us, end_us in sorted(spans):
        if found and found[-1][0] == object_id and start_us <= found[-1][2]:
            found[-1] = (object_id, found[-1][1], max(end_us, found[-1][2]))
        else:
            found.append((object_id, start_us, end_us))
    return found
