"""Exports all records of an entity as CSV, JSON or JSON lines, in the form that an import accepts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from terrazzo.csv_text import csv_lines
from terrazzo.database.entity import Entity
from terrazzo.database.field import FieldKind
from terrazzo.domain.actor import Actor
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.repositories.repository import EntityRepository

_AT_ONCE = 50  # records that are read, and make a piece: they may be long
Format = Literal["csv", "json", "jsonl"]
MEDIA_TYPES: Mapping[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}


def secret_columns(entity: Entity) -> list[str]:
    """The columns that an export leaves out unless they are asked for."""
    return [each.name for each in entity.fields.values() if each.kind is FieldKind.SECRET]


async def export(
    repository: EntityRepository, actor: Actor, *, format: Format, secrets: bool
) -> AsyncGenerator[bytes, None]:
    """Yields the file in pieces: the records that the actor sees, in order of creation, new ones among them."""
    columns = _columns(repository.entity, secrets=secrets, company=actor.is_super)
    encoder = _ENCODERS[format](columns)
    yield encoder.begin()
    pauses = LoopPauses()
    async with aclosing(_records(repository, actor)) as found:
        async for rows in found:
            piece = bytearray()
            for row in rows:
                piece += encoder.encode([row])
                await pauses.pause()
            yield bytes(piece)
    yield encoder.end()


def _columns(entity: Entity, *, secrets: bool, company: bool) -> dict[str, str]:
    """Maps the file's columns to the row's; references are written as uids."""
    left_out = set() if secrets else set(secret_columns(entity))
    columns = {entity.uid_name: entity.uid_name}
    if company:
        columns[entity.company] = entity.company
    for each in entity.writable():
        if each.name not in left_out and each.name != entity.company:
            is_reference = each.kind is FieldKind.REFERENCE
            columns[each.name] = f"{each.name.removesuffix('_id')}_uid" if is_reference else each.name
    return columns


async def _records(repository: EntityRepository, actor: Actor) -> AsyncGenerator[Sequence[Mapping[str, Any]], None]:
    pauses, last = LoopPauses(), 0
    ids = repository.table.c.id
    while True:
        query = repository._rows.where(ids > last, *repository._visible(actor)).order_by(ids).limit(_AT_ONCE)
        async with repository._database.reading() as connection:
            found = (await connection.execute(query)).mappings().all()
        if not found:
            return
        rows = []
        for row in found:
            rows.append(repository._codec.decode(row))
            await pauses.pause()
        yield rows
        last = found[-1]["id"]


class _Csv:
    """CSV (RFC 4180); JSON columns as JSON text, null as an empty cell. No text is left that a spreadsheet would
    calculate; an import takes it back as it was."""

    def __init__(self, columns: dict[str, str]) -> None:
        self._columns = columns

    def begin(self) -> bytes:
        return csv_lines([self._columns])

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        return csv_lines([_plain(row[source]) for source in self._columns.values()] for row in rows)

    def end(self) -> bytes:
        return b""


class _JsonLines:
    """JSON lines: one object on each line."""

    def __init__(self, columns: dict[str, str]) -> None:
        self._columns = columns

    def begin(self) -> bytes:
        return b""

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        return b"".join(msgspec.json.encode(self._object(row)) + b"\n" for row in rows)

    def end(self) -> bytes:
        return b""

    def _object(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: row[source] for name, source in self._columns.items()}


class _Json(_JsonLines):
    """One JSON array, with one object on each line."""

    def __init__(self, columns: dict[str, str]) -> None:
        super().__init__(columns)
        self._before = b"\n"

    def begin(self) -> bytes:
        return b"["

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        encoded = self._before + b",\n".join(msgspec.json.encode(self._object(row)) for row in rows)
        self._before = b",\n"
        return encoded

    def end(self) -> bytes:
        return b"\n]\n"


_ENCODERS: Mapping[str, type[_Csv] | type[_JsonLines]] = {"csv": _Csv, "json": _Json, "jsonl": _JsonLines}


def _plain(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value
