"""The table of operations: one row each, from which dispatch, validation, permissions and documents come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.live.session import LiveSession

Handler = Callable[[Services, Any, Any], Awaitable[Any]]
"""``handle_x(services, actor, request) -> result``. Without a permission the second argument is the ``Caller``."""


class Caller(msgspec.Struct):
    """Whoever is at the other end of a connection, or of one HTTP request."""

    address: str
    token: str | None = None  # a connection keeps the last one that was sent to it
    live: LiveSession | None = None  # the subscriptions of a connection that stays


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An actor on a connection that stays."""

    actor: Actor
    live: LiveSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that clients can ask for."""

    name: str
    summary: str
    request: type[msgspec.Struct]
    result: Any  # the result's type, from which its schema comes
    permission: Role | None  # None: whoever asks, with or without a token
    handler: Handler
    aliases: tuple[str, ...] = ()
    connection: bool = False  # over WebSocket and TCP only; the handler's second argument is a ``Subscriber``


class OperationTable:
    """Operations by name and alias."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._operations = tuple(operations)
        self._by_name: dict[str, Operation] = {}
        for operation in self._operations:
            for name in (operation.name, *operation.aliases):
                if name in self._by_name:
                    raise ValueError(f"two operations answer to {name}")
                self._by_name[name] = operation

    def find(self, name: str) -> Operation | None:
        """The operation of this name or alias."""
        return self._by_name.get(name)

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)
