"""Sends what feeds hold to their subscribers, in batches, and in a share of the process's time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from time import perf_counter, process_time

from terrazzo.live.feed import Feed
from terrazzo.live.frames import End
from terrazzo.live.hub import LiveHub
from terrazzo.live.share import Share
from terrazzo.live.subscription import Subscription

_log = logging.getLogger(__name__)

SLICE_S = 0.002  # of sending before others have their turn
SHARE = 0.1  # of the time, while others are busy
POLL_S = 0.05  # between looks at connections that had no room
SWEEP_S = 1.0  # between looks at everybody's rights

_INTERNAL = 500


class Pump:
    """The one task that writes frames. ``start``, then ``stop``."""

    def __init__(self, hub: LiveHub) -> None:
        self._hub = hub
        hub.attach(self)
        self._marked: dict[Feed, None] = {}
        self._behind: dict[Subscription, None] = {}  # they can be sent more at once
        self._blocked: dict[Subscription, None] = {}  # their connections had no room
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._slice_began_s = 0.0
        self._share = Share(now_s=perf_counter(), cpu_s=process_time())

    def start(self) -> None:
        """Begins to send."""
        self._tasks = [
            asyncio.create_task(self._run(), name="live pump"),
            asyncio.create_task(self._sweep(), name="live sweep"),
        ]
        for task in self._tasks:
            task.add_done_callback(_log_failure)

    async def stop(self) -> None:
        """Sends nothing more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def mark(self, feed: Feed) -> None:
        """A feed has something new."""
        if not self._marked:
            self._wake.set()
        self._marked[feed] = None

    async def _run(self) -> None:
        while True:
            await self._wait()
            feeds = list(self._marked)
            self._marked.clear()
            readers = self._behind | self._blocked
            self._behind, self._blocked = {}, {}
            for feed in feeds:
                readers.update(feed.subscriptions)
            self._slice_began_s = perf_counter()
            await self._serve(readers)
            for feed in {reader.feed: None for reader in readers}:
                feed.forget_cuts()

    async def _wait(self) -> None:
        if self._marked or self._behind:
            await asyncio.sleep(0)
            return
        self._wake.clear()
        try:
            async with asyncio.timeout(POLL_S if self._blocked else None):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _serve(self, readers: Iterable[Subscription]) -> None:
        """A batch for each."""
        for subscription in readers:
            try:
                await self._send(subscription)
            except Exception:  # noqa: BLE001 - one subscription's fault is not the others'
                _log.exception("a live subscription failed and is ended")
                subscription.session.end(subscription, End(code=_INTERNAL, info="internal error"))
            if perf_counter() - self._slice_began_s > SLICE_S:
                await self._make_way()

    async def _send(self, subscription: Subscription) -> None:
        session, sink = subscription.session, subscription.session.sink
        if subscription not in subscription.feed.subscriptions or not sink.is_open or not subscription.is_behind:
            return
        if not sink.has_room:
            self._blocked[subscription] = None
        elif await session.may_go_on(subscription):
            sink.write(subscription.take(sink.framing, self._hub.stats))
            if subscription.is_behind:
                self._behind[subscription] = None

    async def _make_way(self) -> None:
        """Others have their turn; a longer one where there is much for them to do."""
        now_s = perf_counter()
        own_s = now_s - self._slice_began_s
        self._share.spend(own_s, now_s=now_s, cpu_s=process_time())
        await asyncio.sleep(own_s / SHARE - own_s if self._share.others_are_busy else 0)
        self._slice_began_s = perf_counter()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self._hub.end_idle(perf_counter())
            for session in {each.session: None for each in self._hub.every()}:
                await session.check_all()
                await asyncio.sleep(0)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical("%s has failed; live subscribers are sent nothing any more", task.get_name(), exc_info=error)
