"""Sends the entries of feeds to their subscribers, in batches, within a share of the event loop's time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import chain, zip_longest
from time import perf_counter, thread_time

from terrazzo.live.feed import Feed, Subscription
from terrazzo.live.frames import End
from terrazzo.live.hub import LiveHub
from terrazzo.live.loop_clocks import LoopClocks
from terrazzo.live.send_budget import LONGEST_S, SLICE_S, SendBudget
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.tasks import OnFailure, Task, Tasks

_log = logging.getLogger(__name__)

POLL_S = 0.05  # between looks at connections that had no room
SWEEP_S = 1.0  # between looks at everybody's rights

_INTERNAL = 500


class FrameSender:
    """The one task that writes frames. ``start``, then ``stop``.

    Args:
        tasks: runs it, and the regular check of all subscribers' rights.
        is_behind: whether the ingest acknowledges terminals later than it should; sending takes less time then.
    """

    def __init__(self, hub: LiveHub, tasks: Tasks, *, is_behind: Callable[[], bool] = lambda: False) -> None:
        self._hub = hub
        self._is_behind = is_behind
        hub.attach(self)
        self._marked: dict[Feed, None] = {}
        self._behind: dict[Subscription, None] = {}  # they can be sent more at once
        self._blocked: dict[Subscription, None] = {}  # their connections had no room
        self._looked_s = 0.0  # at these
        self._wake = asyncio.Event()
        self._supervisor = tasks
        self._tasks: list[Task] = []
        self._clocks = LoopClocks()
        self._budget = SendBudget(self._clocks.now())
        self._begin()

    def start(self) -> None:
        """Starts the task that sends, and the one that checks rights."""
        self._tasks = [
            self._supervisor.spawn("live frames", self._run, OnFailure.RESTART),
            self._supervisor.repeat("live sweep", SWEEP_S, self._sweep, OnFailure.RESTART),
        ]

    async def stop(self) -> None:
        """Stops both tasks; what was not sent is dropped."""
        for task in self._tasks:
            await task.stop()
        self._clocks.close()

    def mark(self, feed: Feed) -> None:
        """``LiveHub`` calls this: a feed has a new entry, or a reader that is behind."""
        if not self._marked:
            self._wake.set()
        self._marked[feed] = None

    async def _run(self) -> None:
        """The task. Each subscription knows its place, so that after a restart whoever is behind gets the rest."""
        self._behind.update({each: None for each in self._hub.every() if each.is_behind})
        while True:
            await self._wait()
            await self._make_way()
            await self._serve(self._readers())

    def _readers(self) -> list[Subscription]:
        """Who may be behind: those that were not served yet come first, and companies take turns."""
        readers, self._behind = self._behind, {}
        if self._blocked and perf_counter() - self._looked_s >= POLL_S:
            readers.update(self._blocked)
            self._blocked, self._looked_s = {}, perf_counter()
        for feed in self._marked:
            readers.update(feed.subscriptions)
        self._marked.clear()
        return in_turn(readers)

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

    async def _serve(self, readers: list[Subscription]) -> None:
        """Sends one batch to each subscription for ``SLICE_S``; who is left is served next, after others had the loop.

        Those whose turn is later get what came meanwhile too.
        """
        for number, subscription in enumerate(readers, 1):
            try:
                await self._send(subscription)
            except Exception:  # noqa: BLE001 - one subscription's fault is not the others'
                _log.exception("a live subscription failed and is ended")
                subscription.connection.end(subscription, End(code=_INTERNAL, info="internal error"))
            if perf_counter() - self._began_s >= SLICE_S:
                self._behind = dict.fromkeys(readers[number:]) | self._behind
                break
        for feed in {reader.feed: None for reader in readers[:number]} if readers else ():
            feed.forget_cuts()
        self._account()

    async def _send(self, subscription: Subscription) -> None:
        connection, sink = subscription.connection, subscription.connection.sink
        if subscription not in subscription.feed.subscriptions or not sink.is_open or not subscription.is_behind:
            return
        if not sink.has_room:
            self._blocked[subscription] = None
        elif await connection.may_go_on(subscription):
            if data := subscription.take(sink.framing, self._hub.stats):
                sink.write(data)
            if subscription.is_behind:
                self._behind[subscription] = None

    def _begin(self) -> None:
        self._began_s, self._own_s = perf_counter(), thread_time()

    def _account(self) -> None:
        own_s = thread_time() - self._own_s
        self._hub.stats.send_seconds += own_s
        self._budget.note(self._clocks.now(), own_s=own_s, is_behind=self._is_behind())

    async def _make_way(self) -> None:
        """Waits until the budget allows sending, ``LONGEST_S`` at most, and begins a slice."""
        budget, deadline_s = self._budget, perf_counter() + LONGEST_S
        budget.note(self._clocks.now(), is_behind=self._is_behind())
        while (pause_s := budget.pause_s) > 0:
            left_s = deadline_s - perf_counter()
            if left_s <= 0:
                budget.forgive()
                break
            await asyncio.sleep(min(pause_s, left_s))
            budget.note(self._clocks.now(), is_behind=self._is_behind())
        self._begin()

    async def _sweep(self) -> None:
        self._hub.end_idle(perf_counter())
        pauses = LoopPauses()
        for feed in self._hub.feeds():
            self._hub.drop_old(feed, perf_counter())
            await pauses.pause()
        for connection in {each.connection: None for each in self._hub.every()}:
            await connection.check_all()
            await asyncio.sleep(0)


def in_turn(readers: Iterable[Subscription]) -> list[Subscription]:
    """One of each company, then the next of each; a company's own stay in order."""
    companies: dict[int, list[Subscription]] = {}
    for reader in readers:
        companies.setdefault(reader.actor.company_id, []).append(reader)
    if len(companies) == 1:
        return next(iter(companies.values()))
    return [reader for reader in chain.from_iterable(zip_longest(*companies.values())) if reader is not None]
