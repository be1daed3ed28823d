"""Watches the event loop: how late it comes to what is due, and what held it when it was long.

Everything that the platform does for its peers it does in one loop; whoever holds it holds all others up. A beat in the
loop measures its delay, and a thread beside it looks, while a beat is overdue, at what the loop is doing. While there
is next to nothing to do the beats are fewer, until that thread sees the loop's at work.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import accumulate, islice
from types import FrameType
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.ports.at_work import noted
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.log_text import visible

_log = logging.getLogger(__name__)

BEAT_S = 0.01
HELD_S = 0.05  # a longer delay is told, with what held the loop
_LOOK_S = 0.001  # the least between two looks of the thread, which come when the next beat would be overdue
_REST_S = 0.05  # between two beats while there is next to nothing to do: each wakes the processor
_RESTS_AFTER = 50  # beats with no more processor time than this in between: what may hold the loop wakes it
_IDLE_S = 0.005
_RECORD = 1.25  # times the longest that was told: is told at once, however many were told just before
_FRAMES = 8  # innermost ones that are told
_NOT_RUN = "nothing of its own: the process was not run (stopped, or its machine was)"
_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_CAN_WAKE = hasattr(time, "pthread_getcpuclockid")

Who = Callable[[], str]
"""What a part does for whom outside tasks; empty when it does nothing."""


def _processor_clock(thread_id: int) -> int | None:
    return time.pthread_getcpuclockid(thread_id) if _CAN_WAKE else None


def _named(call: FrameType, line: int) -> str:
    code = call.f_code
    return f"{code.co_name} ({code.co_filename.rpartition('/')[2]}:{line})"


class LoopWatch(Collector):
    """Measures the delays of the loop that it is started in, and logs what held it longer than 50 ms.

    ``who``: the parts that work outside tasks, or for somebody whom their task doesn't name. ``clock``: monotonic
    seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self.held = 0
        self.longest_s = 0.0
        self.longest_cpu_s = 0.0  # of the loop's thread between two beats
        self.longest_collection_s = 0.0
        self.collection_s = 0.0  # of all, by processor time
        self.who: list[Who] = []
        self._clock = clock
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self._sum_s = 0.0
        self._due_s = 0.0
        self._cpu_s = 0.0  # of the loop's thread at the last beat
        self._collecting_since = 0.0, 0.0  # seconds of the clock, and of the thread's processor time
        self._collected_s = 0.0  # how long the garbage collector worked since the last beat
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen = (0.0, "")  # what the thread saw while the beat that was due then was overdue
        self._idle_beats = 0
        self._is_resting = False
        self._handle: asyncio.Handle | None = None
        self._stopped = False
        self._running = threading.Lock()  # is held until the watch is stopped: the cheapest thing to wait for
        self._thread: threading.Thread | None = None
        self._sparse_log = SparseLog(_log)
        self._told_s = self._told_cpu_s = 0.0  # the longest that was told

    def start(self) -> None:
        """Begins to watch the running loop."""
        self._loop = loop = asyncio.get_running_loop()
        self._due_s, self._cpu_s = self._clock(), time.thread_time()
        gc.callbacks.append(self._on_collection)
        self._handle = loop.call_soon(self._beat, loop)
        self._stopped, self._running = False, threading.Lock()
        self._running.acquire()
        looking = (loop, threading.get_ident())
        self._thread = threading.Thread(target=self._look_on, args=looking, name="loop watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._stopped = True
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
        if self._handle is not None:
            self._handle.cancel()
        if self._thread is not None:
            self._running.release()
            self._thread.join()
            self._thread = None

    def excuse(self) -> None:
        """Measures from now on: what has held the loop in this turn had to."""
        self._due_s, self._cpu_s = max(self._due_s, self._clock()), time.thread_time()
        self.longest_collection_s = self._collected_s = 0.0

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        delay_s, cpu_s = max(0.0, self._clock() - self._due_s), time.thread_time()
        spent_s = cpu_s - self._cpu_s
        self._counts[bisect_left(_BOUNDS_S, delay_s)] += 1
        self._sum_s += delay_s
        if not self._is_resting or delay_s > BEAT_S:  # else it was spent in many turns
            self.longest_cpu_s = max(self.longest_cpu_s, spent_s)
        if delay_s > HELD_S:
            self._tell(delay_s, spent_s)
            cpu_s = time.thread_time()
        self._idle_beats = 0 if spent_s > _IDLE_S or not _CAN_WAKE else self._idle_beats + 1
        self._is_resting = self._idle_beats > _RESTS_AFTER
        self._collected_s, self._cpu_s = 0.0, cpu_s
        after_s = _REST_S if self._is_resting else BEAT_S
        self._due_s = self._clock() + after_s
        self._handle = loop.call_later(after_s, self._beat, loop)

    def _wake(self, loop: asyncio.AbstractEventLoop, asked_s: float, cpu_s: float) -> None:
        """A beat that the thread asked for, as this one has begun to work: its processor time was ``cpu_s`` before."""
        if self._handle is not None and self._is_resting and not self._stopped:
            self._handle.cancel()
            self._is_resting, self._due_s, self._cpu_s = False, min(self._due_s, asked_s), cpu_s
            self._beat(loop)

    def _on_collection(self, phase: str, _about: Mapping[str, Any]) -> None:
        """The garbage collector calls this, in whichever thread it works, at its beginning and at its end."""
        if phase == "start":
            self._collecting_since = self._clock(), time.thread_time()
            return
        since_s, cpu_s = self._collecting_since
        took_s = self._clock() - since_s
        self.collection_s += time.thread_time() - cpu_s
        self._collected_s += took_s
        self.longest_collection_s = max(self.longest_collection_s, took_s)

    def _tell(self, delay_s: float, cpu_s: float) -> None:
        self.held += 1
        self.longest_s = max(self.longest_s, delay_s)
        is_record = delay_s > _RECORD * self._told_s or cpu_s > _RECORD * self._told_cpu_s
        due_s, seen = self._seen
        by = seen if seen and due_s == self._due_s else "what held the interpreter too: it could not be looked at"
        if self._collected_s > delay_s / 2:
            by = f"the garbage collector ({self._collected_s * 1_000:.0f} ms), at {by}"
        told = "the event loop was held for %.0f ms (%.0f ms of processor time) by %s"
        (_log if is_record else self._sparse_log).warning(told, delay_s * 1_000, cpu_s * 1_000, by)
        if is_record:
            self._told_s, self._told_cpu_s = max(delay_s, self._told_s), max(cpu_s, self._told_cpu_s)

    def _look_on(self, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        """The thread: looks once at each beat as it gets overdue, and has beats come often when the loop is at work."""
        looked_at, clock = 0.0, _processor_clock(thread_id)
        cpu_s, process_s = 0.0, time.process_time()
        while True:
            asleep_s = self._clock()
            is_known = self._is_resting or self._due_s == looked_at
            pause_s = _REST_S if is_known else max(_LOOK_S, self._due_s + HELD_S - asleep_s)
            if self._running.acquire(timeout=pause_s):
                return
            due_s, now_s = self._due_s, self._clock()
            had_s, process_s = process_s, time.process_time()
            if due_s != looked_at and now_s - due_s > HELD_S:
                looked_at = due_s
                missed_s, ran_s = now_s - asleep_s - pause_s, process_s - had_s
                was_run = missed_s < HELD_S / 2 or ran_s > missed_s / 4
                self._seen = (due_s, self._look(loop, thread_id) if was_run else _NOT_RUN)
            if clock is not None and self._is_resting:
                before_s, cpu_s = cpu_s, time.clock_gettime(clock)
                if before_s and cpu_s - before_s > _IDLE_S:
                    with suppress(RuntimeError):  # the loop has just been closed
                        loop.call_soon_threadsafe(self._wake, loop, self._clock(), before_s)
            else:
                cpu_s = 0.0

    def _look(self, loop: asyncio.AbstractEventLoop, thread_id: int) -> str:
        """Who is at work, and the innermost calls."""
        try:
            task = asyncio.current_task(loop)
            names = [name for each in self.who if (name := each())]
            who = ", ".join([*([noted(task)] if task else []), *names]) or "a callback"
            frame = sys._current_frames().get(thread_id)
        except RuntimeError:  # the loop went on meanwhile
            return ""
        calls = islice(traceback.walk_stack(frame), _FRAMES)  # a StackSummary would ask the disk about each file
        return visible(f"{who}: {' < '.join(_named(call, line) for call, line in calls)}")

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        bounds = [*map(str, _BOUNDS_S), "+Inf"]
        buckets = list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
        delay = HistogramMetricFamily("terrazzo_loop_delay_seconds", "How late the event loop came to what was due")
        delay.add_metric([], buckets, self._sum_s)
        held = CounterMetricFamily("terrazzo_loop_held_total", "Delays of the event loop of more than 50 ms")
        held.add_metric([], self.held)
        longest = GaugeMetricFamily(
            "terrazzo_loop_delay_max_seconds", "The longest delay of the event loop since the start"
        )
        longest.add_metric([], self.longest_s)
        cpu = GaugeMetricFamily(
            "terrazzo_loop_cpu_max_seconds", "The most processor time between two looks at the event loop, 10 ms apart"
        )
        cpu.add_metric([], self.longest_cpu_s)
        collection = GaugeMetricFamily(
            "terrazzo_loop_collection_max_seconds", "The longest work of the garbage collector since the start"
        )
        collection.add_metric([], self.longest_collection_s)
        collections = CounterMetricFamily(
            "terrazzo_loop_collection_seconds_total", "Processor time that the garbage collector took"
        )
        collections.add_metric([], self.collection_s)
        tasks = GaugeMetricFamily("terrazzo_loop_tasks", "Tasks of asyncio that exist now")
        tasks.add_metric([], 0 if self._loop is None else len(asyncio.all_tasks(self._loop)))
        return delay, held, longest, cpu, collection, collections, tasks
