"""The system's clock jumps while the platform works: an hour and a day, forward and back, by Debian's libfaketime.

What is faked is the time of day; the monotonic clock goes on as the system's does.
"""

from __future__ import annotations

import os
import time
import urllib.request
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from load import Load, Promised, connack, prepared, tell
from outcomes import Broken, Outcome
from test_acknowledged_is_stored import TERMINALS

from running import Platform, wait_for

JUMPS_S = (3_600, 0, 86_400, 0, -3_600, 0, -86_400, 0, 86_400, -86_400)
"""What the clock is ahead after each, of the system's: there and back, and two days at once at the end."""
ENOUGH = 200
_LIBRARY = "faketime/libfaketimeMT.so.1"
_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib")
_PATIENCE_S = 120
_OFF_S = 300  # by which the platform's clock may differ from what was set: the load takes its time


class PlatformOnClock(Platform):
    """One whose clock a file sets; a process as users start it, so that the library is loaded into it."""

    program = ("-c", "import runpy; runpy.run_module('terrazzo', run_name='__main__')")


def faketime_library() -> Path | None:
    """Debian's ``libfaketime``."""
    found = [path for folder in _FOLDERS for path in Path(folder).glob(f"*/{_LIBRARY}")]
    return found[0] if found else None


def require_faketime() -> Path:
    """Skips where there is none."""
    library = faketime_library()
    if library is None:
        pytest.skip("libfaketime is not installed")
    return library


class Clock:
    """A platform's. It looks at its file once a second."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(require_faketime()),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
            "NO_FAKE_STAT": "1",
            "TERRAZZO_COMMAND__EXPIRY_S": str(30 * 86_400),  # by default a command waits for a day
        }

    def set(self, ahead_s: int) -> None:
        """So much ahead of the system's."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{ahead_s:+d}\n")
        os.replace(part, self._file)


def jump_again_and_again(work: Path, rounds: int, *, first: int, told: bool = False) -> Outcome:
    """That many jumps under one load; then a kill, and a start with the system's own clock, where all is looked for."""
    work.mkdir(parents=True, exist_ok=True)
    data, promised, following = work / "data", Promised(), dict.fromkeys(TERMINALS, 0)
    config, outcome, clock = prepared(data), Outcome(), Clock(work / "clock")
    platform: Platform = PlatformOnClock(data, env=clock.environment)
    began_s = time.monotonic()
    try:
        load = Load(platform.login(), config, promised, following, round_number=first)
        load.wait(ENOUGH)
        for number in range(first, first + rounds):
            jumped_s = time.monotonic()
            _jump(platform, clock, load, JUMPS_S[number % len(JUMPS_S)])
            platform.add_terminal(f"new-{number}", config)
            if (answer := connack(platform.mqtt, f"new-{number}")) != "20020000":
                raise Broken(f"after jump {number} a new terminal is answered {answer}")
            outcome.add(Outcome(rounds=1, ready_s=time.monotonic() - jumped_s))
        load.cease()
        platform.kill()
        load.join()
        promised = load.so_far()
        platform = Platform(data)
        promised.checked(platform.login())
    finally:
        platform.kill()
    outcome.acknowledged, outcome.silent_s = promised.acknowledged, load.silent_s
    if told:
        tell("clock jumps until", first + rounds, promised, began_s)
    return outcome


def _jump(platform: Platform, clock: Clock, load: Load, ahead_s: int) -> None:
    load.changes.may_fail = True  # a token may end by it
    clock.set(ahead_s)
    wait_for(lambda: abs(_ahead_s(platform) - ahead_s) < _OFF_S, "the clock jumps", timeout_s=_PATIENCE_S)
    platform.login()
    before, answered = load.counts(), load.changes.answered
    wait_for(
        lambda: all(count >= before[uid] + ENOUGH for uid, count in load.counts().items()),
        "further PUBACKs, on the same connections",
        timeout_s=_PATIENCE_S,
    )
    wait_for(lambda: load.changes.answered >= answered + 2, "changes", timeout_s=_PATIENCE_S)
    load.changes.may_fail = False
    wait_for(lambda: platform.unready_parts() == [], "every part is ready", timeout_s=_PATIENCE_S)
    for uid in TERMINALS:
        if not platform.call("get_terminal_item", uid=uid)["online"]:
            raise Broken(f"after a jump to {ahead_s:+} s {uid} is told offline, and is connected")


def _ahead_s(platform: Platform) -> float:
    """How far the platform's clock is ahead of the system's, by what it says of an answer."""
    with urllib.request.urlopen(f"{platform.url}/healthz", timeout=_PATIENCE_S) as answer:
        return parsedate_to_datetime(answer.headers["Date"]).timestamp() - time.time()
