"""Every list of the gateway with each of its filters and orders: no plan reads what other companies have.

One company has thousands of rows in each table, another asks. Its statements are explained, on both databases.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import sqlalchemy as sa
from api_rig import Rig, open_rig

from query_plans import asked, scans
from terrazzo.api.kernel.conditions import Filter, ListRequest
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.operations.table import TABLE
from terrazzo.database.database import Database
from terrazzo.database.entity import METADATA
from terrazzo.ports import at_work

MANY = 1_000
FIRST_ID = 100_000  # of the rows that another company has
NOT_FILLED = ("change", "company_usage", "effect_mark", "revoked_token", "user", "company")
"""Tables that a running platform reads by itself, or that have few rows."""

EXCUSED: dict[tuple[str, str], str] = {}
"""Scans that there are, by action and table, and why they are put up with."""

_NEWEST_FIRST = "newest first by an index, until the page is full; the number of all is counted by another"
IN_ORDER = {
    ("get_event_list", "event"): _NEWEST_FIRST,
    ("get_open_retainer_list", "label"): _NEWEST_FIRST,
    ("get_replay_list", "replay"): "a company has few; newest first, until the page is full",
    ("get_retainer_label_list", "label"): _NEWEST_FIRST,
    ("get_rule_command_list", "rule_command"): _NEWEST_FIRST,
}
"""Lists that go through a company's rows though an index has the value that is asked for, and why."""

READING = [each for each in TABLE if each.name.startswith("get_") or each.name == "search"]
LISTS = [each for each in TABLE if isinstance(each.request, type) and issubclass(each.request, ListRequest | Filter)]
FIELDS: dict[str, Any] = {
    "action": None,
    "actionid": None,
    "username": "stranger",
    "id": 100_001,
    "terminal_id": "own",
    "topic": ["r"],
    "keys": ["A"],
    "items": 10,
    "fn": "avg",
    "resample": "1min",
    "text": "x1",
    "kinds": None,
    "state": "failed",
    "address": "127.0.0.9",
    "type": "avg",
    "before": None,
    "time": "2026-01-02 03:04:05",
    "start_time": "2026-01-02 03:04:05",
    "end_time": "2026-01-03 03:04:05",
}
"""What other requests may have; keys of other records are those of the one that asks."""
VALUES = ("7", "2026-01-02 03:04:05", "info", "true")
"""Of conditions; one of them fits a field."""


COMPANY = ("company_id", "permission_company_id")


def _narrowing(table: sa.Table) -> set[str]:
    """The columns by which an index finds rows, of all or of a company."""
    orders = [[each.name for each in index.columns] for index in table.indexes]
    return {(order[1:] if order[0] in COMPANY else order)[0] for order in orders if set(order) - {*COMPANY}} - {"id"}


NARROWING = {table.name: _narrowing(table) for table in METADATA.sorted_tables}

PAGES = ("page_index", "page_size", "limit", "entries", "points")


async def fill(database: Database, company: int) -> None:
    """Thousands of rows of another company in each table, each row with texts and numbers of its own."""
    tables = [each for each in METADATA.sorted_tables if each.name not in NOT_FILLED]
    async with database.writing() as connection:
        for table in tables:
            values = {each.name: _values(each, company) for each in table.c}
            rows = [{name: of(number) for name, of in values.items()} for number in range(MANY)]
            await connection.execute(table.insert(), rows)
    if database.engine.dialect.name == "postgresql":  # it does so by itself; SQLite plans without figures
        async with database.writing() as connection:
            await connection.execute(sa.text("ANALYZE"))


def _values(column: sa.Column[Any], company: int) -> Callable[[int], Any]:
    """What a column has in each row."""
    if column.name in ("company_id", "permission_company_id"):
        return lambda _: company
    if isinstance(column.type, sa.String):
        begun, length = "[x" if column.type.length is None else "x", column.type.length or 64
        return lambda number: f"{begun}{number}"[:length]
    if isinstance(column.type, sa.SmallInteger):
        return lambda number: number % 2
    if column.foreign_keys and column.nullable and next(iter(column.foreign_keys)).column.table.name in NOT_FILLED:
        return lambda _: None
    return (lambda _: b"x") if isinstance(column.type, sa.LargeBinary) else (lambda number: FIRST_ID + number)


