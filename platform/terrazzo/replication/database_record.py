"""``DatabaseRecord``: how far the database of a cluster was, beside the log, so that one that went back is noticed."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from terrazzo.ports.stream import LogFull, LogUnavailable, RecordChanged, Records, Revision
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

KEY = "database"


class DatabaseRecord(msgspec.Struct, frozen=True):
    """The record. ``reached``: a number that was committed in the database; ``at_us``: when, by the leader's clock, for
    people to read."""

    reached: int
    at_us: int


def decode_database_record(value: bytes | None) -> DatabaseRecord:
    """The record of its bytes; one that isn't there, or can't be read, says nothing."""
    try:
        return DatabaseRecord(0, 0) if value is None else msgspec.json.decode(value, type=DatabaseRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return DatabaseRecord(0, 0)


class DatabaseRecords:
    """Reads and writes it. ``now_us``: UTC microseconds."""

    def __init__(self, records: Records, now_us: Callable[[], int]) -> None:
        self._records = records
        self._now_us = now_us
        self._failure_log = SparseLog(_log)

    async def read(self) -> DatabaseRecord:
        """What is remembered.

        Raises:
            LogUnavailable: unknown.
        """
        return _record(await self._records.get(KEY))

    async def keep(self, reached: int) -> bool:
        """Remembers a number, unless a higher one is; False: it isn't certain that it is."""
        try:
            found = await self._records.get(KEY)
            if _record(found).reached >= reached:
                return True
            value = msgspec.json.encode(DatabaseRecord(reached, self._now_us()))
            await self._records.put(KEY, value, revision=0 if found is None else found.revision)
        except (LogFull, LogUnavailable, RecordChanged) as error:
            self._failure_log.warning("how far the database is, is not remembered: %s", error)
            return False
        return True


def _record(found: Revision | None) -> DatabaseRecord:
    return decode_database_record(None if found is None else found.value)
