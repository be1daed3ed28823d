"""The subscriptions of one connection, and the connection as the live side needs it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, Conflict
from terrazzo.live.feed import Sink, Subscription
from terrazzo.live.frames import End, end_frame
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import Selector
from terrazzo.sparse_log import SparseLog

_log = SparseLog(logging.getLogger(__name__))

Check = Callable[[Actor], Awaitable[End | None]]
"""Whether the connection may still be sent what this actor subscribed to; an ``End`` says why not."""


class LiveSession:
    """One connection's subscriptions, numbered from 1.

    Args:
        check: asked before frames are sent, and once a second.
        most: subscriptions at the same time.
    """

    def __init__(self, hub: LiveHub, sink: Sink, *, check: Check, most: int) -> None:
        self.sink = sink
        self._hub = hub
        self._check = check
        self._most = most
        self._numbered = 0
        self._subscriptions: dict[int, Subscription] = {}

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._subscriptions)

    def subscribe(self, actor: Actor, selector: Selector, *, since: int | None = None) -> Subscription:
        """Subscribes; frames follow what is written on the connection before the caller next waits.

        Raises:
            Conflict: there are ``most`` already.
        """
        if len(self._subscriptions) >= self._most:
            self._hub.stats.refused += 1
            _log.warning("%s has %d live subscriptions and is refused another", actor.username, self._most)
            raise Conflict(f"subscriptions: this connection has {self._most} (limits.ws_subscriptions)")
        self._numbered += 1
        feed = self._hub.open_feed(selector)
        subscription = Subscription(self, self._numbered, actor, feed, seq=self._hub.seq)
        self._subscriptions[self._numbered] = subscription
        if since is not None:
            subscription.resume(since, first=self._hub.started_seq, last=self._hub.seq)
        self._hub.join(subscription)
        return subscription

    def unsubscribe(self, number: int) -> None:
        """Ends one; nothing of it is sent any more.

        Raises:
            BadParameter: this connection has no such subscription.
        """
        subscription = self._subscriptions.pop(number, None)
        if subscription is None:
            raise BadParameter("subscription", f"this connection has no subscription {number}")
        self._hub.leave(subscription)

    async def may_go_on(self, subscription: Subscription) -> bool:
        """Checks the actor's rights; without them the subscription ends with a frame that says why."""
        end = await self._check(subscription.actor)
        if end is None:
            return True
        self.end(subscription, end)
        return False

    async def check_all(self) -> None:
        """Ends every subscription that its actor has lost the right to."""
        for subscription in list(self._subscriptions.values()):
            await self.may_go_on(subscription)

    def end(self, subscription: Subscription, end: End) -> None:
        """Ends a subscription from this side."""
        if self._subscriptions.pop(subscription.number, None) is None:
            return
        self._hub.leave(subscription)
        self._hub.stats.ended += 1
        if self.sink.is_open:
            self.sink.write(self.sink.framing(end_frame(subscription.number, end)))

    def close(self) -> None:
        """The connection is gone."""
        for subscription in self._subscriptions.values():
            self._hub.leave(subscription)
        self._subscriptions.clear()
