"""Threads that compute beside the event loop, and who has the interpreter when."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from terrazzo.runtime import process
from terrazzo.short_turns import LONG_S, SHORT_S, ComputingThreads, computing
from terrazzo_adapters.keyvalue.readers import Readers


@pytest.fixture(autouse=True)
def interval() -> Iterator[None]:
    """The interpreter's as it was."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(LONG_S)
    yield
    sys.setswitchinterval(before)


def interval_s() -> float:
    return round(sys.getswitchinterval(), 4)


def test_who_computes_lets_others_have_the_interpreter_after_a_millisecond() -> None:
    turns, stopping = 0, threading.Event()

    def compute() -> None:
        with computing:
            while not stopping.is_set():
                sum(range(1_000))

    busy = threading.Thread(target=compute)
    try:
        busy.start()
        began_s, used_s = time.monotonic(), time.thread_time()
        while turns < 200 and time.monotonic() - began_s < 20:
            time.sleep(0)  # as whoever waits for a socket: the other thread takes over
            turns += 1
        assert interval_s() == SHORT_S
        assert time.thread_time() - used_s < 5
    finally:
        stopping.set()
        busy.join()
    assert turns == 200, "each within 100 ms, on whatever machine"
    assert interval_s() == LONG_S


def test_turns_are_short_until_the_last_is_done_and_long_after_failures() -> None:
    with computing:
        with pytest.raises(ZeroDivisionError), computing:
            _ = 1 / 0
        assert interval_s() == SHORT_S
    assert interval_s() == LONG_S


def test_what_threads_of_the_platforms_loop_do_counts() -> None:
    loop = process.new_event_loop()
    try:
        assert loop.run_until_complete(asyncio.to_thread(interval_s)) == SHORT_S
        assert interval_s() == LONG_S
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def test_what_readers_of_the_store_do_counts() -> None:
    readers = Readers("r", threads=1, of_company=1, waiting=1)
    assert await readers.ask(1, interval_s) == SHORT_S
    readers.close()
    with ComputingThreads(1) as threads:
        assert threads.submit(interval_s).result() == SHORT_S
    assert interval_s() == LONG_S
