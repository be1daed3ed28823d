"""The rows of mappings, packed, and what they and all that is made of them take of memory, by company.

A table takes up to thirty times the bytes of its rows, and the plans of its terminals as much again, as
``benchmarks/memory.py`` measures. What was made is counted as it is made. ``use`` counts as if a table and one plan
were made of every mapping, so that nobody gets beyond what it may have by using what it has. Retainers count with them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import msgspec

from terrazzo.memory_shares import Kept

_ROW_BYTES = 900  # of a table, for each row
_CHARACTER_BYTES = 24  # of a table, for each character of its expressions: some 70 for a name, number or sign
_PLAN_ROW_BYTES = 1_700  # of a plan, for each row that it computes
_PLAN_CHARACTER_BYTES = 8
_EVENT_FACTOR = 6  # to the packed bytes of what is said of events
_LABEL_FACTOR = 2  # to the packed bytes of a retainer's rows
_LABEL_BYTES = 500  # of each of them
_ITEM_BYTES = 600  # of each mapping: entries in dicts
_SMALL = 64  # of the ceiling: who has less than that part takes nothing from others
_FEW_PLANS = 4  # of all rows: objects with other lists of terminals may need other plans
_FIRST_EXPRESSION = 5  # column, from 0

_AS_JSON = b"\xc1"  # begins no MessagePack


class _Script(msgspec.Struct):
    """A mapping's rows as they are kept, and what is made of them. In bytes but for ``rows``."""

    company_id: int
    packed: bytes = b""
    rows: int = 0
    characters: int = 0  # of expressions
    table: int = 0
    plans: int = 0
    events: int = 0

    @property
    def bytes(self) -> int:
        return len(self.packed) + self.table + self.plans + self.events

    @property
    def in_use(self) -> int:
        least = self.table_bytes + self.plan_bytes(self.rows)
        return len(self.packed) + max(least, self.table + self.plans) + self.events

    @property
    def table_bytes(self) -> int:
        return self.rows * _ROW_BYTES + self.characters * _CHARACTER_BYTES

    def plan_bytes(self, rows: int) -> int:
        """Of a plan of so many of the rows."""
        return rows * _PLAN_ROW_BYTES + self.characters * _PLAN_CHARACTER_BYTES * rows // max(1, self.rows)


class MappingScripts:
    """Rows by mapping. Bytes and numbers by company follow each change."""

    def __init__(self) -> None:
        self._scripts: dict[Hashable, _Script] = {}
        self._bytes: Counter[int] = Counter()
        self._items: Counter[int] = Counter()
        self._in_use: Counter[int] = Counter()

    def put(self, mapping_id: int, rows: Any, company_id: int) -> bool:
        """Takes a mapping's rows; None: it has none. Whether they are others than before; then nothing is made yet."""
        before = self._scripts.get(mapping_id)
        packed = b"" if rows is None else _pack(rows)
        if packed == (before.packed if before else b""):
            return False
        events = before.events if before else 0
        self._replace(mapping_id, _Script(company_id, packed, *_measure(rows), events=events))
        return True

    def put_events(self, mapping_id: int, definitions: Any, company_id: int) -> None:
        """Counts what is said of a mapping's events."""
        size = len(_pack(definitions)) * _EVENT_FACTOR if definitions else 0
        before = self._scripts.get(mapping_id)
        if size or (before is not None and before.events):
            changed = msgspec.structs.replace(before or _Script(company_id), events=size)
            self._replace(mapping_id, changed)

    def put_retainer(self, project_id: int, rows: Any, company_id: int) -> None:
        """Counts the rows of a retainer script; None: it is gone."""
        size = 0 if rows is None else len(_pack(rows)) * _LABEL_FACTOR + len(rows) * _LABEL_BYTES
        self._replace(("retainer", project_id), _Script(company_id, events=size))

    def packed(self, mapping_id: int) -> bytes:
        """A mapping's rows, for ``rows_in``: the same object until they are others. Empty: it has none."""
        script = self._scripts.get(mapping_id)
        return b"" if script is None else script.packed

    def note_table(self, mapping_id: int) -> None:
        """A table was made of the rows."""
        if (script := self._scripts.get(mapping_id)) is not None:
            self._replace(mapping_id, msgspec.structs.replace(script, table=script.table_bytes))

    def note_plan(self, mapping_id: int, rows: int) -> None:
        """A plan was made that computes so many of the rows."""
        if (script := self._scripts.get(mapping_id)) is not None:
            plans = script.plans + script.plan_bytes(rows)
            self._replace(mapping_id, msgspec.structs.replace(script, plans=plans))

    def forget_made(self, mapping_id: int) -> None:
        """The rows are all that there is of a mapping."""
        if (script := self._scripts.get(mapping_id)) is not None:
            self._replace(mapping_id, msgspec.structs.replace(script, table=0, plans=0))

    def kept(self) -> Mapping[int, Kept]:
        """What there is of each company."""
        return {owner: Kept(size, self._items[owner]) for owner, size in self._bytes.items()}

    def use(self, company_id: int, used: int | None, ceiling: int) -> tuple[int, int]:
        """What a company's mappings take when all are in use, and what they may take, in bytes.

        ``used``: the mapping that an object is to have; nothing where another has it and there are few plans of it.
        What they may take is a quarter of ``ceiling``. Where all companies' together take half of it, whoever has its
        part of that half gets no more.
        """
        most = ceiling // 4
        if self._in_use.total() > ceiling // 2:
            large = sum(size > ceiling // _SMALL for size in self._in_use.values())
            most = min(most, ceiling // 2 // (1 + large))
        script = None if used is None else self._scripts.get(used)
        if script is not None and script.table and script.plans <= _FEW_PLANS * script.plan_bytes(script.rows):
            return 0, most
        return self._in_use[company_id], most

    def _replace(self, mapping_id: Hashable, script: _Script) -> None:
        before = self._scripts.pop(mapping_id, None)
        if before is not None:
            self._count(before, -1)
        if script.packed or script.events:
            self._scripts[mapping_id] = script
            self._count(script, 1)

    def _count(self, script: _Script, sign: int) -> None:
        owner = script.company_id
        counts = ((self._bytes, script.bytes), (self._items, 1), (self._in_use, script.in_use + _ITEM_BYTES))
        for count, size in counts:
            count[owner] += sign * size
        if not self._items[owner]:
            for count, _ in counts:
                del count[owner]


def rows_in(packed: bytes) -> Any:
    """The rows that ``MappingScripts.packed`` gave."""
    return json.loads(packed[1:]) if packed[:1] == _AS_JSON else msgspec.msgpack.decode(packed)


def _pack(value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, UnicodeEncodeError):  # stored long ago, and no mapping
        return _AS_JSON + json.dumps(value).encode()


def _measure(rows: Any) -> tuple[int, int]:
    """How many rows they are, and the characters of their expressions."""
    if not isinstance(rows, list):
        return 0, 0
    return len(rows), sum(map(len, _expressions(rows)))


def _expressions(rows: list[Any]) -> Iterator[str]:
    for row in rows:
        for cell in row[_FIRST_EXPRESSION:] if isinstance(row, list) else ():
            if isinstance(cell, str):
                yield cell