class Asking:
    """Asks lists as a company that has next to nothing."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.refused: list[str] = []

    async def ask(self, name: str) -> None:
        """A list as it is, and with each of its fields as a filter, and in the order of each."""
        await self._rig.ask(name, "stranger")
        await self._rig.ask(name, "stranger", page_index=2)
        told = (await self._rig.ask(name, "stranger", where_and=[["?", "=", "1"]]))["info"]
        fields = re.findall(r"\w+", told.partition("there are ")[2])
        assert fields, (name, told)
        for field in fields:
            await self._filtered(name, field)
        if "order_by" in fields_of(name):
            for number, field in enumerate(fields):
                await self._rig.ask(name, "stranger", order_by=[field, "desc" if number % 2 else "asc"])

    async def _filtered(self, name: str, field: str) -> None:
        for value in VALUES:
            answer = await self._rig.ask(name, "stranger", where_and=[[field, "=", value]])
            if answer["code"] == 200:
                break
        else:
            self.refused.append(f"{name} {field}: {answer['info']}")
            return
        await self._rig.ask(name, "stranger", where_in=[[field, [value, value]]])

    async def look(self, operation: Operation) -> None:
        """What is no list of conditions: with what it needs, and with all that it takes."""
        fields = msgspec.structs.fields(operation.request)
        for taken in ([each for each in fields if each.required], fields):
            given = {each.name: FIELDS.get(each.name, 100_001) for each in taken if each.name not in PAGES}
            await self._rig.ask(operation.name, "stranger", **{key: value for key, value in given.items() if value})


def fields_of(name: str) -> set[str]:
    """The fields of an action's request."""
    return {each.name for each in msgspec.structs.fields(next(op.request for op in LISTS if op.name == name))}


def narrowed(statement: str) -> set[str]:
    """The tables of which a statement asks for the rows with a value that an index finds: not for all of a company."""
    return {
        table
        for table, columns in NARROWING.items()
        if any(re.search(rf"\b{table}\.{column} = ", statement) for column in columns)
    }


async def test_no_list_reads_what_others_have(tmp_path: Path, each_database: str) -> None:
    async with open_rig(tmp_path) as opened, aiohttp.ClientSession(opened.addresses.http) as http:
        rig = replace(opened, http=http)  # which keeps its connection
        database = rig.platform.metadata.database
        await fill(database, 1)
        asking, wrong, excused, in_order = Asking(rig), {}, set[tuple[str, str]](), set[tuple[str, str]]()
        await rig.add_terminal("own", "stranger")
        await rig.ask("search", "stranger", text="x")  # the first one reads all names, for every company's later ones
        for operation in READING:
            with asked(lambda name=operation.name: at_work.operation() == name) as statements:
                await (asking.ask(operation.name) if operation in LISTS else asking.look(operation))
            assert statements or operation not in LISTS, operation.name
            async with database.reading() as connection:
                for statement, parameters in statements:
                    found = await scans(connection, each_database, statement, parameters, by_company=True)
                    if narrow := narrowed(statement):
                        whole = narrow & await scans(connection, each_database, statement, parameters)
                        in_order |= {(operation.name, table) for table in whole} & IN_ORDER.keys()
                        found |= {table for table in whole if (operation.name, table) not in IN_ORDER}
                    for table in found:
                        if (operation.name, table) in EXCUSED:
                            excused.add((operation.name, table))
                        elif table not in NOT_FILLED:
                            wrong.setdefault((operation.name, table), " ".join(statement.split()))
        assert asking.refused == []
        assert sorted(EXCUSED.keys() - excused) == [], "these are no scans any more: take them out"
        if each_database == "sqlite":  # PostgreSQL knows that the company has next to nothing
            assert sorted(IN_ORDER.keys() - in_order) == [], "these use the index: take them out"
        assert not wrong, "\n".join(f"{action} reads all of {table}: {text}" for (action, table), text in wrong.items())
