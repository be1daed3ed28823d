"""``JetStreamCalls``: requests from node to node on ``<name>.call.<node>``, past any stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from nats import errors
from nats.aio.msg import Msg

from terrazzo.ports.stream import LogUnavailable
from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.jetstream.connection import Connection, next_message

_log = SparseLog(logging.getLogger(__name__))

_WAIT_S = 1.0
_MOST_BYTES = 16 << 20  # that wait to be answered; more are dropped, and whoever asked hears nothing


class JetStreamCalls:
    """``Questions`` on a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def most_bytes(self) -> int:
        """Of a question, and of an answer."""
        return self._connection.most_bytes

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

    async def serve_each(self, node: str, answer: Callable[[bytes], Awaitable[bytes]], *, at_once: int) -> None:
        """Answers what this node is asked, ``at_once`` at a time."""
        subscription = await self._connection.subscribe(self._subject(node), most_bytes=_MOST_BYTES)
        answering: set[asyncio.Task[None]] = set()
        try:
            while True:
                if len(answering) >= at_once:
                    await asyncio.wait(answering, return_when=asyncio.FIRST_COMPLETED)
                    continue
                try:
                    message = await next_message(subscription, _WAIT_S)
                except TimeoutError:
                    continue
                except errors.Error as error:
                    raise LogUnavailable(f"calls: {error}") from None
                task = asyncio.create_task(self._respond(message, answer), name="answer to another node")
                answering.add(task)
                task.add_done_callback(answering.discard)
        finally:
            for task in answering:
                task.cancel()
            await self._connection.unsubscribe(subscription)

    async def _respond(self, message: Msg, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        try:
            await self._connection.respond(message, await answer(message.data))
        except LogUnavailable as error:
            _log.warning("what another node asked is not answered: %s", error)
        except Exception as error:  # noqa: BLE001 - of one question: whoever asked hears nothing, the others go on
            _log.error("what another node asked is not answered: %r", error, exc_info=True)

    def _subject(self, node: str) -> str:
        return f"{self._connection.settings.name}.call.{node}"
