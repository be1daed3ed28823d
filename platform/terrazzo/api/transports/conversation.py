"""Requests and answers on one connection: pipelined, bounded, and answered in the order of the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self

from terrazzo.api.kernel.dispatch import Gateway, GatewayRequest
from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.operation import Caller
from terrazzo.memory_shares import NOBODY

Send = Callable[[bytes], Awaitable[None]]
"""Sends one answer, and waits while the peer doesn't take what it is sent; writes before it first waits.

Raises:
    OSError: the peer is gone, or takes nothing (``TimeoutError``).
"""


class RequestKeeper(Protocol):
    """Who has requests that are under way, or that have not all arrived."""

    def kept(self) -> tuple[int, int, int]:
        """Whose, their bytes, and how many they are."""


class Conversation:
    """``async with`` it, ``take`` each request in the order of arrival, then ``finish``.

    What only reads runs beside other requests; what changes something waits for the requests before it and holds up
    those after it. Not more than ``most`` are under way, nor (but for one alone) more than ``most_bytes`` of requests
    and answers: then ``take`` waits, so that no more is read.

    Args:
        on_full: called each time that ``take`` has to wait for that.
        among: all that keep requests.
    """

    def __init__(
        self,
        gateway: Gateway,
        caller: Caller,
        send: Send,
        *,
        most: int,
        most_bytes: int,
        on_full: Callable[[], None],
        among: dict[RequestKeeper, None],
    ) -> None:
        self._among = among
        self._gateway = gateway
        self._caller = caller
        self._send = send
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0  # of requests under way, and of answers that are not sent
        self._on_full = on_full
        self._under_way: list[asyncio.Task[Answer]] = []  # the first is answered next
        self._changed = asyncio.Event()  # something was taken or answered
        self._error: Exception | None = None  # the connection can't be written to

    async def __aenter__(self) -> Self:
        self._among[self] = None
        self._sender = asyncio.create_task(self._send_all(), name="answers of a connection")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._among.pop(self, None)
        tasks = [self._sender, *self._under_way]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        del self._sender  # it was cancelled here, and what it raised refers to this conversation
        self._under_way.clear()

    def kept(self) -> tuple[int, int, int]:
        """Whose requests are under way, the bytes of them and of answers that are not sent, and how many they are."""
        slot = self._caller.slot
        return NOBODY if slot is None else slot.company_id, self._bytes, len(self._under_way)

    def end_lost(self) -> None:
        """The connection is lost: what reads for it ends, and who waits for answers is told."""
        self._error = self._error or ConnectionResetError("the peer is gone")
        for task in self._under_way:
            task.cancel()
        self._changed.set()

    async def take(self, message: bytes | str) -> None:
        """Answers a request, or begins to. Raises what ``Send`` raises."""
        asked = self._gateway.read(message)
        if isinstance(asked, Answer):
            await self.finish()
            await self._send(asked.body)
        elif asked.waits_its_turn(self._caller):
            await self.finish()
            answer = await self._gateway.perform(asked, self._caller)  # not taken as long as it is there
            await self._send(answer.body)
        else:
            await self._begin(asked, len(message))

    async def finish(self) -> None:
        """Waits until everything that was taken is answered. Raises what ``Send`` raises."""
        await self._wait(lambda: not self._under_way)

    async def _begin(self, asked: GatewayRequest, size: int) -> None:
        if self._is_full(size):
            self._on_full()
            await self._wait(lambda: not self._is_full(size))
        self._bytes += size
        work = self._perform(asked, size)
        self._under_way.append(asyncio.create_task(work, name=asked.operation.name))
        self._changed.set()

    def _is_full(self, size: int) -> bool:
        if not self._under_way:
            return False
        return len(self._under_way) >= self._most or self._bytes + size > self._most_bytes

    async def _perform(self, asked: GatewayRequest, size: int) -> Answer:
        answer = await self._gateway.perform(asked, self._caller)
        self._bytes += len(answer.body) - size  # which the sender takes off
        return answer

    async def _wait(self, condition: Callable[[], bool]) -> None:
        while self._error is None and not condition():
            self._changed.clear()
            await self._changed.wait()
        if self._error is not None:
            raise self._error

    async def _send_all(self) -> None:
        while True:
            while not self._under_way:
                self._changed.clear()
                await self._changed.wait()
            try:
                await self._send_one(self._under_way[0])
            except Exception as error:  # noqa: BLE001 - the peer is gone, or a fault here: raised to whoever waits
                self._error = error
                return
            finally:
                del self._under_way[0]
                self._changed.set()

    async def _send_one(self, under_way: asyncio.Task[Answer]) -> None:
        answer = await under_way
        await self._send(answer.body)
        self._bytes -= len(answer.body)
