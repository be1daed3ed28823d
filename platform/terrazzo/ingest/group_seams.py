"""What the pipeline needs of whole groups: who keeps them in the store's place, and who makes notes of them."""

from __future__ import annotations

from typing import Protocol

from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ports.store import Notes


class GroupKeeper(Protocol):
    """Where groups are kept instead of in the store (``embedded.front_log.FrontLog``)."""

    async def keep(self, group: CommitGroup) -> None:
        """Makes a group durable; called again with the same one when it failed.

        Raises:
            StoreUnavailable: it is not, or it is unknown; the caller tries again.
        """


class GroupNotes(Protocol):
    """Makes notes about a group from what it has come of (``embedded.front_reader.FrontReader``)."""

    def on_group(self, group: CommitGroup) -> Notes:
        """The notes to commit with a group; asked once more after a fault, they are the same."""
