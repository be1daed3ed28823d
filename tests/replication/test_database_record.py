"""How far a database was is remembered beside the log: the highest number, whoever writes at the same moment."""

from __future__ import annotations

import pytest

from terrazzo.ports.stream import LogFull, LogUnavailable, RecordChanged, Revision
from terrazzo.replication.database_record import KEY, DatabaseRecord, DatabaseRecords, decode_database_record


class Kept:
    """Records in memory; what ``fails`` holds is raised by the next writing."""

    def __init__(self) -> None:
        self.found: dict[str, Revision] = {}
        self.fails: list[Exception] = []

    async def get(self, key: str) -> Revision | None:
        return self.found.get(key)

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        if self.fails:
            raise self.fails.pop()
        before = self.found.get(key)
        if revision != (before.revision if before else 0):
            raise RecordChanged(key)
        self.found[key] = Revision(value, revision + 1)
        return revision + 1

    async def delete(self, key: str) -> None:
        self.found.pop(key, None)

    async def all(self) -> dict[str, bytes]:
        return {}


async def test_the_highest_number_is_remembered() -> None:
    kept = Kept()
    records = DatabaseRecords(kept, lambda: 7)
    assert await records.read() == DatabaseRecord(0, 0)
    for reached in (1, 5, 3, 5):
        assert await records.keep(reached)
    assert await records.read() == DatabaseRecord(5, 7)
    assert kept.found[KEY].revision == 2, "what is no higher is not written"


@pytest.mark.parametrize("error", [LogFull("full"), LogUnavailable("away"), RecordChanged(KEY)])
async def test_what_could_not_be_remembered_is_said(error: Exception) -> None:
    kept = Kept()
    records = DatabaseRecords(kept, lambda: 7)
    kept.fails.append(error)
    assert not await records.keep(1)
    assert await records.keep(1)


@pytest.mark.parametrize("value", [b"", b"{}", b"[1]", b"\xff", b"[" * 10_000, b'{"reached": "x", "at_us": 1}'])
def test_a_record_that_cannot_be_read_says_nothing(value: bytes) -> None:
    assert decode_database_record(value) == DatabaseRecord(0, 0)
