"""Ends a test that hangs, and says what it waits for.

pytest-timeout raises in the handler of a signal. While an event loop runs, that is a callback of the loop, which tells
of the exception and goes on: a test that waits for what never comes would hang for ever. So here what the loop runs is
cancelled instead, and the failure shows what all tasks and threads were at.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_AGAIN_S = 30.0
"""Between two tries: what waits may be in the test's own ``finally``, or in the end of a fixture."""
_LONGEST, _LONGEST_LINE = 60_000, 4_000
_DEEPEST = 30


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: Any, settings: Any) -> bool | None:
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None  # pytest-timeout's own way

    def over(_: int, frame: FrameType | None) -> None:
        told, task = tasks_and_threads(frame), running_task(frame)
        why = f"the test took longer than {settings.timeout:.0f} s"
        item.add_report_section("call", why, told)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel, f"{why}; {waits(task)}")
        elif runs_a_loop():  # that can't be told to end, and would go on after an exception here
            print(f"{told}\n{item.nodeid}: {why}, at the end of its loop", file=sys.__stderr__, flush=True)
            os._exit(1)
        else:
            pytest.fail(why)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel
    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


def running_task(frame: FrameType | None) -> asyncio.Task[Any] | None:
    """What a loop runs to its end, in the innermost ``Runner.run`` of a stack."""
    while frame is not None:
        if frame.f_code is asyncio.Runner.run.__code__:
            task = frame.f_locals.get("task")
            return task if isinstance(task, asyncio.Task) and not task.done() else None
        frame = frame.f_back
    return None


def runs_a_loop() -> bool:
    """Whether this thread's loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def waits(task: asyncio.Task[Any]) -> str:
    """The coroutines that a task is in, from the outermost to what it waits for, and those of the other tasks."""
    others = [each for each in asyncio.all_tasks(task.get_loop()) if each is not task]
    return "; ".join(f"{each.get_name()}: {' > '.join(_places(each))}" for each in [task, *others])[:_LONGEST_LINE]


def _places(task: asyncio.Task[Any]) -> Iterator[str]:
    at: Any = task.get_coro()
    for _ in range(_DEEPEST):
        frame = getattr(at, "cr_frame", None) or getattr(at, "ag_frame", None) or getattr(at, "gi_frame", None)
        if frame is None:
            yield type(at).__name__
            return
        yield f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"
        at = getattr(at, "cr_await", None) or getattr(at, "ag_await", None) or getattr(at, "gi_yieldfrom", None)
        if at is None:
            return


def tasks_and_threads(frame: FrameType | None) -> str:
    """What each is at, as text."""
    told = io.StringIO()
    if (running := running_task(frame)) is not None:
        for task in asyncio.all_tasks(running.get_loop()):
            task.print_stack(file=told)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, each in sys._current_frames().items():
        print(f"Thread {names.get(ident, ident)}:", file=told)
        traceback.print_stack(each, file=told)
    return told.getvalue()[:_LONGEST]
