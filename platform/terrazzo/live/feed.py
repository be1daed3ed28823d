"""A feed, which is one selector's recent entries in a ring, and the subscriptions that read it, each at its own place.

Pure: no clock, no socket. What a slow subscriber has not read is overwritten, oldest first, and counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from terrazzo.domain.actor import Actor
from terrazzo.live.frames import ENTRY_BYTES, End, FrameEntry, Framing, Gap, Lost, Selectable, Style, gap_frame
from terrazzo.live.selector import EVERY_KEY, Selector
from terrazzo.live.stats import LiveStats

_MOST_CUTS = 64  # kept for readers at the same place
_MOST_STYLES = 64
_MOST_MARKS = 60
_DROPPED = 1_000  # entries at a time
_COMPACT = 256  # entries that are gone before the list is made shorter
BATCH_BYTES = 128 * 1024  # of frames that leave together; the larger, the less a frame costs
_KEY_BYTES = 100  # of a selected variable beside its name
_SIZE = attrgetter("size")
_SENT = 2  # times that data is kept once it was sent: for all, and as it was framed
_LOOKED_AT = 200  # entries at a time, to find those with the variables that a subscription selects


class FrameBatch(NamedTuple):
    """Encoded frames that leave together, and the reader's place in the feed after them."""

    data: bytes
    place: int
    seq: int  # of the last entry
    frames: int  # those in ``data``


