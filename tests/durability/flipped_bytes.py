"""A bit flips in one of the files of the data folder: who tells of it, and what is there nevertheless.

What is in a file is compared with what was acknowledged, over the gateway and MQTT, by a platform that starts on it.
"""

from __future__ import annotations

import fnmatch
import json
import os
import random
import re
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load import Load, Promised, connack, prepared
from outcomes import Broken, Outcome
from test_acknowledged_is_stored import TERMINALS, stored_numbers

from loaded_process import run_loaded_text
from running import Platform, wait_for

ENOUGH = 5_000
"""Messages of each terminal: a block of 4,096 is packed."""
CHECKED = (
    *("series/*.sst", "series/*.log", "series/MANIFEST-*", "series/CURRENT"),
    *("broker/*.sst", "broker/*.log", "broker/MANIFEST-*", "broker/CURRENT"),
)
"""Kinds whose damage is told, or has no consequence: their bytes have checksums, or say where those are."""
UNCHECKED = (
    *("terrazzo.db", "terrazzo.db-wal", "secrets-key", "token-key", "firmware-key", "broker-id"),
    *("terminal-places", "user-places", "last-seen", "auto-logins", "refusals"),
    *("series/OPTIONS-*", "series/IDENTITY", "series/rocksdict-config.json", "series/LOG"),
    *("broker/OPTIONS-*", "broker/IDENTITY", "broker/rocksdict-config.json", "broker/LOG"),
)
KINDS = CHECKED + UNCHECKED
_LISTS: dict[str, dict[str, Any]] = {
    "get_terminal_list": {"page_size": 1_000},
    "get_terminal_config_list": {"page_size": 1_000},
    "get_command_list": {"page_size": 1_000},
    "get_retained_list": {"filter": "g/#"},
}
_PASSING = ("online", "time", "connect", "seen", "state")
_SAID = re.compile(r"^\S+ \S+ (?:WARNING|ERROR|CRITICAL) .*", re.MULTILINE)
_NAMES = re.compile(r"\d+|[0-9a-f]{8,}")


@dataclass
class Truth:
    """Data folders as a kill and a stop left them, and what a platform on them answers."""

    folders: list[Path]
    promised: Promised
    token: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)  # by doctor and start where nothing is damaged


@dataclass(frozen=True)
class Seen:
    """What was seen of one flipped bit. ``told``: by whom; ``is_intact``: all that was promised is there."""

    told: frozenset[str]
    is_intact: bool
    why: str = ""  # it doesn't start

    def __str__(self) -> str:
        if not self.told:
            return "nothing lost" if self.is_intact else "unnoticed"
        return f"told by {' and '.join(sorted(self.told))}" + (", nothing lost" if self.is_intact else "")


def flip_again_and_again(work: Path, rounds: int, *, first: int, told: bool = False) -> Outcome:
    """A bit in a file of each kind in turn.

    Raises:
        Broken: something was lost, and nobody told of it, in a file whose bytes have checksums.
    """
    truth, outcome = made_truth(work), Outcome()
    for number in range(first, first + rounds):
        kind = KINDS[number % len(KINDS)]
        seen = flip_and_look(work, truth, kind, seed=number)
        outcome.rounds += 1
        outcome.acknowledged = truth.promised.acknowledged
        outcome.count(kind, str(seen or "there is none, or it is empty"))
        if told:
            print(f"a bit of {kind} {number}: {seen} {seen.why if seen else ''}", flush=True)
        if str(seen) == "unnoticed" and kind in CHECKED:
            raise Broken(f"a bit of {kind} {number} has lost something, and nobody tells of it")
    return outcome


