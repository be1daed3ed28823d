"""Retained messages on their way to one client: a piece in each turn of the loop, and no more than the client takes.

A subscription to everything costs neither the others their turns nor the broker its memory, whatever is retained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..codec.wire import encode_length
from ..message import ApplicationMessage
from ..scheduling.turns import Turns
from ..topics.tree import TopicSubscription
from .routing import with_qos

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
        turns: the loop's.
        owner: whose turns.
    """

    __slots__ = (
        "_current",
        "_found",
        "_is_due",
        "_turns",
        "_waiting",
        "find",
        "owner",
        "send",
        "subscriptions",
        "takes_more",
    )

    def __init__(
        self,
        find: Find,
        send: Callable[[ApplicationMessage], None],
        takes_more: Callable[[], bool],
        subscriptions: dict[str, TopicSubscription],
        *,
        turns: Turns,
        owner: str,
    ) -> None:
        self.find = find
        self.send = send
        self.takes_more = takes_more
        self.subscriptions = subscriptions
        self.owner = owner
        self._turns = turns
        self._waiting: dict[str, None] = {}  # filters
        self._current: str | None = None
        self._found: Iterator[ApplicationMessage | None] = iter(())
        self._is_due = False

    def add(self, patterns: Iterable[str]) -> None:
        """Has the retained messages of subscriptions sent, from the beginning where they were being sent."""
        for pattern in patterns:
            self.leave(pattern)
            self._waiting[pattern] = None

    def leave(self, pattern: str) -> None:
        """Sends no more of what a subscription has found."""
        self._waiting.pop(pattern, None)
        if pattern == self._current:
            self._current = None

    @property
    def is_done(self) -> bool:
        """Whether no subscription is owed anything more."""
        return self._current is None and not self._waiting

    def step(self) -> None:
        """Sends a piece, if the client takes it, and the next one in the loop's next turn."""
        with self._turns.slice(self.owner):
            self._send_piece()

    def _send_piece(self) -> None:
        size = 0
        while self._is_under_way() and self.takes_more():
            if size >= PIECE_BYTES or self._turns.is_over:
                self._go_on_soon()
                return
            message = next(self._found, self)
            if message is self:
                self._current = None
            elif isinstance(message, ApplicationMessage):
                size += message.size
                self._send(message)

    def _is_under_way(self) -> bool:
        """Whether there is a subscription to serve; begins the next one where there is none."""
        while self._current is None and self._waiting:
            pattern = next(iter(self._waiting))
            del self._waiting[pattern]
            subscription = self.subscriptions.get(pattern)
            if subscription is not None:
                self._current, self._found = pattern, self.find(subscription)
        return self._current is not None

    def _send(self, message: ApplicationMessage) -> None:
        assert self._current is not None
        subscription = self.subscriptions.get(self._current)  # as it is by now
        if subscription is None:
            self._current = None
            return
        number = subscription.identifier
        identifiers = b"\x0b" + encode_length(number) if number else b""
        self.send(with_qos(message, subscription.qos, True, identifiers))  # [MQTT-3.3.1-8] of 3.1.1

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._turns.later(self.owner, self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        self._send_piece()
