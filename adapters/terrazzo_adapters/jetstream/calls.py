"""``JetStreamCalls``: requests from node to node on ``<name>.call.<node>``, past any stream."""

from __future__ import annotations

from collections.abc import Callable

from nats import errors

from terrazzo.ports.stream import LogUnavailable
from terrazzo_adapters.jetstream.connection import Connection, next_message

_WAIT_S = 1.0
_MOST_BYTES = 16 << 20  # that wait to be answered; more are dropped, and whoever asked hears nothing


class JetStreamCalls:
    """``Calls`` on a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def ask(self, node: str, body: bytes, *, timeout_s: float) -> bytes:
        """The answer of a node."""
        message = await self._connection.request(self._subject(node), body, timeout_s=timeout_s)
        return message.data

    async def serve(self, node: str, answer: Callable[[bytes], bytes]) -> None:
        """Answers what this node is asked, in order."""
        subscription = await self._connection.subscribe(self._subject(node), most_bytes=_MOST_BYTES)
        try:
            while True:
                try:
                    message = await next_message(subscription, _WAIT_S)
                except TimeoutError:
                    continue
                except errors.Error as error:
                    raise LogUnavailable(f"calls: {error}") from None
                await self._connection.respond(message, answer(message.data))
        finally:
            await self._connection.unsubscribe(subscription)

    def _subject(self, node: str) -> str:
        return f"{self._connection.settings.name}.call.{node}"
