"""What records and files a company may have, and the meter that counts them with every change."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.config.limits import LimitsSection
from terrazzo.database.entity import Entity
from terrazzo.database.field import FieldKind
from terrazzo.database.tables.registry import CAMPAIGN_TERMINAL, OBJECT_TERMINAL
from terrazzo.database.usage import Counted, Holder, Use, add_use, measure, octets, total_use, use_of
from terrazzo.errors import QuotaExceeded
from terrazzo.metadata.definitions.components import UPLOAD
from terrazzo.metadata.definitions.registry import CAMPAIGN, ENTITIES, OBJECT
from terrazzo.sparse_log import SparseLog

_sparse = SparseLog(logging.getLogger(__name__))
_NO_LIMIT = 2**63 - 1
_LINK_BYTES = 16  # of an object's terminal
_ITEM_BYTES = 128  # of a campaign's

_TEXTS = (FieldKind.TEXT, FieldKind.JSON)


class QuotaStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    records_refused: int = 0
    files_refused: int = 0


class RecordQuotas(msgspec.Struct, kw_only=True):
    """What a company may have: records of each kind, bytes of all kinds together, files and their bytes."""

    records: int = _NO_LIMIT
    record_bytes: int = _NO_LIMIT
    files: int = _NO_LIMIT
    file_bytes: int = _NO_LIMIT
    stats: QuotaStats = msgspec.field(default_factory=QuotaStats)

    @classmethod
    def of(cls, limits: LimitsSection) -> RecordQuotas:
        """Those of a configuration."""
        return cls(
            records=limits.company_records,
            record_bytes=limits.company_record_bytes,
            files=limits.company_files,
            file_bytes=limits.company_file_bytes,
        )

    def check_records(self, kind: str, use: Use, grown: Use) -> None:
        """Raises ``QuotaExceeded`` where a company would have more records of a kind than it may."""
        if grown.records > 0 and use.records > self.records:
            self._refuse_record(kind, use.records, self.records, "records", "limits.company_records")

    def check_record_bytes(self, kind: str, use: Use) -> None:
        """Raises ``QuotaExceeded`` where all records of a company would be larger than they may."""
        if use.bytes > self.record_bytes:
            self._refuse_record(kind, use.bytes, self.record_bytes, "bytes of records", "limits.company_record_bytes")

    def check_files(self, use: Use) -> None:
        """Raises ``QuotaExceeded`` where a company would have more files, or more in them, than it may."""
        for has, limit, unit, key in (
            (use.records, self.files, "files", "limits.company_files"),
            (use.bytes, self.file_bytes, "bytes of files", "limits.company_file_bytes"),
        ):
            if has > limit:
                self.stats.files_refused += 1
                self._refuse("file", has, limit, unit, key)

    def _refuse_record(self, kind: str, has: int, limit: int, unit: str, key: str) -> None:
        self.stats.records_refused += 1
        self._refuse(kind, has, limit, unit, key)

    def _refuse(self, field: str, has: int, limit: int, unit: str, key: str) -> None:
        error = QuotaExceeded(field, has, limit, unit, key)
        _sparse.warning("refused: %s", error)
        raise error


def _size(entity: Entity) -> sa.ColumnElement[int]:
    """The bytes of a record's texts, with its rows in other tables; of a file its own. Secrets are short."""
    if entity is UPLOAD:
        return entity.table.c.size
    size = octets(entity.table.c[each.name] for each in entity.fields.values() if each.kind in _TEXTS)
    if entity is OBJECT:
        return size + _rows_of(OBJECT_TERMINAL, OBJECT_TERMINAL.c.object_id, entity) * _LINK_BYTES
    if entity is CAMPAIGN:
        return size + _rows_of(CAMPAIGN_TERMINAL, CAMPAIGN_TERMINAL.c.campaign_id, entity) * _ITEM_BYTES
    return size


def _rows_of(table: sa.Table, column: sa.Column[Any], entity: Entity) -> sa.ScalarSelect[int]:
    rows = sa.select(sa.func.count()).select_from(table).where(column == entity.table.c.id)
    return rows.correlate(entity.table).scalar_subquery()


COUNTED_RECORDS: dict[str, Counted] = {
    entity.name: Counted(table=entity.table, company=entity.table.c[entity.company], size=_size(entity))
    for entity in ENTITIES
    if entity.company != "id"
}
"""All kinds of records that belong to companies, by the entity's name."""

RECORD_KINDS = [each.kind for name, each in COUNTED_RECORDS.items() if name != UPLOAD.name]
"""Those of records that are no files."""


class UseMeter:
    """What one transaction changes of a company's records of one kind. Companies themselves are not counted."""

    def __init__(self, entity: Entity, quotas: RecordQuotas) -> None:
        self._counted = COUNTED_RECORDS.get(entity.name)
        self._quotas = quotas
        self._grown: dict[Holder, Use] = {}

    async def add(self, connection: AsyncConnection, ids: Sequence[int]) -> None:
        """Counts records as they are now: after they were inserted or changed."""
        await self._count(connection, ids, 1)

    async def take(self, connection: AsyncConnection, ids: Sequence[int]) -> None:
        """Counts records off as they are now: before they are changed or deleted."""
        await self._count(connection, ids, -1)

    async def settle(self, connection: AsyncConnection) -> None:
        """Brings the counters up to date.

        Raises:
            QuotaExceeded: a company has more than it may, and has more than before.
        """
        grown = {holder: use for holder, use in self._grown.items() if use != Use()}
        if self._counted is None or not grown:
            return
        kind = self._counted.kind
        for holder, use in (await add_use(connection, kind, grown)).items():
            if max(grown[holder]) <= 0:
                continue
            if kind == UPLOAD.name:
                self._quotas.check_files(use)
                continue
            self._quotas.check_records(kind, use, grown[holder])
            if grown[holder].bytes > 0:
                self._quotas.check_record_bytes(kind, await record_use(connection, holder.company_id))

    async def _count(self, connection: AsyncConnection, ids: Sequence[int], sign: int) -> None:
        if self._counted is None:
            return
        for holder, use in (await measure(connection, self._counted, ids)).items():
            self._grown[holder] = self._grown.get(holder, Use()).plus(use, sign)


async def record_use(connection: AsyncConnection, company_id: int) -> Use:
    """A company's records of all kinds together, without files."""
    return await total_use(connection, company_id, RECORD_KINDS)


async def file_use(connection: AsyncConnection, company_id: int) -> Use:
    """A company's files."""
    holder = Holder(company_id)
    return (await use_of(connection, UPLOAD.name, [holder]))[holder]
