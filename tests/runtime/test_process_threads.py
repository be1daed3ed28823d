"""Threads that compute beside the event loop, and who has the interpreter when."""

from __future__ import annotations

import sys
import threading
import time

from terrazzo.runtime import process


def test_who_computes_lets_others_have_the_interpreter_after_a_millisecond() -> None:
    before, turns, stopping = sys.getswitchinterval(), 0, threading.Event()

    def compute() -> None:
        while not stopping.is_set():
            sum(range(1_000))

    busy = threading.Thread(target=compute)
    try:
        process.tune_threads()
        assert sys.getswitchinterval() <= 0.001
        busy.start()
        began_s, used_s = time.monotonic(), time.thread_time()
        while turns < 200 and time.monotonic() - began_s < 20:
            time.sleep(0)  # as whoever waits for a socket: the other thread takes over
            turns += 1
        assert time.thread_time() - used_s < 5
    finally:
        stopping.set()
        busy.join()
        sys.setswitchinterval(before)
    assert turns == 200, "each within 100 ms, on whatever machine"
