"""A subscriber inside the embedding program."""

from __future__ import annotations

from collections.abc import Callable

from .message import Message
from .session import Session
from .settings import BrokerSettings
from .stats import Stats


class LocalSession(Session):
    """Hands each message to ``take`` at once, in the order of the publishes; False from it: there is no room.

    It has no connection and no queue, and is in no list of sessions.
    """

    is_local = True

    __slots__ = ("_take",)

    def __init__(self, name: str, settings: BrokerSettings, stats: Stats, *, take: Callable[[Message], bool]) -> None:
        super().__init__(name, settings, stats)
        self._take = take

    def enqueue(self, message: Message) -> bool:
        return self._take(message)
