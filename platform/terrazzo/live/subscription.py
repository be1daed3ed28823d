"""One subscription: where its reader stands in a feed, and what it is to be sent next. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from terrazzo.domain.actor import Actor
from terrazzo.live.feed import Feed
from terrazzo.live.frames import Framing, Gap, Lost, gap_frame
from terrazzo.live.stats import LiveStats

if TYPE_CHECKING:
    from terrazzo.live.session import LiveSession

BATCH_BYTES = 128 * 1024  # of frames that leave together; the larger, the less a frame costs


class Subscription:
    """A reader of a feed.

    Args:
        number: what the connection calls it, from 1 on.
        actor: whose rights it was made with.
    """

    __slots__ = ("_gap", "_place", "actor", "feed", "number", "seq", "session")

    def __init__(self, session: LiveSession, number: int, actor: Actor, feed: Feed, *, seq: int) -> None:
        self.session = session
        self.number = number
        self.actor = actor
        self.feed = feed
        self.seq = seq  # the last number that was sent, or that counts as seen
        self._place = feed.end
        self._gap: Gap | None = None

    @property
    def is_behind(self) -> bool:
        """Whether there is something to send."""
        return self._gap is not None or self._place < self.feed.end

    def resume(self, since: int, *, first: int, last: int) -> None:
        """Goes back to what came after ``since``, as far as it is still there; a gap is said.

        Args:
            first: the number before the first one that this platform has given.
            last: the last one.
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
        """The next frames; what was overwritten meanwhile is told first."""
        feed, data = self.feed, b""
        self._note_overwritten(stats)
        if self._gap is not None:
            data = framing(gap_frame(self.number, self._gap))
            self._gap = None
            stats.gaps += 1
        batch = feed.cut(self._place, label=self.number, framing=framing, most_bytes=BATCH_BYTES)
        if batch.frames:
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
            self._gap = Gap(since=self.seq, seq=feed.gone_seq, lost=lost, reason=Lost.SLOW)
        else:  # nothing was sent since that one: it grows
            self._gap = Gap(since=self._gap.since, seq=feed.gone_seq, lost=None, reason=self._gap.reason)
        self._place, self.seq = feed.first, feed.gone_seq
