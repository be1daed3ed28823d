"""Flags from memory: what a page of 1,000 objects costs, what ``BOOT`` may say, one heap for all timeouts."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC

import pytest

from support import new_tasks
from terrazzo.domain.registry import Registry
from terrazzo.expressions.functions import Value
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import Selector
from terrazzo.mapping.engine import MappingEngine
from terrazzo.objects.flag_watch import FlagWatch
from terrazzo.objects.flags import ObjectFlagReader, is_running
from terrazzo.ports.bus import Presence
from terrazzo.times import now_us
from waiting import until

COUNT = 1_000


class Bus:
    """Who is there, as a test says."""

    def __init__(self) -> None:
        self.reported_us = 0

    def presence(self, uid: str) -> Presence:
        return Presence(online=True, last_telemetry_us=self.reported_us)


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    for number in range(1, COUNT + 1):
        made.put_object(number, [f"t{number}"], company_id=1)
    return made


@pytest.mark.parametrize(("value", "runs"), [(None, False), (0, False), (0.0, False), (False, False), ("0", False)])
def test_what_says_that_nothing_runs(value: Value, runs: bool) -> None:
    assert is_running(value) is runs


@pytest.mark.parametrize("value", [1, 2.5, True, "1", "on", "running"])
def test_what_says_that_it_runs(value: Value) -> None:
    assert is_running(value)


async def test_a_page_of_flags_takes_milliseconds(registry: Registry) -> None:
    book = ObjectFlagReader(registry, Bus(), MappingEngine())  # type: ignore[arg-type]
    took_s = []
    for _ in range(5):
        began_s = time.thread_time()
        flags = await book.of(range(1, COUNT + 1))
        took_s.append(time.thread_time() - began_s)
    assert all(each.is_online for each in flags.values())
    assert min(took_s) < 0.05


async def test_timeouts_of_all_objects_are_one_task(registry: Registry) -> None:
    bus, hub = Bus(), LiveHub(registry, started_us=now_us())
    book = ObjectFlagReader(registry, bus, MappingEngine(), boot_timeout_s=0.5)  # type: ignore[arg-type]
    watch = FlagWatch(book, hub, registry, tasks=new_tasks(), zone=UTC)
    watch.start()
    assert watch.stats.looks == 0, "nobody wants to know"
    bus.reported_us = now_us()
    before = len(asyncio.all_tasks())
    feed = hub.open_feed(Selector(frozenset({"object"}), company_id=1))
    await until(lambda: watch.stats.known == COUNT, "all flags are known")
    assert (watch.stats.timed, watch.stats.changes) == (COUNT, 0)
    assert len(asyncio.all_tasks()) == before
    await until(lambda: watch.stats.changes == COUNT, "all have timed out")
    assert feed.end - feed.first == COUNT
    assert watch.stats.timed == 0
    await watch.stop()