class Feed:
    """The recent entries of one selector, as a ring. *Places* count entries from the feed's beginning and never repeat.

    Args:
        seq: the last number given before the feed began: what came earlier isn't here.
        frames: how many entries are kept.
    """

    def __init__(self, selector: Selector, *, seq: int, frames: int) -> None:
        self.selector = selector
        self.subscriptions: dict[Subscription, None] = {}
        self.idle_since_s: float | None = None  # since nobody subscribes
        self.size = 0  # bytes, roughly
        self.gone_seq = seq  # the number of the newest entry that isn't here any more
        self.first = 0  # the place of the oldest entry
        self.end = 0  # the place of the next entry to come
        self._copies = _SENT  # of each entry's data, as they are counted
        self.styled = 0  # rises when ``style`` begins anew: two objects for equal styles would be framed apart
        self._frames = frames
        self._entries: list[FrameEntry] = []
        self._head = 0  # index of the oldest entry
        self._marks: deque[tuple[float, int]] = deque()  # where the feed ended at some times, the earliest first
        self._styles: dict[tuple[int, Framing, frozenset[str]], Style] = {}
        self._cuts: dict[tuple[int, Style], FrameBatch] = {}
        self._selectables: dict[FrameEntry, Selectable] = {}  # read once for all who select some variables

    @property
    def owner(self) -> int | None:
        """The company that it is kept for; None: the platform's administrators."""
        return self.selector.company_id

    @property
    def is_long(self) -> bool:
        """Whether there are entries before the newest."""
        return len(self._entries) - self._head > 1

    def append(self, entries: Sequence[FrameEntry]) -> int:
        """Adds the newest entries, in their order; a full ring drops its oldest. Returns by how many bytes it grew."""
        self._entries += entries
        size: int = self._copies * sum(map(_SIZE, entries)) + ENTRY_BYTES * len(entries)
        self.size += size
        self.end += len(entries)
        while self.end - self.first > self._frames:
            size -= self.drop_oldest()
        return size

    def drop_oldest(self) -> int:
        """Drops the oldest entry; returns the bytes that it was counted with, 0 where there is none."""
        if self._head == len(self._entries):
            return 0
        entry = self._entries[self._head]
        self._entries[self._head] = _GONE  # which frees it
        self._head += 1
        self.first += 1
        self.gone_seq = entry.seq
        size = self._copies * entry.size + ENTRY_BYTES
        self.size -= size
        if self._head >= _COMPACT and self._head * 2 >= len(self._entries):
            del self._entries[: self._head]
            self._head = 0
        return size

    def rest(self) -> int:
        """Keeps each entry's data once: nobody reads them as they were framed. Returns the bytes that were freed."""
        for entry in self._entries[self._head :]:
            entry.forget_frame()
        return -self._count_copies(1)

    def wake(self) -> int:
        """Somebody reads again: what is sent will be kept twice. Returns by how many bytes it is expected to grow."""
        return self._count_copies(_SENT)

    def _count_copies(self, copies: int) -> int:
        data = (self.size - ENTRY_BYTES * (self.end - self.first)) // self._copies
        grown = (copies - self._copies) * data
        self._copies = copies
        self.size += grown
        return grown

    def drop_old(self, now_s: float, kept_s: float) -> int:
        """Drops entries that have been kept for so many seconds, or a little longer; some of them, where many are due.

        To be called every now and then: how old an entry is shows by the place of the feed's end at earlier calls.
        Returns the bytes that were freed.
        """
        marks, freed = self._marks, 0
        if self.end > (marks[-1][1] if marks else self.first) and (
            not marks or now_s - marks[-1][0] >= kept_s / _MOST_MARKS
        ):
            marks.append((now_s, self.end))
        while marks and now_s - marks[0][0] >= kept_s:
            last = min(marks[0][1], self.first + _DROPPED)
            while self.first < last:
                freed += self.drop_oldest()
            if self.first < marks[0][1]:
                break
            marks.popleft()
        return freed

    def place_after(self, seq: int) -> int:
        """The place of the first entry with a later number."""
        index = bisect_right(self._entries, seq, lo=self._head, key=lambda entry: entry.seq)
        return self.first + index - self._head

    def has(self, place: int) -> bool:
        """Whether there is an entry at a place, or was one, that may be sent."""
        if place >= self.end:
            return False
        return place < self.first or self._entries[self._head + place - self.first].waits_for is None

    def cut(self, place: int, style: Style, *, most_bytes: int) -> FrameBatch:
        """The frames from a place on, up to about ``most_bytes``; readers at the same place share the work."""
        found = self._cuts.get((place, style))
        if found is None:
            if len(self._cuts) >= _MOST_CUTS:
                self._cuts.clear()
            found = self._cut_selected(place, style, most_bytes) if style.keys else self._cut(place, style, most_bytes)
            if found.place > place:  # where there was nothing, there may be something in a moment
                self._cuts[place, style] = found
        return found

    def forget_cuts(self) -> None:
        """Frees what readers at the same place shared."""
        self._cuts.clear()
        self._selectables.clear()

    def forget_styles(self) -> None:
        """Frees what the last readers asked for: there are none now."""
        self.forget_cuts()
        self._styles.clear()
        self.styled += 1

    def style(self, label: int, framing: Framing, keys: frozenset[str]) -> Style:
        """The one object for equal styles, which entries compare by identity."""
        found = self._styles.get((label, framing, keys))
        if found is None:
            if len(self._styles) >= _MOST_STYLES:
                self._styles.clear()
                self.styled += 1
            found = self._styles[label, framing, keys] = Style(label, framing, keys)
        return found

    def _cut(self, place: int, style: Style, most_bytes: int) -> FrameBatch:
        parts: list[bytes] = []
        entry, size = None, 0
        for index in range(self._head + place - self.first, len(self._entries)):
            if self._entries[index].waits_for is not None:
                break
            entry = self._entries[index]
            frame = entry.framed if entry.style is style else style.frame(entry)
            parts.append(frame)
            size += len(frame)
            if size >= most_bytes:
                break
        return FrameBatch(b"".join(parts), place + len(parts), entry.seq if entry else self.gone_seq, len(parts))

    def _cut_selected(self, place: int, style: Style, most_bytes: int) -> FrameBatch:
        """As ``_cut``, of the variables that the style selects; looks at so much, whether or not it finds any."""
        parts: list[bytes] = []
        begin, seq, size = self._head + place - self.first, self.gone_seq, 0
        for entry in self._entries[begin : begin + _LOOKED_AT]:
            if entry.waits_for is not None:
                break
            place, seq = place + 1, entry.seq
            size += len(entry.tail)
            tail = self._selectable(entry).select(style.keys)
            if tail is not None:
                parts.append(style.frame_of(tail))
            if size >= most_bytes:
                break
        return FrameBatch(b"".join(parts), place, seq, len(parts))

    def _selectable(self, entry: FrameEntry) -> Selectable:
        found = self._selectables.get(entry)
        if found is None:
            found = self._selectables[entry] = Selectable(entry)
        return found


_GONE = FrameEntry("", None, size=0)


