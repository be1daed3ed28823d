"""``NameIndex``: the names of many records in memory, in which any part of a name is found in a millisecond or two.

The names of some hundred records are one text in small letters, and are searched together: a record's names between
marks, so that a name that is the text, or begins with it, is found by the mark before it. Records lie in order, the
shortest first, so that the first ones of a kind of match are its best ones. A record costs about 300 bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from heapq import nsmallest

import msgspec

from terrazzo.loop_pauses import Steps

EXACT, BEGINS, WORD, WITHIN = range(4)

_MARK = "\x01"
_NO_MARKS = {ord(_MARK): " "}
_MOST = 1_000  # records of a piece; a larger one is halved
_FEW = 500  # matches that are ranked one by one; of more the best kinds are looked for first


class Named(msgspec.Struct, frozen=True, order=True, gc=False):
    """A record: in order of ``length``, then of ``key``, where it fits as well as another one."""

    length: int
    key: str
    record_id: int
    texts: tuple[str, ...]


class _Piece:
    """Some records in their order, and their names as one text, made when it is searched."""

    __slots__ = ("_ends", "_text", "records")

    def __init__(self, records: list[Named]) -> None:
        self.records = records
        self._text = ""
        self._ends: list[int] = []

    def changed(self) -> None:
        self._text, self._ends = "", []

    def found(self, wanted: str) -> Iterator[Named]:
        """The records in which a text is found, each once, in their order."""
        text, ends, at = self._text or self._make(), self._ends, 0
        while (at := text.find(wanted, at)) >= 0:
            place = bisect_right(ends, at)
            yield self.records[place]
            at = ends[place]

    def found_as_word(self, wanted: str) -> Iterator[Named]:
        """The records in which a word begins with a text, that is not the first one of a name."""
        text, ends, at = self._text or self._make(), self._ends, -1
        while (at := text.find(wanted, at + 1)) >= 0:
            before = text[at - 1]
            if not before.isalnum() and before != _MARK:
                place = bisect_right(ends, at)
                yield self.records[place]
                at = ends[place] - 1

    def _make(self) -> str:
        parts, ends, end = [], [], 0
        for each in self.records:
            part = _MARK + _MARK.join([_plain(text) for text in each.texts]) + _MARK
            end += len(part)
            parts.append(part)
            ends.append(end)
        self._text, self._ends = "".join(parts), ends
        return self._text


class NameIndex:
    """The records of one kind, by their ids."""

    def __init__(self) -> None:
        self._records: dict[int, Named] = {}
        self._pieces = [_Piece([])]

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Named) -> None:
        """Adds a record, or takes the place of the one with its id."""
        if (before := self._records.get(record.record_id)) is not None:
            if before == record:
                return
            self.drop(record.record_id)
        self._records[record.record_id] = record
        piece = self._pieces[self._place(record)]
        insort(piece.records, record)
        piece.changed()
        if len(piece.records) > _MOST:
            self._halve(piece)

    def drop(self, record_id: int) -> None:
        """Removes a record; unknown ids are ignored."""
        record = self._records.pop(record_id, None)
        if record is None:
            return
        place = self._place(record)
        piece = self._pieces[place]
        del piece.records[bisect_left(piece.records, record)]
        piece.changed()
        if not piece.records and len(self._pieces) > 1:
            del self._pieces[place]

    def find_steps(self, text: str, limit: int) -> Steps[list[tuple[int, Named]]]:
        """The best ``limit`` records with this text in one of their names, each with its rank.

        It is ``EXACT`` where a name is the text, ``BEGINS`` where one begins with it, ``WORD`` where a word of one
        does, else ``WITHIN``. The case of letters doesn't matter. Records that come or go between steps may be found
        or not.
        """
        lowered, few = _plain(text), list[Named]()
        for piece in list(self._pieces):
            few += piece.found(lowered)
            if len(few) > _FEW:
                break
            yield
        else:
            ranked = [
                (min(rank_of(text, lowered) for text in each.texts if lowered in _plain(text)), each) for each in few
            ]
            return nsmallest(limit, ranked)
        return (yield from self._best_of_many(lowered, limit))

    def _best_of_many(self, lowered: str, limit: int) -> Steps[list[tuple[int, Named]]]:
        best: dict[int, tuple[int, Named]] = {}
        for rank, wanted in enumerate((_MARK + lowered + _MARK, _MARK + lowered, lowered, lowered)):
            for piece in list(self._pieces):
                for each in piece.found_as_word(wanted) if rank == WORD else piece.found(wanted):
                    best.setdefault(each.record_id, (rank, each))
                    if len(best) >= limit:
                        return sorted(best.values())
                yield
        return sorted(best.values())

    def _place(self, record: Named) -> int:
        """Of the piece that a record is in, or belongs in."""
        pieces = self._pieces
        low, high = 0, len(pieces) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if pieces[middle].records[0] <= record:
                low = middle
            else:
                high = middle - 1
        return low

    def _halve(self, piece: _Piece) -> None:
        middle = len(piece.records) // 2
        second = _Piece(piece.records[middle:])
        del piece.records[middle:]
        piece.changed()
        self._pieces.insert(self._pieces.index(piece) + 1, second)


def rank_of(name: str, lowered: str) -> int:
    """How well a name fits a text in small letters; ``WITHIN`` also where it doesn't have it."""
    name = _plain(name)
    if name == lowered:
        return EXACT
    if name.startswith(lowered):
        return BEGINS
    at = name.find(lowered)
    while at > 0:
        if not name[at - 1].isalnum():
            return WORD
        at = name.find(lowered, at + 1)
    return WITHIN


def _plain(text: str) -> str:
    lowered = text.lower()
    return lowered.translate(_NO_MARKS) if _MARK in lowered else lowered
