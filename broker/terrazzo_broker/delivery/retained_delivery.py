"""Retained messages on their way to one client: a piece in each turn of the loop, and no more than the client takes.

A subscription to everything costs neither the others their turns nor the broker its memory, whatever is retained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from ..codec.wire import encode_length
from ..message import ApplicationMessage
from ..topics.tree import TopicSubscription
from .routing import with_qos

PIECE_PLACES = 1_000  # topics that are looked at in one turn
PIECE_BYTES = 256 << 10  # that are sent in one turn, and one message more

Find = Callable[[TopicSubscription], Iterator[ApplicationMessage | None]]
"""The retained messages of a subscription, each read when it is asked for; None for places looked at in vain."""


class RetainedDelivery:
    """Sends what new subscriptions of one client find retained, one subscription after the other.

    Args:
        find: ``BrokerCore.retained_for`` of the client's session.
        send: sends or queues one message.
        takes_more: whether the client would take another one. When it does again, somebody calls ``step``.
        subscriptions: the client's present ones: what is no longer among them is left.
    """

    __slots__ = ("_current", "_found", "_is_due", "_waiting", "find", "send", "subscriptions", "takes_more")

    def __init__(
        self,
        find: Find,
        send: Callable[[ApplicationMessage], None],
        takes_more: Callable[[], bool],
        subscriptions: dict[str, TopicSubscription],
    ) -> None:
        self.find = find
        self.send = send
        self.takes_more = takes_more
        self.subscriptions = subscriptions
        self._waiting: dict[str, TopicSubscription] = {}
        self._current: TopicSubscription | None = None
        self._found: Iterator[ApplicationMessage | None] = iter(())
        self._is_due = False

    def add(self, subscription: TopicSubscription) -> None:
        """Has a new subscription's retained messages sent."""
        self._waiting.pop(subscription.filter, None)
        self._waiting[subscription.filter] = subscription

    def step(self) -> None:
        """Sends a piece, if the client takes it, and the next one in the loop's next turn."""
        places = size = 0
        while self._is_under_way() and self.takes_more():
            if places >= PIECE_PLACES or size >= PIECE_BYTES:
                self._go_on_soon()
                return
            places += 1
            message = next(self._found, self)
            if message is self:
                self._current = None
            elif isinstance(message, ApplicationMessage):
                size += message.size
                self.send(self._fitted(message))

    def _is_under_way(self) -> bool:
        """Whether there is a subscription to serve; begins the next one where there is none."""
        current = self._current
        if current is not None and self.subscriptions.get(current.filter) is not current:
            self._current = None
        while self._current is None and self._waiting:
            pattern = next(iter(self._waiting))
            subscription = self._waiting.pop(pattern)
            if self.subscriptions.get(pattern) is subscription:
                self._current, self._found = subscription, self.find(subscription)
        return self._current is not None

    def _fitted(self, message: ApplicationMessage) -> ApplicationMessage:
        assert self._current is not None
        number = self._current.identifier
        identifiers = b"\x0b" + encode_length(number) if number else b""
        return with_qos(message, self._current.qos, True, identifiers)  # [MQTT-3.3.1-8] of 3.1.1

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        self.step()