class Sink(Protocol):
    """The writing side of a connection, as live frames need it."""

    @property
    def framing(self) -> Framing:
        """Wraps one frame for the connection's transport."""

    @property
    def is_open(self) -> bool:
        """Whether anything may still be written."""

    @property
    def has_room(self) -> bool:
        """Whether the peer keeps up: few bytes wait to be sent."""

    def write(self, data: bytes) -> None:
        """Sends whole frames, without waiting."""


class FrameConnection(Protocol):
    """The connection of a subscription, as the frame sender needs it."""

    sink: Sink

    async def may_go_on(self, subscription: Subscription) -> bool:
        """Checks the actor's rights; without them the subscription ends with a frame that says why."""

    async def check_all(self) -> None:
        """Ends every subscription that its actor has lost the right to."""

    def end(self, subscription: Subscription, end: End) -> None:
        """Ends a subscription from this side."""


def key_bytes_of(keys: frozenset[str]) -> int:
    """The memory that a selection of variables takes, roughly, in bytes."""
    return sum(map(len, keys)) + _KEY_BYTES * len(keys)


class Subscription:
    """One client's reading of a feed, at its own place.

    Args:
        number: its number on the connection, from 1.
        actor: the user whose rights it was made with.
        seq: the last number that counts as seen.
        keys: of mosaic records only these variables; empty: all.
    """

    __slots__ = (
        "_gap",
        "_place",
        "_style",
        "_styled",
        "actor",
        "connection",
        "feed",
        "key_bytes",
        "keys",
        "number",
        "seq",
    )

    def __init__(
        self,
        connection: FrameConnection,
        number: int,
        actor: Actor,
        feed: Feed,
        *,
        seq: int,
        keys: frozenset[str] = EVERY_KEY,
    ) -> None:
        self.connection = connection
        self.keys = keys
        self.key_bytes = key_bytes_of(keys)
        self.number = number
        self.actor = actor
        self.feed = feed
        self.seq = seq  # the last number that was sent, or that counts as seen
        self._place = feed.end
        self._style: Style | None = None  # as the feed has it
        self._styled = -1  # since when
        self._gap: Gap | None = None

    @property
    def is_behind(self) -> bool:
        """Whether there are entries, or a gap, to send."""
        return self._gap is not None or self.feed.has(self._place)

    def resume(self, since: int, *, first: int, last: int) -> None:
        """Goes back to the first entry after the number ``since``; entries that are no longer kept become a gap frame.

        Args:
            first: the number before the first one given since the platform's start.
            last: the last one given.
        """
        feed = self.feed
        if since > last:
            self._gap = Gap(since=since, seq=last, lost=None, reason=Lost.UNKNOWN)
            return
        if since < feed.gone_seq:
            reason = Lost.RESTART if since < first else Lost.FORGOTTEN
            self._gap = Gap(since=since, seq=feed.gone_seq, lost=None, reason=reason)
            self._place = feed.first
        else:
            self._place = feed.place_after(since)
        self.seq = max(since, feed.gone_seq)

    def take(self, framing: Framing, stats: LiveStats) -> bytes:
        """The next frames as bytes, about ``BATCH_BYTES`` at most; first a gap frame, where entries are missing.

        Empty where the entries that it looked at have none of the variables that it selects.
        """
        feed, data = self.feed, b""
        self._note_overwritten(stats)
        if self._gap is not None:
            data = framing(gap_frame(self.number, self._gap))
            self._gap = None
            stats.gaps += 1
        style = self._style
        if style is None or self._styled != feed.styled or style.framing is not framing:
            style = self._style = feed.style(self.number, framing, self.keys)
            self._styled = feed.styled
        batch = feed.cut(self._place, style, most_bytes=BATCH_BYTES)
        if batch.place > self._place:
            self._place, self.seq = batch.place, batch.seq
            stats.frames_sent += batch.frames
        return data + batch.data if data else batch.data

    def _note_overwritten(self, stats: LiveStats) -> None:
        feed = self.feed
        lost = feed.first - self._place
        if lost <= 0:
            return
        stats.frames_dropped += lost
        if self._gap is None:
            known = None if self.keys else lost  # of a selection nobody has counted
            self._gap = Gap(since=self.seq, seq=feed.gone_seq, lost=known, reason=Lost.SLOW)
        else:  # nothing was sent since that one: it grows
            self._gap = Gap(since=self._gap.since, seq=feed.gone_seq, lost=None, reason=self._gap.reason)
        self._place, self.seq = feed.first, feed.gone_seq
