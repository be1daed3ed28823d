"""The last refusals of one terminal, or of one address: pure, the caller passes the time.

What is refused at the same address for the same reason is one entry with a count. Strangers, who have not proven to be
the terminal, push each other out before they push out what the terminal did itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from terrazzo.domain.refusals.entry import RefusalEntry

MOST_ENTRIES = 20
STRANGERS = 10  # entries that stay theirs when there are more of the terminal's own

FoldKey = tuple[str, str]
"""The share of an address (``share_of``), and the name of a reason."""


class RecentRefusals:
    """At most ``MOST_ENTRIES`` entries, the one that was touched last at the end."""

    __slots__ = ("_entries", "_strangers")

    def __init__(self) -> None:
        self._entries: dict[FoldKey, RefusalEntry] = {}
        self._strangers = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[RefusalEntry]:
        """The entries, the last one first."""
        return reversed(self._entries.values())

    def get(self, key: FoldKey) -> RefusalEntry | None:
        """The entry of a share and reason."""
        return self._entries.get(key)

    def add(self, key: FoldKey, entry: RefusalEntry) -> None:
        """Adds refusals to their entry, and lets go of the one that matters least where there are too many."""
        before = self._entries.pop(key, None)
        if before is not None:
            self._strangers -= not before.is_own
            entry = entry._replace(
                first_us=before.first_us,
                last_us=max(before.last_us, entry.last_us),
                times=before.times + entry.times,
                is_own=before.is_own or entry.is_own,
            )
        self._entries[key] = entry
        self._strangers += not entry.is_own
        if len(self._entries) > MOST_ENTRIES:
            self._drop_one()

    def _drop_one(self) -> None:
        is_own = self._strangers <= STRANGERS
        oldest = next(key for key, each in self._entries.items() if each.is_own is is_own)
        del self._entries[oldest]
        self._strangers -= not is_own
