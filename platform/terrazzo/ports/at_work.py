"""Who the event loop works for at the moment: noted by entry points, told by the watch over the loop.

A note belongs to the task that made it, as other tasks run while that one waits. What no task does (bytes that arrive
on a connection) notes its name in ``Entry.who``.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

import msgspec


class Work(msgspec.Struct, eq=False):
    """An operation, and the company it is done for; 0 where that isn't known (yet)."""

    operation: str
    company_id: int = 0
    task: asyncio.Task[Any] | None = None  # that does it
    before: Work | None = None  # what it did before, and does again
    may_end: bool = False  # at any moment, and nothing is the worse for it
    waits: Wait | None = None  # for its turn: nothing is done for it meanwhile
    is_overdue: bool = False  # it is being ended, as it took too long
    ends_with_client: bool = False  # when whoever asked has gone; not once it begins to change something

    def __str__(self) -> str:
        return f"{self.operation} for company {self.company_id}" if self.company_id else self.operation


class Wait:
    """The current task waits for its turn, from now on until ``end``, which any thread may call, and more than once."""

    __slots__ = ("_works",)

    def __init__(self) -> None:
        self._works = _chain(_noted.get(_current_task()))
        for work in self._works:
            work.waits = self

    def end(self) -> None:
        """Its turn has come, or it waits no longer."""
        for work in self._works:
            if work.waits is self:
                work.waits = None

    def __enter__(self) -> None:
        """A context ends it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


_noted: dict[asyncio.Task[Any] | None, Work] = {}  # of no task there is no note
_current_task = asyncio.current_task


def begin(work: Work, loop: asyncio.AbstractEventLoop | None = None) -> Work:
    """Notes what the current task does from now on; give ``end`` what this returns.

    Args:
        loop: that runs; who knows it spares a call of the system that costs as much as all the rest.
    """
    task = _current_task(loop)
    if task is not None:
        work.task = task
        if task in _noted:
            work.before = _noted[task]
        _noted[task] = work
    return work


def end(begun: Work) -> None:
    """The task does again what it did before."""
    if begun.before is None:
        _noted.pop(begun.task, None)
    else:
        _noted[begun.task] = begun.before


def end_of_lost(work: Work) -> None:
    """Whoever has asked for it is gone: ends it, unless it changes something."""
    if work.ends_with_client and work.task is not None:
        work.task.cancel()


def begin_change() -> None:
    """The current task begins to change something: from now on it goes on, whether anybody waits for the answer."""
    for work in _chain(_noted.get(_current_task())):
        work.ends_with_client = False


def under_way() -> list[Work]:
    """All that is noted by tasks, what they do again afterwards too."""
    return [work for noted_work in _noted.values() for work in _chain(noted_work)]


def _chain(work: Work | None) -> list[Work]:
    """A task's work, and what it does again afterwards."""
    found = []
    while work is not None:
        found.append(work)
        work = work.before
    return found


def company_id() -> int:
    """The company that the current task works for; 0 for the platform itself, and where that isn't known."""
    work = _noted.get(_current_task())
    return 0 if work is None else work.company_id


def operation() -> str:
    """The operation that the current task does; empty where it does none."""
    work = _noted.get(_current_task())
    return "" if work is None else work.operation


def noted(task: asyncio.Task[Any]) -> str:
    """What a task does: what it has noted, and its name."""
    work = _noted.get(task)
    return task.get_name() if work is None else f"{task.get_name()}: {work}"
