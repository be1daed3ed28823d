"""When terminals that are gone were last seen, kept over a restart.

The file has a line ``<record id> <unix microseconds>`` for each end of a connection. It is not synced: after a power
cut a terminal may seem to have been silent for longer than it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from terrazzo.domain.registry import Registry
from terrazzo.line_file import LineFile

_GATHER_S = 0.1  # a fleet that breaks off wakes the file's thread ten times a second


class LastSeenFile:
    """The times by the terminal's record; those of records that are gone are dropped at the next start."""

    def __init__(self, path: Path, registry: Registry) -> None:
        self._file = LineFile(path, "a restart would forget when terminals were last seen", gather_s=_GATHER_S)
        self._times: dict[int, int] = {}
        for line in self._file.load():
            record_id, _, time_us = line.partition(" ")
            known = record_id.isdecimal() and time_us.isdecimal() and len(record_id) + len(time_us) < 40
            if known and registry.terminal_by_id(int(record_id)) is not None:
                self._times[int(record_id)] = int(time_us)
        self._file.rewrite(self._lines())

    def items(self) -> Iterator[tuple[int, int]]:
        """Record ids with their times, UTC microseconds."""
        yield from self._times.items()

    def note(self, record_id: int, time_us: int) -> None:
        """A terminal is gone, and was last seen at this time (UTC microseconds); a failing disk is logged only."""
        self._times[record_id] = time_us
        self._file.append(f"{record_id} {time_us}", self._lines)

    def forget(self, record_id: int) -> None:
        """Drops a terminal that was deleted."""
        self._times.pop(record_id, None)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _lines(self) -> Iterator[str]:
        times = self._times.copy()  # for another thread
        return (f"{record_id} {time_us}" for record_id, time_us in times.items())
