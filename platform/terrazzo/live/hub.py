"""The hub of live frames: parts publish what happens, and each publication is appended to the feeds it belongs to.

Publishing never waits and never sends; it costs the same for one subscriber and for a thousand. ``FrameSender`` sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.errors import Conflict
from terrazzo.listeners import Listeners
from terrazzo.live.feed import Feed, Subscription, key_bytes_of
from terrazzo.live.feed_index import FeedIndex
from terrazzo.live.frames import FrameEntry
from terrazzo.live.selector import Selector
from terrazzo.live.shares import FeedShares
from terrazzo.live.stats import LiveStats
from terrazzo.memory_shares import NOBODY, Kept
from terrazzo.reasons import say

REST_S = 30  # without a reader, after which a feed is among those that have a part of ``limits.live_bytes`` alone
_REST_PART = 4  # of ``limits.live_bytes``, one part is what a company has in such feeds
_DROPPED = 5_000  # of their entries at a look

_KEYS_PART = 16  # of ``limits.live_bytes``, one part is what a company's selections of variables may take


class LiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept for subscribers who are behind or come back."""

    frames: int = 10_000  # of one feed
    bytes: int = 64 * 2**20  # of all feeds, roughly
    feeds: int = 1_000  # of a company
    resume_s: int = 300  # of frames, and of feeds after the last subscriber has gone


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
        self._key_bytes: Counter[int] = Counter()  # of the selections of variables, by company
        self._kinds: Counter[str] = Counter()  # feeds that take each
        self._shares = FeedShares(most_bytes=self._limits.bytes)
        self._idle: dict[Feed, None] = {}  # the longest idle first
        self._frame_sender: FeedReader | None = None
        self.feed_changes: Listeners[[]] = Listeners("live feeds")

    def wants(self, kind: str) -> bool:
        """Whether any feed takes a kind (a value of ``LiveKind``)."""
        return self._kinds[kind] > 0

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
                ``mosaic`` it has the variables, code to value, in ``value``, of which subscriptions may select some.
            terminal_id: its uid. What carries one reaches the subscribers of the terminal; of kind ``grid``,
                ``terminal`` and ``command`` also those of the objects that it serves.
        """
        if not self._feeds:
            return
        feeds = self.index.find(kind, company_id, object_id, terminal_id)
        if not feeds:
            return
        self.append(feeds, (FrameEntry.of(kind, data),))

    def append(self, feeds: Iterable[Feed], entries: Sequence[FrameEntry]) -> None:
        """Adds entries, in their order, to the feeds that the index found for all of them."""
        stats, shares, frame_sender = self.stats, self._shares, self._frame_sender
        for entry in entries:
            entry.seq = self.seq = self.seq + 1
        stats.frames_published += len(entries)
        for feed in feeds:
            shares.grow(feed, feed.append(entries))
            if feed.subscriptions and frame_sender is not None:
                frame_sender.mark(feed)
        stats.bytes_kept = shares.total_bytes

    def on_made(self, feeds: Iterable[Feed]) -> None:
        """An entry of these feeds waits for nothing more: it is sent, with those behind it."""
        for feed in feeds:
            if feed.subscriptions and self._frame_sender is not None:
                self._frame_sender.mark(feed)

    def every(self) -> list[Subscription]:
        """All subscriptions."""
        return [subscription for feed in self._feeds.values() for subscription in feed.subscriptions]

    def open_feed(self, selector: Selector) -> Feed:
        """The feed of a selector; a new one keeps what is published from now on.

        Raises:
            Conflict: the company has as many as it may have, and all are read.
        """
        feed = self._feeds.get(selector)
        if feed is None:
            self._make_way(selector.company_id)
            feed = self._feeds[selector] = Feed(selector, seq=self.seq, frames=self._limits.frames)
            self._kinds.update(selector.kinds)
            self._shares.add(feed)
            self.stats.feeds += 1
            self.index.add(feed)
            self.feed_changes.tell()
        return feed

    def check_keys(self, company_id: int, keys: frozenset[str]) -> None:
        """Whether a company may subscribe to a selection of variables, beside those that it has.

        Raises:
            Conflict: all of them would take too much memory.
        """
        most = self._limits.bytes // _KEYS_PART
        if keys and self._key_bytes[company_id] + key_bytes_of(keys) > most:
            self.stats.refused += 1
            raise Conflict(say("live_keys_too_large", most=most))

    def _make_way(self, owner: int | None) -> None:
        """Ends the feed that nobody has read for the longest, where the owner has as many as it may have."""
        most = self._limits.feeds
        if self._shares.feeds_of(owner) < most:
            return
        idle = next((feed for feed in self._idle if feed.owner == owner), None)
        if idle is None:
            self.stats.refused += 1
            raise Conflict(say("too_many_feeds", most=most))
        self._end(idle)

    def join(self, subscription: Subscription) -> None:
        """Adds a subscription to its feed's readers."""
        feed = subscription.feed
        feed.subscriptions[subscription] = None
        if feed.idle_since_s is not None:
            feed.idle_since_s = None
            self._grow(feed, feed.wake())
        self._key_bytes[subscription.actor.company_id] += subscription.key_bytes
        self._idle.pop(feed, None)
        self.stats.subscriptions += 1
        if subscription.is_behind and self._frame_sender is not None:
            self._frame_sender.mark(feed)

    def leave(self, subscription: Subscription) -> None:
        """Removes a subscription; its feed is kept for ``resume_s``, for a client that comes back."""
        feed = subscription.feed
        del feed.subscriptions[subscription]
        self._key_bytes[subscription.actor.company_id] -= subscription.key_bytes
        self.stats.subscriptions -= 1
        if not feed.subscriptions:
            feed.forget_styles()
            self._idle[feed] = None

    def kept(self) -> Mapping[int, Kept]:
        """Bytes that are kept in feeds, by company, and how many feeds; those of all companies are nobody's."""
        return {NOBODY if owner is None else owner: Kept(*kept) for owner, kept in self._shares.by_owner().items()}

    def give_up(self, owner: int, size: int) -> int:
        """Drops the oldest frames of a company's feeds, about ``size`` bytes; who hasn't read them gets a gap."""
        freed = self._shares.take_from(None if owner == NOBODY else owner, size)
        self.stats.bytes_kept = self._shares.total_bytes
        return freed

    def feeds(self) -> list[Feed]:
        """All feeds."""
        return list(self._feeds.values())

    def drop_old(self, feed: Feed, now_s: float) -> None:
        """Drops frames of a feed that are older than ``resume_s``; ``now_s``: monotonic seconds."""
        if self._feeds.get(feed.selector) is feed and (freed := feed.drop_old(now_s, self._limits.resume_s)):
            self._grow(feed, -freed)

    def _grow(self, feed: Feed, size: int) -> None:
        self._shares.grow(feed, size)
        self.stats.bytes_kept = self._shares.total_bytes

    def end_idle(self, now_s: float) -> None:
        """Ends feeds that nobody has read for ``resume_s``; of the others that nobody reads, frees what readers shared.

        Args:
            now_s: monotonic seconds.
        """
        for feed in list(self._idle):
            if feed.idle_since_s is None:
                feed.idle_since_s = now_s
                self._grow(feed, -feed.rest())
            elif now_s - feed.idle_since_s >= self._limits.resume_s:
                self._end(feed)
        self._shrink_idle(now_s)

    def _shrink_idle(self, now_s: float) -> None:
        """Who comes back does so soon: of what has been read by nobody for longer, a company keeps its part.

        What has been read by nobody for the longest goes first, some of it where that is much.
        """
        resting = [each for each in self._idle if each.idle_since_s is not None and now_s - each.idle_since_s >= REST_S]
        excess: Counter[int | None] = Counter()
        for feed in resting:
            excess[feed.owner] += feed.size
        left = _DROPPED
        for feed in resting:
            end, freed = min(feed.first + left, feed.end), 0
            while feed.first < end and excess[feed.owner] - freed > self._limits.bytes // _REST_PART:
                left, freed = left - 1, freed + feed.drop_oldest()
            if freed:
                excess[feed.owner] -= freed
                self._grow(feed, -freed)

    def _end(self, feed: Feed) -> None:
        del self._idle[feed]
        del self._feeds[feed.selector]
        self.index.remove(feed)
        self._kinds.subtract(feed.selector.kinds)
        self._shares.remove(feed)
        self.stats.feeds -= 1
        self.stats.bytes_kept = self._shares.total_bytes
        self.feed_changes.tell()
