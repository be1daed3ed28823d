"""Sends what feeds hold to their subscribers, in batches, and in a share of the process's time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from time import perf_counter, thread_time

from terrazzo.live.feed import Feed
from terrazzo.live.frames import End
from terrazzo.live.hub import LiveHub
from terrazzo.live.share import LONGEST_S, Share
from terrazzo.live.subscription import Subscription

_log = logging.getLogger(__name__)

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
        self._since_s = thread_time()  # since then the time is its own
        self._share = Share(cpu_s=self._since_s, wall_s=perf_counter())

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
            self._since_s = thread_time()
            feeds = list(self._marked)
            self._marked.clear()
            readers = self._behind | self._blocked
            self._behind, self._blocked = {}, {}
            for feed in feeds:
                readers.update(feed.subscriptions)
            await self._serve(readers)
            self._forget_cuts(readers)

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

    async def _serve(self, readers: Collection[Subscription]) -> None:
        """A batch for each."""
        for subscription in readers:
            try:
                await self._send(subscription)
            except Exception:  # noqa: BLE001 - one subscription's fault is not the others'
                _log.exception("a live subscription failed and is ended")
                subscription.session.end(subscription, End(code=_INTERNAL, info="internal error"))
            self._account()
            if self._share.is_used_up and await self._make_way():
                self._forget_cuts(readers)  # so that those whose turn is later get what came meanwhile

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

    def _account(self) -> None:
        now_s = thread_time()
        own_s, self._since_s = now_s - self._since_s, now_s
        self._hub.stats.send_seconds += own_s
        self._share.spend(own_s, cpu_s=now_s)

    async def _make_way(self) -> bool:
        """Others have their turn; True when it takes a while, because there is much for them to do."""
        share, deadline_s, has_paused = self._share, perf_counter() + LONGEST_S, False
        await asyncio.sleep(0)
        while True:
            wall_s, self._since_s = perf_counter(), thread_time()
            share.spend(0.0, cpu_s=self._since_s)
            pause_s = min(share.pause_s(wall_s=wall_s), deadline_s - wall_s)
            if pause_s <= 0:
                share.forgive()
                return has_paused
            await asyncio.sleep(pause_s)
            has_paused = True

    @staticmethod
    def _forget_cuts(readers: Iterable[Subscription]) -> None:
        for feed in {reader.feed: None for reader in readers}:
            feed.forget_cuts()

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
