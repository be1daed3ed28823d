"""The garbage collector holds the loop for no longer than it takes to look at what has come lately."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from terrazzo.bulk.rows import SourceRow
from terrazzo.runtime import process

LONGEST_S = 0.06  # on a busy machine; what is looked at takes 5 to 25 ms


@contextmanager
def longest_collection() -> Iterator[list[float]]:
    """Processor seconds of each collection meanwhile."""
    began_s, found = 0.0, []

    def on_collection(phase: str, _about: dict[str, Any]) -> None:
        nonlocal began_s
        if phase == "start":
            began_s = time.thread_time()
        else:
            found.append(time.thread_time() - began_s)

    gc.callbacks.append(on_collection)
    try:
        yield found
    finally:
        gc.callbacks.remove(on_collection)


def test_a_hundred_thousand_rows_that_stay_are_not_looked_at_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    monkeypatch.setattr(process.gc, "freeze", lambda: None)
    try:
        process.tune_collector()
        with longest_collection() as found:
            rows = [SourceRow(number, {"uid": "u", "list": [[], []], "more": {"a": []}}) for number in range(400_000)]
    finally:
        gc.set_threshold(*before)
    assert len(rows) == 400_000
    assert len(found) > 10
    assert max(found) < LONGEST_S
