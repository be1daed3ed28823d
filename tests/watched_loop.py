"""The loops of tests. One whose loop's thread worked for long in one turn fails, in the folders of ``WATCHED``.

There the platform's parts are in the test's own loop. It is processor time, which a busy machine does not lengthen, and
without the collector's work, which goes by all the tests before. What the test itself does in a turn counts, too: where
that is long, ``@pytest.mark.long_turns("why")`` says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

import pytest
import uvloop

from turns_of_loop import WorkClock

ON_UVLOOP = {"api", "commands", "live", "rules", "transports"}
"""Folders whose tests have the loop that ``terrazzo serve`` has: it takes a fourth less time for what they do."""

WATCHED = {"api", "ingest", "live", "transports"}
LONGEST_S = 0.2
BEAT_S = 0.002


class Turns:
    """The longest time that a loop's thread worked between two beats, while the loop ran."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._since_s = 0.0
        self._beats: asyncio.TimerHandle | None = None
        self._clock = WorkClock()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop begins to run."""
        self._since_s = self._clock.now_s()
        self._beats = loop.call_later(BEAT_S, self._beat, loop)

    def end(self) -> None:
        """It runs no more; its last turn counts."""
        self._measure()
        if self._beats is not None:
            self._beats.cancel()

    def stop(self) -> None:
        """Hears of collections no more."""
        self._clock.stop()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._measure()
        self._beats = loop.call_later(BEAT_S, self._beat, loop)

    def _measure(self) -> None:
        now_s = self._clock.now_s()
        self.longest_s = max(self.longest_s, now_s - self._since_s)
        self._since_s = now_s


_running: list[Turns] = []
"""Of the loops that have run since the test began."""


class _Watched(asyncio.AbstractEventLoop):
    turns: Turns | None = None

    def run_forever(self) -> None:
        """As any loop; the turns of a test are counted from where it begins, not its fixtures'."""
        turns = self.turns = self.turns or Turns()
        if turns not in _running:
            turns.longest_s = 0.0
            _running.append(turns)
        turns.begin(self)
        try:
            super().run_forever()
        finally:
            turns.end()

    def close(self) -> None:
        """Its clock, too."""
        if self.turns is not None:
            self.turns.stop()
            self.turns = None
        super().close()


class WatchedUvloop(_Watched, uvloop.Loop):
    """That of ``terrazzo serve``."""


class WatchedAsyncio(_Watched, asyncio.SelectorEventLoop):
    """That of the standard library."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    is_watched = item.path.parent.name in WATCHED
    if item.path.parent.name in ON_UVLOOP:
        return {"uvloop": WatchedUvloop if is_watched else uvloop.new_event_loop}
    return {"asyncio": WatchedAsyncio if is_watched else asyncio.new_event_loop}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long_turns(why): the test itself works for long in one turn of its loop")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    _running.clear()
    result = yield
    longest_s = max((each.longest_s for each in _running), default=0.0)
    if longest_s > LONGEST_S and item.get_closest_marker("long_turns") is None:
        pytest.fail(f"the loop's thread worked for {longest_s * 1_000:.0f} ms in one turn")
    return result
