"""The power fails, again and again, under a load: what was acknowledged is there each time."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from test_acknowledged_is_stored import TERMINALS, Publisher, stored_numbers
from unsynced_mount import mounted, power_failure

from running import Platform, wait_for

ENOUGH = 200
"""Messages of each terminal that are acknowledged before the power may fail."""


@dataclass
class Promised:
    """What whoever was told of it may rely on."""

    readings: dict[str, set[int]] = field(default_factory=lambda: {uid: set() for uid in TERMINALS})
    terminals: set[str] = field(default_factory=set)  # that the gateway said are made
    commands: set[str] = field(default_factory=set)  # to which it said that it took a command

    def checked(self, platform: Platform) -> None:
        """Fails where some of it is not there."""
        for uid in TERMINALS:
            numbers = stored_numbers(platform, uid)
            lost = sorted(self.readings[uid] - set(numbers))
            assert lost == [], f"{uid}: {len(lost)} acknowledged messages are lost, from {lost[0]} on"
            assert len(numbers) == len(set(numbers)), f"{uid}: stored twice"
        for uid in sorted(self.terminals):
            assert platform.ask("get_terminal_item", uid=uid)["code"] == 200, f"terminal {uid} is lost"
        for uid in sorted(self.commands):
            journal = platform.call("get_command_list", terminal_id=uid)["data"]
            assert [each["command"] for each in journal] == ["Diag"], f"the command to {uid}: {journal}"


class Changes:
    """Makes terminals, and sends a command to each, by the gateway, one after the other, until the power fails."""

    def __init__(self, platform: Platform, config: str, promised: Promised, round_number: int) -> None:
        self._platform, self._config, self._promised, self._round = platform, config, promised, round_number
        self._ended = threading.Event()
        self.answered = 0
        self._thread = threading.Thread(target=self._run, name="changes")
        self._thread.start()

    def cease(self) -> None:
        """The platform is about to be killed."""
        self._ended.set()

    def join(self) -> None:
        """After it was."""
        self._thread.join(120)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            uid = f"made-{self._round}-{number}"
            try:
                self._platform.add_terminal(uid, self._config)
                self._promised.terminals.add(uid)
                self._platform.call("publish_terminal_command", terminal_id=uid, command="Diag", value="")
                self._promised.commands.add(uid)
            except Exception:
                if self._ended.is_set():
                    return
                raise
            self.answered += 1


def prepared(data: Path) -> str:
    """A data folder with the terminals of the load; the uid of their configuration."""
    with Platform(data) as platform:
        platform.login()
        config = platform.add_config()
        for uid in TERMINALS:
            platform.add_terminal(uid, config)
    return config


def fail_and_check(
    work: Path, data: Path, config: str, promised: Promised, following: dict[str, int], *, seed: int, heeds_syncs: bool
) -> Path:
    """Starts on ``data``, and lets the power fail under a load; the folder that is left, in which nothing is missing.

    The disk is cut off while everything runs: what was acknowledged until just before must be there.
    """
    left = work / "left"
    with mounted(work / "disk", data, heeds_syncs=heeds_syncs) as mount:
        platform = Platform(mount).login()
        try:
            promised.checked(platform)
            publishers = [Publisher(platform.mqtt, uid, following[uid]) for uid in TERMINALS]
            changes = Changes(platform, config, promised, seed)
            enough = ENOUGH + 37 * (seed % 11)
            wait_for(lambda: all(len(p.acknowledged) >= enough for p in publishers), "a load", timeout_s=120)
            wait_for(lambda: changes.answered >= 2, "changes", timeout_s=120)
            kept = Promised(
                {each.uid: promised.readings[each.uid] | set(each.acknowledged) for each in publishers},
                set(promised.terminals),
                set(promised.commands),
            )
            power_failure(mount, left, seed=seed, some=seed % 2 == 1)
            changes.cease()
        finally:
            platform.kill()
        changes.join()
        for publisher in publishers:
            publisher.thread.join(120)
            assert not publisher.thread.is_alive()
            following[publisher.uid] = publisher.next
    promised.readings, promised.terminals, promised.commands = kept.readings, kept.terminals, kept.commands
    return left


def fail_again_and_again(work: Path, rounds: int, *, first: int, told: bool = False, heeds_syncs: bool = True) -> int:
    """That many failures of the power, each on what the one before has left; how many readings were promised."""
    work.mkdir(parents=True, exist_ok=True)
    data, promised, following = work / "data", Promised(), dict.fromkeys(TERMINALS, 0)
    config = prepared(data)
    for seed in range(first, first + rounds):
        began_s = time.monotonic()
        left = fail_and_check(work, data, config, promised, following, seed=seed, heeds_syncs=heeds_syncs)
        shutil.rmtree(data)
        left.rename(data)
        if told:
            count = sum(map(len, promised.readings.values()))
            took_s = time.monotonic() - began_s
            print(
                f"power failure {seed}: {count} readings, {len(promised.terminals)} terminals, "
                f"{len(promised.commands)} commands promised; {took_s:.0f} s",
                flush=True,
            )
        shutil.rmtree(work / "disk")
    with Platform(data) as platform:
        promised.checked(platform.login())
    return sum(map(len, promised.readings.values()))
