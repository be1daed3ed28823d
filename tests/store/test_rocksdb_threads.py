"""What commits change on their thread, and the event loop looks at meanwhile.

The garbage collector may begin wherever something is allocated, and lets other threads in.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from terrazzo_adapters.rocksdb.batch import Fresh


@contextmanager
def interrupted(change: Callable[[], None]) -> Iterator[list[int]]:
    """Has something else happen at each allocation, as another thread would; how often it did."""
    times: list[int] = []

    def on_collection(phase: str, _about: object) -> None:
        if phase == "start":
            times.append(len(times))
            change()

    before = gc.get_threshold()
    gc.callbacks.append(on_collection)
    gc.set_threshold(1)
    try:
        yield times
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(on_collection)


@pytest.mark.parametrize("look", [lambda fresh: fresh.full(1), lambda fresh: fresh.waiting(1)])
def test_what_came_is_looked_at_while_more_comes(look: Callable[[Fresh], object]) -> None:
    fresh = Fresh()
    fresh.add({number << 32: 1 for number in range(100)})
    numbers = iter(range(100, 10_000))
    with interrupted(lambda: fresh._counts.update({next(numbers): 1})) as times:
        for _ in range(20):
            look(fresh)
    assert len(times) > 10
