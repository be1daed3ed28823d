"""What a migration asks of a cluster's log, into which or out of which a platform moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from terrazzo.ports.store import Notes, TimeSeriesStore

SESSIONS = ("broker", "broker.outdated", "bridges")
"""Folders that belong to one node: what else a node has, a replica begins with, too."""


class LogSide(Protocol):
    """The log that source or target is about; one of the two is one process."""

    @property
    def words(self) -> str:
        """Which log, without passwords."""

    @property
    def notes(self) -> frozenset[str]:
        """The names of the notes that say where a store is in a log; they are not compared."""

    async def check(self, migration_id: str) -> None:
        """Looks whether the log may be moved into, or out of, now.

        Raises:
            Unmovable: it may not; says why and what to do.
        """

    async def check_source(self, store: TimeSeriesStore) -> None:
        """Looks whether the source's store has all that the log has; raises as ``check``."""

    async def places(self, migration_id: str) -> Notes:
        """The notes that each of the target's stores gets."""

    async def settle(self, migration_id: str) -> None:
        """Says in the log's records that the stores belong to it; again it changes nothing. Raises as ``check``."""


@dataclass(frozen=True, slots=True)
class LogPlan:
    """A log beside source and target. ``replicas``: data folders of further nodes, filled with what the target has."""

    side: LogSide
    replicas: tuple[Path, ...] = ()


def differing_notes(before: Mapping[str, str], after: Mapping[str, str], without: frozenset[str]) -> list[str]:
    """The notes that are not on both sides alike, by their sums."""
    names = {name for name, _ in before.items() ^ after.items()} - without
    return sorted(names)
