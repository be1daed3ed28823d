"""What a run of the suite leaves: machine, peers, figures and what went wrong; as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from terrazzo_bench.result import Better, Series

FORMAT = 1


class NoReport(Exception):
    """A file is no report of this format; the text says why."""


@dataclass(frozen=True, slots=True)
class PeerSeen:
    """A program that figures are held against. ``released`` is YYYY-MM-DD or empty; ``missing`` says how to get it."""

    name: str
    version: str = ""
    released: str = ""
    missing: str = ""


@dataclass(slots=True)
class Report:
    """One run of the suite.

    Attributes:
        made: when it began, YYYY-MM-DD HH:MM UTC.
        machine: what it ran on, by what is told.
        command: the command that made it.
        failed: why a benchmark has no figures, by its name.
    """

    made: str
    machine: dict[str, str]
    commit: str
    command: str
    runs: int
    is_short: bool
    took_s: float = 0.0
    peers: list[PeerSeen] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """For ``--json``."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"


def load_report(path: Path) -> Report:
    """What ``to_json`` wrote.

    Raises:
        NoReport: it can't be read, or is something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoReport(f"{path}: {error}") from error
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise NoReport(f"{path}: is no report of this version (format {FORMAT})")
    try:
        peers = [PeerSeen(**each) for each in found.pop("peers")]
        series = [_series(each) for each in found.pop("series")]
        return Report(**found, peers=peers, series=series)
    except (KeyError, TypeError, ValueError) as error:
        raise NoReport(f"{path}: {error!r}") from error


def _series(given: Mapping[str, Any]) -> Series:
    values = tuple(float(value) for value in given["values"])
    if not values:
        raise ValueError(f"{given['name']}: no values")
    return Series(**{**given, "better": Better(given["better"]), "values": values})
