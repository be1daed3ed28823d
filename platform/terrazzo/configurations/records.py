"""The table ``terminal_configuration``: how far each terminal is with the configuration that it ought to have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa

from terrazzo.configurations.comparison import Difference
from terrazzo.configurations.delivery import ConfigState, ConfigStatus
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION as TABLE

_AT_ONCE = 500
_decode = msgspec.json.Decoder(list[Difference]).decode


class ConfigRecords:
    """Reads and writes the table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def every(self) -> dict[int, ConfigStatus]:
        """All rows, by the terminal's record id.

        Raises:
            Unavailable: the database doesn't answer.
        """
        async with self._database.reading() as connection:
            return {row.terminal_id: _status(row) async for row in await connection.stream(sa.select(TABLE))}

    async def write(self, changed: Collection[ConfigStatus], gone: Collection[int]) -> None:
        """Writes rows, and removes those of terminals that are ``gone``.

        Raises:
            Unavailable: the database doesn't answer; nothing was written, or not all.
        """
        rows = [_row(status) for status in changed]
        ids = [*gone, *(status.record_id for status in changed)]
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            async with self._database.writing() as connection:
                await connection.execute(TABLE.delete().where(one_of(TABLE.c.terminal_id, some)))
                part = [row for row in rows if row["terminal_id"] in set(some)]
                if part:
                    await connection.execute(TABLE.insert(), part)


def _row(status: ConfigStatus) -> Mapping[str, object]:
    return {
        "terminal_id": status.record_id,
        "company_id": status.company_id,
        "version": status.version,
        "state": status.state.value,
        "since_us": status.since_us,
        "reported_us": status.reported_us,
        "difference": msgspec.json.encode(status.difference).decode(),
    }


def _status(row: sa.Row[tuple[object, ...]]) -> ConfigStatus:
    return ConfigStatus(
        record_id=row.terminal_id,
        company_id=row.company_id,
        version=row.version,
        state=ConfigState(row.state),
        since_us=row.since_us,
        reported_us=row.reported_us,
        difference=_decode(row.difference),
    )
