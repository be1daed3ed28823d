"""``RowCache``: the rows of one entity that were read lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from terrazzo.memory_shares import Kept

MAX_ROWS = 4_096  # of one entity; the least recently asked for goes first
MAX_BYTES = 32 * 2**20  # roughly, of one entity
_VALUE_BYTES = 60  # of a value beside its text

Row = Mapping[str, Any]


class RowCache:
    """Rows by id and by uid, at most ``MAX_ROWS`` and ``MAX_BYTES``; the least recently used goes first.

    A row that was read while something changed is not kept: it may be the state before the change. ``company`` names
    the column with the company that a row counts for.
    """

    def __init__(self, uid_name: str, company: str = "", *, most: int = MAX_ROWS, most_bytes: int = MAX_BYTES) -> None:
        self._uid_name = uid_name
        self._company = company
        self._owners: Counter[int] = Counter()  # bytes
        self._most = most
        self._most_bytes = most_bytes
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._rows: dict[int, Row] = {}  # in the order of their last use
        self._ids: dict[str, int] = {}
        self.changes = 0  # counts changes; a reader passes its value before the read to ``keep``

    def by_id(self, record_id: int) -> Row | None:
        """The cached row with this id, None where it isn't cached."""
        row = self._rows.pop(record_id, None)
        if row is not None:
            self._rows[record_id] = row
        return row

    def by_uid(self, uid: str) -> Row | None:
        """The cached row with this uid, None where it isn't cached."""
        record_id = self._ids.get(uid)
        return None if record_id is None else self.by_id(record_id)

    def keep(self, row: Row, *, read_at: int) -> None:
        """Caches a row, unless something changed since ``read_at``: the value of ``changes`` when its reading began."""
        if read_at != self.changes:
            return
        self._put(row)
        while len(self._rows) > self._most or self._bytes > self._most_bytes:
            self._drop(next(iter(self._rows)))

    def change(self, record_id: int, row: Row | None) -> None:
        """Replaces a cached row after a change; ``row`` None removes it (the record was deleted)."""
        self.changes += 1
        if record_id in self._rows:
            self._drop(record_id)
            if row is not None:
                self._put(row)

    def forget(self, uid: str) -> None:
        """Removes a cached row that another process changed: what it is now has not been read yet."""
        self.changes += 1
        record_id = self._ids.get(uid)
        if record_id is not None:
            self._drop(record_id)

    def kept(self) -> Mapping[int, Kept]:
        """The bytes of each company's rows, roughly."""
        return {owner: Kept(size) for owner, size in self._owners.items()}

    def give_up(self, owner: int, size: int) -> int:
        """Drops rows of a company, the least recently used first, until so many bytes are free; how many are."""
        freed = 0
        for record_id in [each for each, row in self._rows.items() if self._owner(row) == owner]:
            if freed >= size:
                break
            freed += self._sizes[record_id]
            self._drop(record_id)
        return freed

    def _owner(self, row: Row) -> int:
        return row.get(self._company) or 0

    def _put(self, row: Row) -> None:
        record_id, size = row["id"], size_of(row)
        if record_id in self._rows:
            self._drop(record_id)
        self._rows[record_id] = row
        self._bytes += size
        self._owners[self._owner(row)] += size
        self._sizes[record_id] = size
        self._ids[row[self._uid_name]] = record_id

    def _drop(self, record_id: int) -> None:
        row, size = self._rows.pop(record_id), self._sizes.pop(record_id)
        self._bytes -= size
        owner = self._owner(row)
        self._owners[owner] -= size
        if not self._owners[owner]:
            del self._owners[owner]
        self._ids.pop(row[self._uid_name], None)


def size_of(value: Any) -> int:
    """The memory that a row takes, or a value of one, roughly, in bytes."""
    if isinstance(value, str | bytes):
        return _VALUE_BYTES + len(value)
    if isinstance(value, Mapping):
        return _VALUE_BYTES + sum(_VALUE_BYTES + size_of(each) for each in value.values())
    if isinstance(value, list | tuple):
        return _VALUE_BYTES + sum(map(size_of, value))
    return _VALUE_BYTES
