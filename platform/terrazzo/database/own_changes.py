"""``OwnChanges``: which of a process's own changes its parts know already, so that they are not applied twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from terrazzo.errors import OperationError, Unavailable

ORIGIN = "terrazzo_origin"
"""The execution option that names the process of a connection."""


class MetadataChange(NamedTuple):
    """One record that was created, changed or deleted."""

    entity: str
    record_id: int
    uid: str


class OwnChanges:
    """Remembers which of the process's own changes its parts may have missed; there are some after interruptions only.

    Args:
        origin: names the process in the table ``change``.
    """

    MOST = 10_000  # remembered changes; beyond it all own changes are applied again

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._missed: set[MetadataChange] = set()
        self._is_unsure = False

    @contextmanager
    def told_at_once(self) -> Iterator[list[MetadataChange]]:
        """Wraps a transaction and the announcement of its changes; put each change into the list before its commit.

        Whatever interrupts the block, a cancellation too: the changes are then read from the table, if committed.
        """
        changes: list[MetadataChange] = []
        try:
            yield changes
        except OperationError as error:
            if isinstance(error, Unavailable):  # perhaps the commit was done; any other refusal comes before it
                self._miss(changes)
            raise
        except BaseException:  # of any kind: what was committed has to be applied
            self._miss(changes)
            raise

    @property
    def are_missed(self) -> bool:
        """Whether parts of this process may not know of some of its own changes yet."""
        return self._is_unsure or bool(self._missed)

    def was_told(self, change: MetadataChange) -> bool:
        """Whether the parts of this process know of this change of its own; False once for each that they may miss."""
        if self._is_unsure:
            return False
        if change in self._missed:
            self._missed.discard(change)
            return False
        return True

    def _miss(self, changes: Sequence[MetadataChange]) -> None:
        self._missed.update(changes)
        if len(self._missed) > self.MOST:
            self._missed.clear()
            self._is_unsure = True
