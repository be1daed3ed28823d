"""The watch over the event loop: how late it comes, who held it, and where."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator

import pytest

from garbage import set_aside
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.runtime.loop_watch import HELD_S, LoopWatch
from waiting import until


@pytest.fixture
async def watch() -> AsyncIterator[LoopWatch]:
    watch = LoopWatch()
    watch.start()
    await asyncio.sleep(0)
    yield watch
    watch.stop()


def hold_up(seconds: float) -> None:
    """Holds the loop, but not the interpreter."""
    time.sleep(seconds)


def value(watch: LoopWatch, name: str) -> float:
    """One of its metrics."""
    return next(sample.value for family in watch.collect() for sample in family.samples if sample.name == name)


async def test_who_holds_the_loop_is_told_with_company_and_calls(watch: LoopWatch, caplog: pytest.LogCaptureFixture):
    async def request() -> None:
        begun = at_work.begin(Work("check_mapping", 7))
        hold_up(4 * HELD_S)
        at_work.end(begun)

    with caplog.at_level(logging.WARNING):
        await asyncio.create_task(request(), name="a request")
        await until(lambda: watch.held == 1, "the delay is told")
    assert "a request: check_mapping for company 7" in caplog.text
    assert "hold_up (test_loop_watch.py:" in caplog.text
    assert watch.longest_s > 2 * HELD_S


async def test_what_no_task_does_is_told_by_the_parts(watch: LoopWatch, caplog: pytest.LogCaptureFixture):
    watch.who.append(lambda: "bytes from pump-7\n")
    asyncio.get_running_loop().call_soon(hold_up, 4 * HELD_S)
    with caplog.at_level(logging.WARNING):
        await until(lambda: watch.held == 1, "the delay is told")
    assert r"bytes from pump-7\n: hold_up" in caplog.text


async def test_a_longer_delay_than_any_before_is_told_however_short_after_them(
    watch: LoopWatch, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING):
        for number in range(1, 4):
            hold_up(2 * HELD_S)
            await until(lambda number=number: watch.held == number, "a delay is counted")
        hold_up(12 * HELD_S)
        await until(lambda: watch.held == 4, "the longest is counted")
    told = [line for line in caplog.messages if "the event loop was held for" in line]
    assert any(watch.longest_s * 1_000 - 1 < float(line.split()[6]) for line in told)


async def test_a_process_that_was_not_run_does_not_blame_what_the_loop_happened_to_do():
    command = [sys.executable, "-c", _STOPS_ITSELF]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(100):  # whether the beat or the look comes first after it is a matter of luck
            await process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(4 * HELD_S)
            process.send_signal(signal.SIGCONT)
            told = (await process.stderr.readline()).decode()
            assert "the event loop was held for" in told
            if "by nothing of its own: the process was not run" in told:
                return
            assert "could not be looked at" in told
        pytest.fail("it was never seen")
    finally:
        process.kill()
        await process.communicate()


_STOPS_ITSELF = """
import asyncio, logging
from terrazzo.runtime.loop_watch import LoopWatch

async def main():
    logging.basicConfig()
    while True:
        watch = LoopWatch()
        watch.start()
        await asyncio.sleep(0.02)
        print("ready", flush=True)
        while not watch.held:
            await asyncio.sleep(0.001)
        watch.stop()

