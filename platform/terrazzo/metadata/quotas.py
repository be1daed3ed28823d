"""What records and files a company may have, and the meter that counts them with every change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.config.limits import LimitsSection
from terrazzo.database.entity import Entity
from terrazzo.database.field import FieldKind
from terrazzo.database.tables.registry import CAMPAIGN_TERMINAL, OBJECT_TERMINAL
from terrazzo.database.usage import Counted, Holder, Use, add_use, measure, octets, total_use, use_of
from terrazzo.errors import QuotaExceeded
from terrazzo.memory_shares import KEY
from terrazzo.metadata.company_limits import CompanyLimits, Limit
from terrazzo.metadata.definitions.components import UPLOAD
from terrazzo.metadata.definitions.registry import CAMPAIGN, ENTITIES, MAPPING, OBJECT
from terrazzo.sparse_log import SparseLog

_sparse = SparseLog(logging.getLogger(__name__))
_NO_LIMIT = 2**63 - 1
_LINK_BYTES = 16  # of an object's terminal
_ITEM_BYTES = 128  # of a campaign's

_TEXTS = (FieldKind.TEXT, FieldKind.JSON)

MemoryOfMappings = Callable[[int, int | None], tuple[int, int]]
"""Of a company: bytes of memory that its mappings take when they are in use, and how many they may take. With the id of
a mapping that an object is to have: 0 bytes where that takes no more than there is."""
_IN_USE = 30  # bytes of memory for each of a mapping that is used, at most


class QuotaStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    records_refused: int = 0
    files_refused: int = 0


class RecordQuotas(msgspec.Struct, kw_only=True):
    """What a company may have: records of each kind, bytes of all kinds together, files and their bytes.

    ``memory_of_mappings``: where they are kept in memory.
    """

    records: int = _NO_LIMIT
    record_bytes: int = _NO_LIMIT
    files: int = _NO_LIMIT
    file_bytes: int = _NO_LIMIT
    own: CompanyLimits = msgspec.field(default_factory=CompanyLimits)
    stats: QuotaStats = msgspec.field(default_factory=QuotaStats)
    memory_of_mappings: MemoryOfMappings | None = None

    @classmethod
    def of(cls, limits: LimitsSection, own: CompanyLimits | None = None) -> RecordQuotas:
        """Those of a configuration; ``own``: of companies' records."""
        return cls(
            own=own or CompanyLimits(),
            records=limits.company_records,
            record_bytes=limits.company_record_bytes,
            files=limits.company_files,
            file_bytes=limits.company_file_bytes,
        )

    def limit(self, name: str, company_id: int) -> Limit:
        """What a company may have: by the configuration, or less by its own record."""
        configured = {
            "records": self.records,
            "record_bytes": self.record_bytes,
            "files": self.files,
            "file_bytes": self.file_bytes,
        }
        return self.own.limit(company_id, name, configured[name])

    def check_records(self, kind: str, use: Use, grown: Use, company_id: int) -> None:
        """Raises ``QuotaExceeded`` where a company would have more records of a kind than it may."""
        limit = self.limit("records", company_id)
        if grown.records > 0 and use.records > limit.most:
            self._refuse_record(kind, use.records, limit, "records")

    def check_record_bytes(self, kind: str, use: Use, company_id: int) -> None:
        """Raises ``QuotaExceeded`` where all records of a company would be larger than they may."""
        limit = self.limit("record_bytes", company_id)
        if use.bytes > limit.most:
            self._refuse_record(kind, use.bytes, limit, "bytes of records")

    def check_mappings(self, company_id: int, *, grown: int = 0, used: int | None = None) -> None:
        """Raises ``QuotaExceeded`` where a company's mappings take more memory than they may.

        A mapping that objects have can't be given up when memory is short, so that what makes them more is refused.

        Args:
            grown: bytes that are added to their texts.
            used: the id of a mapping that an object is to have.
        """
        if self.memory_of_mappings is None:
            return
        has, most = self.memory_of_mappings(company_id, used)
        has += grown * _IN_USE
        if has > most:
            self._refuse_record(MAPPING.name, has, Limit(most, KEY), "bytes of memory for mappings")

    def check_files(self, use: Use, company_id: int) -> None:
        """Raises ``QuotaExceeded`` where a company would have more files, or more in them, than it may."""
        for has, name, unit in ((use.records, "files", "files"), (use.bytes, "file_bytes", "bytes of files")):
            limit = self.limit(name, company_id)
            if has > limit.most:
                self.stats.files_refused += 1
                self._refuse("file", has, limit, unit)

    def _refuse_record(self, kind: str, has: int, limit: Limit, unit: str) -> None:
        self.stats.records_refused += 1
        self._refuse(kind, has, limit, unit)

    def _refuse(self, field: str, has: int, limit: Limit, unit: str) -> None:
        error = QuotaExceeded(field, has, limit.most, unit, limit.key)
        _sparse.warning("refused: %s", error)
        try:
            raise error
        finally:
            del error


@cache
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
    entity.name: Counted(table=entity.table, company=entity.table.c[entity.company], size=partial(_size, entity))
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

    def add_record(self, company_id: int, size: int) -> None:
        """Counts one record of so many bytes."""
        self._grow(Holder(company_id), Use(1, size), 1)

    def take_record(self, company_id: int, size: int) -> None:
        """Counts one record of so many bytes off."""
        self._grow(Holder(company_id), Use(1, size), -1)

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
                self._quotas.check_files(use, holder.company_id)
                continue
            self._quotas.check_records(kind, use, grown[holder], holder.company_id)
            if grown[holder].bytes > 0:
                all_of_it = await record_use(connection, holder.company_id)
                self._quotas.check_record_bytes(kind, all_of_it, holder.company_id)
                if kind == MAPPING.name:
                    self._quotas.check_mappings(holder.company_id, grown=grown[holder].bytes)

    async def _count(self, connection: AsyncConnection, ids: Sequence[int], sign: int) -> None:
        if self._counted is None:
            return
        for holder, use in (await measure(connection, self._counted, ids)).items():
            self._grow(holder, use, sign)

    def _grow(self, holder: Holder, use: Use, sign: int) -> None:
        self._grown[holder] = self._grown.get(holder, Use()).plus(use, sign)


async def record_use(connection: AsyncConnection, company_id: int) -> Use:
    """A company's records of all kinds together, without files."""
    return await total_use(connection, company_id, RECORD_KINDS)


async def file_use(connection: AsyncConnection, company_id: int) -> Use:
    """A company's files."""
    holder = Holder(company_id)
    return (await use_of(connection, UPLOAD.name, [holder]))[holder]
