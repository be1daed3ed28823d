"""What the pipeline needs of others: the broker's intake, and who makes notes about objects' records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from terrazzo.ports.store import Notes, Record


class IngestGateway(Protocol):
    """The broker's intake of terminals' publishes, as the pipeline needs it."""

    def pause_intake(self) -> None:
        """Stops reading from terminals."""

    def resume_intake(self) -> None:
        """Reads from terminals again."""

    def kick(self, client_id: str) -> bool:
        """Ends a client's connection; it sends again on the next one what was not acknowledged."""


class Marks(Protocol):
    """Makes notes about objects' records, committed together with them (``analysis.late_records.LateMarks``)."""

    def on_sealed(self, records: Sequence[Record]) -> Notes:
        """The notes to commit with a group whose objects' records are these."""

    def on_committed(self) -> None:
        """The group that was sealed last is durable."""
