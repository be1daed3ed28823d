"""What a migration says at its end, and how what is measured on both sides is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from terrazzo.config.sections import Config
from terrazzo.ports.store import TimeSeriesStore

_MOST_NAMED = 100  # differences

OpenStore = Callable[[Config], Awaitable[TimeSeriesStore]]
Tell = Callable[[str, int, int], None]


class Report(msgspec.Struct, kw_only=True):
    """What a migration has moved. ``tables``: rows and checksum by table; ``left_out``: tables of somebody else's;
    ``replicas``: folders that have the same as the target."""

    id: str
    tables: dict[str, tuple[int, str]] = {}
    series: int = 0
    records: int = 0
    notes: int = 0
    files: int = 0
    replicas: list[Path] = []
    left_out: list[str] = []
    unreadable: int = 0
    differences: list[str] = []

    def differ(self, lines: list[str]) -> None:
        """Adds what is not equal; the first hundred are named."""
        room = _MOST_NAMED - len(self.differences)
        self.differences += lines[:room]


def differences(
    what: str, unit: str, before: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]
) -> list[str]:
    """What two sides have otherwise, a line each, of what was counted and summed by name."""
    lines = []
    for name in sorted({*before, *after}):
        (count, checksum), (found, other) = before.get(name, (0, "")), after.get(name, (0, ""))
        if count != found:
            lines.append(f"{what} {name}: {found} {unit}, the source has {count}")
        elif checksum != other:
            lines.append(f"{what} {name}: {count} {unit}, other ones than in the source")
    return lines
