"""The hub of live frames: parts publish what happens, and each publication is appended to the feeds it belongs to.

Publishing never waits and never sends; it costs the same for one subscriber and for a thousand. ``FrameSender`` sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.listeners import Listeners
from terrazzo.live.feed import Feed, Subscription
from terrazzo.live.feed_index import FeedIndex
from terrazzo.live.frames import FrameEntry
from terrazzo.live.selector import LiveKind, Selector
from terrazzo.live.stats import LiveStats

MOST_IDLE = 1_000  # feeds that nobody reads at the moment


class LiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept for subscribers who are behind or come back."""

    frames: int = 10_000  # of one feed
    bytes: int = 64 * 2**20  # of all feeds, roughly
    resume_s: int = 300  # after the last subscriber of a feed has gone


class FeedReader(Protocol):
    """The frame sender, as the hub needs it."""

    def mark(self, feed: Feed) -> None:
        """Has the readers of a feed served: it has a new entry, or a reader that is behind."""


class LiveHub:
    """Publishes to feeds, and keeps them. ``feed_changes`` tells of each feed that is opened or ended.

    Args:
        registry: which terminals and objects share.
        started_us: the time of the start, UTC microseconds: frames are numbered from it on, so that numbers from before
            a restart are lower than any given now.
        limits: what is kept in feeds.
    """

    def __init__(self, registry: Registry, *, started_us: int, limits: LiveLimits | None = None) -> None:
        self.stats = LiveStats()
        self.index = FeedIndex(registry)
        self.started_seq = self.seq = started_us
        self._limits = limits or LiveLimits()
        self._feeds: dict[Selector, Feed] = {}
        self._idle: dict[Feed, None] = {}  # the longest idle first
        self._frame_sender: FeedReader | None = None
        self.feed_changes: Listeners[[]] = Listeners("live feeds")

    def wants(self, kind: str) -> bool:
        """Whether any feed takes a kind (a value of ``LiveKind``)."""
        return any(kind in feed.selector.kinds for feed in self._feeds.values())

    def attach(self, frame_sender: FeedReader) -> None:
        """Sets the sender that is told of new entries."""
        self._frame_sender = frame_sender

    @property
    def is_wanted(self) -> bool:
        """Whether anybody subscribes to anything, or did a moment ago; if not, publishing does nothing."""
        return bool(self._feeds)

    def publish(
        self,
        kind: str,
        *,
        company_id: int,
        object_id: int | None = None,
        terminal_id: str | None = None,
        data: Any,
    ) -> None:
        """Tells the subscribers of a kind (a value of ``LiveKind``), of the object, of the terminal, of the company.

        Args:
            data: whatever JSON can say, a Struct included; encoded at once, and only if somebody subscribes. Of kind
                ``mosaic`` it is a mapping that has the variables, code to value, in ``value``.
            terminal_id: its uid. What carries one reaches the subscribers of the terminal; of kind ``grid``,
                ``terminal`` and ``command`` also those of the objects that it serves.
        """
        if not self._feeds:
            return
        feeds = self.index.find(kind, company_id, object_id, terminal_id)
        if not feeds:
            return
        if kind == LiveKind.MOSAIC.value and any(feed.selector.keys for feed in feeds):
            self.append_selected(feeds, data)
        else:
            self.append(feeds, FrameEntry.of(kind, data))

    def append(self, feeds: Iterable[Feed], entry: FrameEntry) -> None:
        """Adds one entry to the feeds that the index found for it."""
        self.seq += 1
        entry.seq = self.seq
        stats, most = self.stats, self._limits.bytes
        stats.frames_published += 1
        for feed in feeds:
            before = feed.size
            feed.append(entry)
            stats.bytes_kept += feed.size - before
            while stats.bytes_kept > most and feed.end - feed.first > 1:
                stats.bytes_kept -= feed.drop_oldest()
            if feed.subscriptions and self._frame_sender is not None:
                self._frame_sender.mark(feed)

    def append_selected(self, feeds: Iterable[Feed], data: Any) -> None:
        """Appends a mosaic record (``data``, as ``publish`` has it) to each feed, reduced to the variables it selects.

        A feed that selects none of the record's variables gets nothing.
        """
        by_keys: dict[frozenset[str], list[Feed]] = {}
        for feed in feeds:
            by_keys.setdefault(feed.selector.keys, []).append(feed)
        for keys, alike in by_keys.items():
            value = {code: found for code, found in data["value"].items() if not keys or code in keys}
            if value or not keys:
                self.append(alike, FrameEntry.of(LiveKind.MOSAIC.value, {**data, "value": value}))

    def every(self) -> list[Subscription]:
        """All subscriptions."""
        return [subscription for feed in self._feeds.values() for subscription in feed.subscriptions]

    def open_feed(self, selector: Selector) -> Feed:
        """The feed of a selector; a new one keeps what is published from now on."""
        feed = self._feeds.get(selector)
        if feed is None:
            feed = self._feeds[selector] = Feed(selector, seq=self.seq, frames=self._limits.frames)
            self.stats.feeds += 1
            self.index.add(feed)
            self.feed_changes.tell()
        return feed

    def join(self, subscription: Subscription) -> None:
        """Adds a subscription to its feed's readers."""
        feed = subscription.feed
        feed.subscriptions[subscription] = None
        feed.idle_since_s = None
        self._idle.pop(feed, None)
        self.stats.subscriptions += 1
        if subscription.is_behind and self._frame_sender is not None:
            self._frame_sender.mark(feed)

    def leave(self, subscription: Subscription) -> None:
        """Removes a subscription; its feed is kept for ``resume_s``, for a client that comes back."""
        feed = subscription.feed
        del feed.subscriptions[subscription]
        self.stats.subscriptions -= 1
        if not feed.subscriptions:
            self._idle[feed] = None
            if len(self._idle) > MOST_IDLE:
                self._end(next(iter(self._idle)))

    def end_idle(self, now_s: float) -> None:
        """Ends feeds that nobody has read for ``resume_s``; ``now_s``: monotonic seconds."""
        for feed in list(self._idle):
            if feed.idle_since_s is None:
                feed.idle_since_s = now_s
            elif now_s - feed.idle_since_s >= self._limits.resume_s:
                self._end(feed)

    def _end(self, feed: Feed) -> None:
        del self._idle[feed]
        del self._feeds[feed.selector]
        self.index.remove(feed)
        self.stats.feeds -= 1
        self.stats.bytes_kept -= feed.size
        self.feed_changes.tell()
