"""The subscriber behind ``Broker.subscribe_local``: a callback in the embedding program."""

from __future__ import annotations

from collections.abc import Callable

from ..message import ApplicationMessage
from ..topics.owners import EVERYBODY
from .connection_port import Origin, SessionConnection


class LocalSubscriber:
    """A ``MessageReceiver`` that hands each message to ``take`` at once, in the order of the publishes.

    ``take`` returns False where there is no room. It has neither a connection nor a queue, and is no session.
    """

    __slots__ = ("client_id", "connection", "owner", "take")

    is_local = True
    is_elsewhere = False  # whether it stands for clients of another broker
    is_persistent = False
    has_ended = False

    def __init__(self, name: str, take: Callable[[ApplicationMessage], bool], owner: str = EVERYBODY) -> None:
        self.client_id = name
        self.connection: SessionConnection | None = None
        self.owner = owner  # whose messages it hears
        self.take = take

    def enqueue(self, message: ApplicationMessage, origin: Origin | None) -> bool:
        """Calls ``take``; returns what it does."""
        return self.take(message)
