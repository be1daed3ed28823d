"""Looks at all plain TCP sockets of a listener at once, by an epoll of the broker's own.

A connection costs 0.1 KB here where a transport of uvloop takes 1.3. And the loop doesn't look at its sockets once more
before what was read is answered: whoever has collected output is flushed when all that have brought something are read.
"""

from __future__ import annotations

import asyncio
import os
import select
from contextlib import suppress
from typing import cast

from ..connections import Connections
from ..limited_log import limited_logger
from .polled_transport import PolledTransport

log = limited_logger("terrazzo_broker.faults")

_READ_BYTES = 64 << 10
_MORE_BYTES = 192 << 10  # read at once where there was so much: what goes to many is written in large pieces then
_MOST_EVENTS = 256  # in one look: those left over are seen in the next turn of the loop
_READABLE, _WRITABLE = select.EPOLLIN, select.EPOLLOUT
_read = os.read  # looked up once, not with each read


class Poller:
    """The sockets of one listener that have been accepted. Made within the loop that it runs on."""

    __slots__ = ("_connections", "_epoll", "_loop", "_transports")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._transports: list[PolledTransport | None] = []  # by descriptor
        self._epoll = select.epoll()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._on_events)

    def open(self, descriptor: int, protocol: asyncio.Protocol) -> None:
        """Connects a protocol to a socket that doesn't block, and owns its descriptor from now on."""
        transport, transports = PolledTransport(self, descriptor, protocol), self._transports
        if descriptor >= len(transports):
            transports.extend([None] * (descriptor + 1 - len(transports)))
        transports[descriptor] = transport
        try:
            protocol.connection_made(cast(asyncio.Transport, transport))
            transport.start()
        except Exception:  # a fault of ours ends this connection alone
            log.exception("a connection could not begin: internal error")
            transport.abort()

    def close(self) -> None:
        """Ends all connections that are left, and looks at nothing any more."""
        if self._epoll.closed:
            return
        for transport in self._transports:
            if transport is not None:
                transport.abort()
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    # What transports need

    def watch(self, descriptor: int, before: int, now: int) -> None:
        """Looks for other events than before; 0: for none."""
        if not now:
            self._epoll.unregister(descriptor)
        elif before:
            self._epoll.modify(descriptor, now)
        else:
            self._epoll.register(descriptor, now)

    def end_soon(self, transport: PolledTransport, descriptor: int, error: Exception | None) -> None:
        """Has ``transport.tell_end`` called in the loop's next turn, and the descriptor closed then."""
        self._loop.call_soon(self._end, transport, descriptor, error)

    def _end(self, transport: PolledTransport, descriptor: int, error: Exception | None) -> None:
        try:
            transport.tell_end(error)
        finally:
            self._transports[descriptor] = None
            os.close(descriptor)

    # Events

    def _on_events(self) -> None:
        transports, connections = self._transports, self._connections
        connections.begin_reading()
        try:
            for descriptor, events in self._epoll.poll(0, _MOST_EVENTS):
                transport = transports[descriptor]
                if transport is None:  # ended by another one's packet
                    continue
                try:
                    if events == _READABLE and transport.is_reading:
                        data = _read(descriptor, _READ_BYTES)
                        if data:
                            if len(data) == _READ_BYTES:
                                data += _more(descriptor)
                            transport.protocol.data_received(data)
                        else:
                            transport.on_end_of_input()
                    else:
                        _handle(transport, events)
                except (BlockingIOError, InterruptedError):
                    continue
                except OSError as error:
                    transport.fail(error)
                except Exception as error:  # a fault of ours ends this connection alone
                    log.exception("what a connection has sent: internal error")
                    transport.fail(error)
        finally:
            connections.end_reading()


def _more(descriptor: int) -> bytes:
    """What else is there. That the connection has ended or failed is seen in the next look."""
    with suppress(OSError):
        return _read(descriptor, _MORE_BYTES)
    return b""


def _handle(transport: PolledTransport, events: int) -> None:
    """Handles what happens more rarely than that a socket has something to be read."""
    if events & _WRITABLE:
        transport.send_more()
    if events == _WRITABLE:
        return
    if not transport.is_reading:
        transport.rest()
        return
    data = _read(transport.descriptor, _READ_BYTES)  # that it has failed shows in it, too
    if data:
        transport.protocol.data_received(data)
    else:
        transport.on_end_of_input()
