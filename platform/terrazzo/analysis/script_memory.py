"""What the scripts of statistics, calculations and balances take of memory, by company, as they are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.memory_shares import Kept

_SCRIPT_BYTES = 1_500  # of each
_ROW_BYTES = 180
_CHARACTER_BYTES = 24  # of an expression: some 70 for a name, number or sign
_OBJECT_BYTES = 420  # of each object of a script: its id, the job that it is, and how far that has come


class ScriptMemory:
    """Bytes by company follow each change of a script."""

    def __init__(self) -> None:
        self._scripts: dict[Hashable, tuple[int, int]] = {}  # company and bytes
        self._bytes: Counter[int] = Counter()

    def put(self, key: Hashable, row: Row | None) -> None:
        """Counts a script as its record is now; None: it is gone."""
        company_id, size = self._scripts.pop(key, (0, 0))
        self._bytes[company_id] -= size
        if not self._bytes[company_id]:
            del self._bytes[company_id]
        if row is not None:
            company_id, size = self._scripts[key] = row[COMPANY], _bytes_of(row)
            self._bytes[company_id] += size

    def kept(self) -> Mapping[int, Kept]:
        """What there is of each company."""
        return {owner: Kept(size) for owner, size in self._bytes.items()}


def _bytes_of(row: Row) -> int:
    size = _SCRIPT_BYTES + len(row["object_list"] or ()) * _OBJECT_BYTES
    rows: Any = row.get("script") or [[code] for code in row.get("input_codes") or ()]
    for cells in rows:
        texts = [cell for cell in cells if isinstance(cell, str)]
        size += _ROW_BYTES + sum(map(len, texts))
        if len(cells) == 2:  # a calculation's: name and expression
            size += len(texts[-1]) * _CHARACTER_BYTES if texts else 0
    return size