asyncio.run(main())
"""


async def test_each_beat_is_in_the_histogram(watch: LoopWatch):
    await until(lambda: value(watch, "terrazzo_loop_delay_seconds_count") >= 3, "it beats")
    hold_up(2 * HELD_S)
    await until(lambda: value(watch, "terrazzo_loop_held_total") == 1, "the delay is counted")
    assert value(watch, "terrazzo_loop_delay_seconds_sum") > HELD_S
    assert value(watch, "terrazzo_loop_delay_max_seconds") > HELD_S


async def test_what_is_excused_is_not_told(watch: LoopWatch):
    await until(lambda: value(watch, "terrazzo_loop_delay_seconds_count") >= 2, "it beats")
    hold_up(4 * HELD_S)
    watch.excuse()
    await until(lambda: value(watch, "terrazzo_loop_delay_seconds_count") >= 4, "it goes on")
    assert watch.held == 0


async def test_while_there_is_nothing_to_do_beats_are_few_and_work_brings_them_back(watch: LoopWatch):
    await until(lambda: watch._is_resting, "it rests")
    beats, began_s = value(watch, "terrazzo_loop_delay_seconds_count"), time.perf_counter()
    await asyncio.sleep(0.5)
    rested_s = time.perf_counter() - began_s
    assert value(watch, "terrazzo_loop_delay_seconds_count") - beats <= rested_s / 0.05 + 1
    watch.longest_cpu_s = 0.0
    work_up(2 * HELD_S)
    await until(lambda: not watch._is_resting, "it beats as before")
    assert watch.longest_cpu_s >= 1.5 * HELD_S, "what was done in that turn counts"
    beats, began_s = value(watch, "terrazzo_loop_delay_seconds_count"), time.perf_counter()
    await until(lambda: value(watch, "terrazzo_loop_delay_seconds_count") >= beats + 10, "they come often")


async def test_a_loop_that_is_held_while_it_rests_is_told_of(watch: LoopWatch, caplog: pytest.LogCaptureFixture):
    await until(lambda: watch._is_resting, "it rests")
    with caplog.at_level(logging.WARNING):
        hold_up(4 * HELD_S)
        await until(lambda: watch.held == 1, "the delay is told")
    assert watch.longest_s > 2 * HELD_S


async def test_a_stopped_one_leaves_no_thread_and_no_beat(watch: LoopWatch):
    watch.stop()
    hold_up(2 * HELD_S)
    await asyncio.sleep(0)
    assert watch.held == 0


async def test_a_note_ends_with_the_work_and_the_one_before_it_counts_again():
    task = asyncio.current_task()
    assert task is not None
    outer = at_work.begin(Work("import", 3))
    inner = at_work.begin(Work("create_object", 3))
    assert at_work.noted(task).endswith(": create_object for company 3")
    at_work.end(inner)
    assert at_work.noted(task).endswith(": import for company 3")
    at_work.end(outer)
    assert at_work.noted(task) == task.get_name()


async def test_processor_time_is_told_beside_the_delay(watch: LoopWatch, caplog: pytest.LogCaptureFixture):
    await until(lambda: value(watch, "terrazzo_loop_delay_seconds_count") >= 2, "it beats")
    before = watch.longest_cpu_s
    with caplog.at_level(logging.WARNING):
        hold_up(4 * HELD_S)
        await until(lambda: watch.held == 1, "the delay is told")
    assert watch.longest_cpu_s < max(before, HELD_S), "it slept"
    assert "ms of processor time) by" in caplog.text
    work_up(2 * HELD_S)
    await until(lambda: value(watch, "terrazzo_loop_cpu_max_seconds") >= 2 * HELD_S, "it worked")


def work_up(seconds: float) -> None:
    """Works for so long, by processor time."""
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


@pytest.fixture
def rows() -> list[list[list[str]]]:
    """What a collection takes a while to look through, and all that it looks through; made before anybody watches."""
    set_aside()
    return [[[]] for _ in range(300_000)]


async def test_the_garbage_collector_is_told_of(
    rows: list[list[list[str]]], watch: LoopWatch, caplog: pytest.LogCaptureFixture
):
    await until(lambda: value(watch, "terrazzo_loop_delay_seconds_count") >= 2, "it beats")
    with caplog.at_level(logging.WARNING):
        await asyncio.sleep(0.05)
        for _ in range(20):
            gc.collect()
        await until(lambda: "by the garbage collector (" in caplog.text, "the delay is told")
    assert value(watch, "terrazzo_loop_collection_max_seconds") > 0
    assert value(watch, "terrazzo_loop_tasks") >= 1
    assert len(rows) == 300_000
    watch.stop()
    assert watch._on_collection not in gc.callbacks
