"""What a check found: a line of ``terrazzo doctor``, or why ``terrazzo serve`` doesn't start."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Level(Enum):
    """How serious a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """The result of one check: a line of the table."""

    level: Level
    part: str
    found: str
    advice: str = ""
