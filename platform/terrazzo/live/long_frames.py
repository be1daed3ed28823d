"""Long reports of MessagePack on their way to subscribers: JSON is made of them beside the event loop."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from terrazzo.company_queue import CompanyQueue
from terrazzo.live.feed import Feed
from terrazzo.live.frames import FrameEntry
from terrazzo.live.hub import LiveHub
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.sparse_log import SparseLog

_log = SparseLog(logging.getLogger(__name__))

JsonOf = Callable[[bytes], Awaitable[bytes]]
"""A stored body as JSON, made elsewhere."""


class _Waiting(NamedTuple):
    entry: weakref.ref[FrameEntry]  # which its feeds drop when there is too much, and its body with it
    company_id: int
    feeds: tuple[Feed, ...]


class LongFrames:
    """Makes them one by one, companies in turn; frames behind one in its feeds wait for it."""

    def __init__(self, hub: LiveHub, json_of: JsonOf) -> None:
        self._hub = hub
        self._json_of = json_of
        self._waiting: CompanyQueue[_Waiting] = CompanyQueue()
        self._wake = asyncio.Event()

    def put(self, company_id: int, entry: FrameEntry, feeds: tuple[Feed, ...]) -> None:
        """Has a frame made that is in these feeds."""
        self._waiting.put(company_id, _Waiting(weakref.ref(entry), company_id, feeds))
        self._wake.set()

    async def work(self) -> None:
        """The task."""
        while True:
            self._wake.clear()
            while (waiting := self._waiting.take()) is not None:
                await self._make(waiting)
            await self._wake.wait()

    async def _make(self, waiting: _Waiting) -> None:
        entry = waiting.entry()
        if entry is None or entry.waits_for is None:
            return
        begun = at_work.begin(Work("live report", waiting.company_id))
        try:
            entry.on_made(await self._json_of(entry.waits_for))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one, those behind it must come
            _log.error("a long report is told to nobody: %r", error)
            entry.on_made(b"null")
        finally:
            at_work.end(begun)
        self._hub.on_made(waiting.feeds)
