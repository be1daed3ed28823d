"""The live subscriptions of one client connection: made, checked and ended."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, Conflict
from terrazzo.live.feed import Sink, Subscription
from terrazzo.live.frames import End, end_frame
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import EVERY_KEY, Selector
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog

_log = SparseLog(logging.getLogger(__name__))

RightsCheck = Callable[[Actor], Awaitable[End | None]]
"""Whether the connection may still be sent what this actor subscribed to: None, or an ``End`` that says why not."""


class LiveSession:
    """One connection's subscriptions, numbered from 1.

    Args:
        hub: has the feeds.
        sink: where the connection's frames are written.
        check: the actor's rights, asked before frames are sent and once a second.
        most: subscriptions at the same time (``limits.ws_subscriptions``).
    """

    def __init__(self, hub: LiveHub, sink: Sink, *, check: RightsCheck, most: int) -> None:
        self.sink = sink
        self._hub = hub
        self._check = check
        self._most = most
        self._numbered = 0
        self._subscriptions: dict[int, Subscription] = {}

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._subscriptions)

    def subscribe(
        self, actor: Actor, selector: Selector, *, keys: frozenset[str] = EVERY_KEY, since: int | None = None
    ) -> Subscription:
        """Subscribes; frames follow after whatever the caller writes on the connection before it next awaits.

        Args:
            keys: of mosaic records only these variables; empty: all.
            since: the number of the last frame that the client has seen, to continue after it.

        Raises:
            Conflict: there are ``most`` already, or as many as the company may have.
        """
        if len(self._subscriptions) >= self._most:
            self._hub.stats.refused += 1
            _log.warning("%s has %d live subscriptions and is refused another", actor.username, self._most)
            raise Conflict(say("too_many_subscriptions", most=self._most))
        self._hub.check_keys(actor.company_id, keys)
        feed = self._hub.open_feed(selector)
        self._numbered += 1
        subscription = Subscription(self, self._numbered, actor, feed, seq=self._hub.seq, keys=keys)
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
            raise BadParameter("subscription", say("no_subscription", number=number))
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
        """Ends all subscriptions: the connection is closed."""
        for subscription in self._subscriptions.values():
            self._hub.leave(subscription)
        self._subscriptions.clear()
        self._check = _is_closed  # not the caller's any more, who refers to this session


async def _is_closed(_actor: Actor) -> End | None:
    return None
