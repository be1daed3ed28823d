"""The connections whose peers don't take what they are sent, whose they are, and who of them is ended first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from terrazzo.api.transports.peers.shares import ConnectionSlot
from terrazzo.memory_shares import NOBODY, Kept


class UnreadConnection(Protocol):
    """One of them."""

    @property
    def slot(self) -> ConnectionSlot | None:
        """Its place, which knows whose token came on it."""

    @property
    def unsent_transport(self) -> asyncio.Transport | None:
        """Where bytes wait for the peer; None when it is gone."""


class Unread:
    """All of them, over all ports.

    Args:
        on_ended: told of each that is ended to free memory.
    """

    def __init__(self, on_ended: Callable[[], None]) -> None:
        self._on_ended = on_ended
        self._connections: dict[UnreadConnection, None] = {}

    def add(self, connection: UnreadConnection) -> None:
        """Its peer takes no more."""
        self._connections[connection] = None

    def remove(self, connection: UnreadConnection) -> None:
        """Its peer takes more again, or is gone."""
        self._connections.pop(connection, None)

    def kept(self) -> Mapping[int, Kept]:
        """Bytes that wait, and connections, by company."""
        found: dict[int, Kept] = {}
        for connection in self._connections:
            owner = _owner(connection)
            before = found.get(owner, Kept())
            found[owner] = Kept(before.bytes + _size(connection), before.items + 1)
        return found

    def give_up(self, owner: int, size: int) -> int:
        """Ends the connections of a company that have most waiting, until about ``size`` bytes are free."""
        freed = 0
        mine = [each for each in self._connections if _owner(each) == owner]
        for connection in sorted(mine, key=_size, reverse=True):
            if freed >= size:
                break
            freed += _size(connection)
            self._on_ended()
            self._connections.pop(connection, None)
            if connection.unsent_transport is not None:
                connection.unsent_transport.abort()
        return freed


def _owner(connection: UnreadConnection) -> int:
    return NOBODY if connection.slot is None else connection.slot.company_id


def _size(connection: UnreadConnection) -> int:
    transport = connection.unsent_transport
    return 0 if transport is None else transport.get_write_buffer_size()