def made_truth(work: Path) -> Truth:
    """A platform that has had its load, been stopped, had some more, and been killed."""
    work.mkdir(parents=True, exist_ok=True)
    data, promised, following = work / "data", Promised(), dict.fromkeys(TERMINALS, 0)
    config = prepared(data)
    with Platform(data) as platform:
        load = Load(platform.login(), config, promised, following, round_number=0)
        load.wait(ENOUGH, changes=3)
        load.changes.cease()
        wait_for(lambda: load.changes.is_over, "the last change")
        wait_for(lambda: _sealed(platform), "a block is packed", timeout_s=120)
        load.cease()
        platform.stop()
        load.join()
        promised = load.so_far()
    stopped = Path(shutil.copytree(data, work / "stopped", ignore=shutil.ignore_patterns("*.sock")))
    platform = Platform(data)
    try:
        promised.checked(platform.login())
        later = promised.copy()
        load = Load(platform, config, later, following, round_number=1)
        load.wait(ENOUGH // 10, changes=2)
        load.changes.cease()
        wait_for(lambda: load.changes.is_over, "the last change")
    finally:
        platform.kill()
    load.join()
    truth = Truth([data, stopped], load.so_far(), token=platform.token or "")
    truth.promised.readings = promised.readings  # which both folders have
    for folder in truth.folders:
        with damaged_copy(work, folder) as copy:
            truth.said |= _doctor(copy)
            with Platform(copy) as again:
                truth.answers[folder.name] = _answers(again, truth)
            truth.said |= _said(copy)
    return truth


def _sealed(platform: Platform) -> bool:
    return "terrazzo_store_sealed_records_total 0.0" not in _metrics(platform)


def _metrics(platform: Platform) -> str:
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


@contextmanager
def damaged_copy(work: Path, folder: Path) -> Iterator[Path]:
    """A folder to be damaged, gone afterwards."""
    copy = work / "copy" / "data"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.sock"))
    try:
        yield copy
    finally:
        shutil.rmtree(work / "copy")


def flip_and_look(work: Path, truth: Truth, kind: str, *, seed: int) -> Seen | None:
    """One bit of one file of a kind; None: no folder has one with anything in it."""
    chance = random.Random(seed)
    found = [
        (folder, path.relative_to(folder))
        for folder in truth.folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size and fnmatch.fnmatch(str(path.relative_to(folder)), kind)
    ]
    if not found:
        return None
    folder, name = chance.choice(found)
    with damaged_copy(work, folder) as copy:
        place = chance.randrange((copy / name).stat().st_size)
        with (copy / name).open("r+b") as file:
            byte = os.pread(file.fileno(), 1, place)[0]
            os.pwrite(file.fileno(), bytes((byte ^ 1 << chance.randrange(8),)), place)
        return look(copy, truth, folder.name)


def look(copy: Path, truth: Truth, of: str) -> Seen:
    """Doctor, a start, and whoever reads; a process that ends must say why, and not by a traceback."""
    told = set()
    if _doctor(copy) - truth.said:
        told.add("doctor")
    log = copy.parent / f"{copy.name}.log"
    try:
        platform = Platform(copy)
    except AssertionError:
        text = log.read_text(errors="replace").strip()
        if "Traceback" in text or not text:
            raise Broken(f"the start ends without words: {text[-2_000:]}") from None
        return Seen(frozenset(told | {"start"}), is_intact=False, why=text.splitlines()[-1])
    with platform:
        try:
            answers = _answers(platform, truth)
        except (AssertionError, OSError, RuntimeError) as error:
            told.add("readers")
            answers = {"error": str(error)}
    if _said(copy) - truth.said:
        told.add("log")
    return Seen(frozenset(told), is_intact=answers == truth.answers[of])


def _doctor(copy: Path) -> set[str]:
    """The parts that it warns of."""
    done = run_loaded_text(["-m", "terrazzo", "doctor", "--data", str(copy), "--json"], env=dict(os.environ))
    try:
        findings = json.loads(done.stdout)
    except ValueError:
        raise Broken(f"doctor ends without words: {done.stdout[-500:]} {done.stderr[-1_500:]}") from None
    return {
        f"{each['part']} {each['level']}"
        for each in findings
        if each["level"] != "ok" and not each["part"].endswith("port")  # which somebody else may have
    }


def _said(copy: Path) -> set[str]:
    """What the log has warned of, without numbers."""
    text = (copy.parent / f"{copy.name}.log").read_text(errors="replace")
    lines = [line.split(" ", 2)[2] for line in _SAID.findall(text)]
    return {_NAMES.sub("#", line) for line in lines if "runtime.loop_watch" not in line}  # that is the machine's load


def _answers(platform: Platform, truth: Truth) -> dict[str, Any]:
    """What readers are told: of readings, which are missing; of the rest all."""
    found: dict[str, Any] = {"login": connack(platform.mqtt, TERMINALS[0])}
    platform.client.session.token = truth.token
    found["token"] = platform.ask("get_terminal_list", page_size=1)["code"]
    platform.login()
    for uid in TERMINALS:
        numbers = stored_numbers(platform, uid)
        found[uid] = (sorted(truth.promised.readings[uid] - set(numbers)), len(numbers) - len(set(numbers)))
    for name, fields in _LISTS.items():
        listed = platform.call(name, **fields)
        found[name] = [_lasting(row) for row in (listed["data"] if isinstance(listed, dict) else listed)]
    return found


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what each start changes."""
    return {name: value for name, value in row.items() if not any(part in name for part in _PASSING)}
