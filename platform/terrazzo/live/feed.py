"""One selector's recent entries, in a ring that all its subscriptions read from, each at its own place.

Pure: no clock, no socket. What a slow subscriber has not read is overwritten, oldest first, and counted.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from terrazzo.live.frames import FrameEntry, Framing, Style
from terrazzo.live.selector import Selector

if TYPE_CHECKING:
    from terrazzo.live.subscription import Subscription

_MOST_CUTS = 64  # kept for readers at the same place
_MOST_STYLES = 64
_COMPACT = 256  # entries that are gone before the list is made shorter


class FrameBatch(NamedTuple):
    """Encoded frames, and where the reader stands after them."""

    data: bytes
    place: int
    seq: int  # of the last frame
    frames: int


class Feed:
    """A ring. *Places* count entries from the feed's beginning and never repeat.

    Args:
        seq: the last number given before the feed began: what came earlier isn't here.
    """

    def __init__(self, selector: Selector, *, seq: int, frames: int) -> None:
        self.selector = selector
        self.subscriptions: dict[Subscription, None] = {}
        self.idle_since_s: float | None = None  # since nobody subscribes
        self.size = 0  # bytes, roughly
        self.gone_seq = seq  # the number of the newest entry that isn't here any more
        self._frames = frames
        self._entries: list[FrameEntry] = []
        self._head = 0  # index of the oldest entry
        self._first = 0  # its place
        self._styles: dict[tuple[int, Framing], Style] = {}
        self._cuts: dict[tuple[int, Style], FrameBatch] = {}

    @property
    def first(self) -> int:
        """The place of the oldest entry."""
        return self._first

    @property
    def end(self) -> int:
        """The place of the next entry to come."""
        return self._first + len(self._entries) - self._head

    def append(self, entry: FrameEntry) -> None:
        """Adds the newest entry; a full ring gives up its oldest."""
        self._entries.append(entry)
        self.size += entry.size
        if self.end - self._first > self._frames:
            self.drop_oldest()

    def drop_oldest(self) -> int:
        """Gives up the oldest entry; its size, 0 where there is none."""
        if self._head == len(self._entries):
            return 0
        entry = self._entries[self._head]
        self._head += 1
        self._first += 1
        self.gone_seq = entry.seq
        self.size -= entry.size
        if self._head >= _COMPACT and self._head * 2 >= len(self._entries):
            del self._entries[: self._head]
            self._head = 0
        return entry.size

    def place_after(self, seq: int) -> int:
        """The place of the first entry with a later number."""
        index = bisect_right(self._entries, seq, lo=self._head, key=lambda entry: entry.seq)
        return self._first + index - self._head

    def cut(self, place: int, *, label: int, framing: Framing, most_bytes: int) -> FrameBatch:
        """The frames from a place on, up to about ``most_bytes``; readers at the same place share the work."""
        style = self._style(label, framing)
        found = self._cuts.get((place, style))
        if found is None:
            if len(self._cuts) >= _MOST_CUTS:
                self._cuts.clear()
            found = self._cut(place, style, most_bytes)
            if found.frames:  # where there was nothing, there may be something in a moment
                self._cuts[place, style] = found
        return found

    def forget_cuts(self) -> None:
        """Frees what readers of one round shared."""
        self._cuts.clear()

    def _style(self, label: int, framing: Framing) -> Style:
        """The one object for equal styles, which entries compare by identity."""
        found = self._styles.get((label, framing))
        if found is None:
            if len(self._styles) >= _MOST_STYLES:
                self._styles.clear()
            found = self._styles[label, framing] = Style(label, framing)
        return found

    def _cut(self, place: int, style: Style, most_bytes: int) -> FrameBatch:
        parts: list[bytes] = []
        entry, size = None, 0
        for index in range(self._head + place - self._first, len(self._entries)):
            entry = self._entries[index]
            frame = entry.framed if entry.style is style else style.frame(entry)
            parts.append(frame)
            size += len(frame)
            if size >= most_bytes:
                break
        return FrameBatch(b"".join(parts), place + len(parts), entry.seq if entry else self.gone_seq, len(parts))
