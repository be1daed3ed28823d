"""What is done for whoever has gone ends at once, over each transport, unless it changes something."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from lasting import Connection, Gateway, LineConnection, SocketConnection
from terrazzo.api.operations.bulk import BULK
from terrazzo.api.operations.table import TABLE
from terrazzo.bulk.plan import Planned, Planner
from terrazzo.bulk.writing import ImportWriter
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import Record
from waiting import until

ROWS = 1_200  # of which the first thousand count in memory
WAYS = ("bulk", "progress", "action", "websocket", "tcp")


class Stand:
    """A step at which whoever comes waits until it is open; notes who came and who was given up."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.came = self.given_up = 0

    async def __call__(self, *_: Any, **__: Any) -> Any:
        self.came += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise


async def abandoned(ports: Gateway) -> int:
    """Requests that ended with their connection, as ``/metrics`` has them."""
    async with ports.client.get(f"http://127.0.0.1:{ports.http}/metrics") as response:
        text = await response.text()
    (line,) = (each for each in text.splitlines() if each.startswith("terrazzo_api_abandoned_total "))
    return int(float(line.split()[1]))


async def ask_over_http(ports: Gateway, method: str, path: str, body: bytes = b"") -> Callable[[], None]:
    """Asks as an administrator; what hangs up."""
    _, writer = await asyncio.open_connection("127.0.0.1", ports.http)
    head = f"{method} {path} HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {ports.rig.tokens['admin']}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return lambda: writer.transport.abort()  # it keeps the writer, without which the connection ends


def hanging_up(connection: Connection) -> Callable[[], None]:
    """What breaks a connection off, without a word."""

    def hang_up() -> None:
        if isinstance(connection, LineConnection):  # by a reset: who has only said all still reads answers
            client = connection.writer.get_extra_info("socket")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.writer.transport.abort()
        else:
            assert isinstance(connection, SocketConnection)
            connection.raw._response.connection.transport.abort()  # type: ignore[union-attr]

    return hang_up


async def begin_import(ports: Gateway, way: str, config: str, *, dry_run: int) -> Callable[[], None]:
    """Sends an import of terminals; what hangs up."""
    made = {"type": "A", "config_id": config, "mode": "pwd"}
    rows = [{"uid": f"T{n}", "name": f"T{n}", "username": f"u{n}", "pin": f"{n:08}", **made} for n in range(ROWS)]
    body = json.dumps(rows).encode()
    if way in ("bulk", "progress"):
        path = f"/bulk/terminals?dry_run={dry_run}&progress={int(way == 'progress')}"
        return await ask_over_http(ports, "POST", path, body)
    request = json.dumps({"action": "import_terminals", "rows": rows, "dry_run": dry_run}).encode()
    if way == "action":
        return await ask_over_http(ports, "POST", "/apiproxy/api", request)
    connection = await ports._open(way)
    await connection.ask("ping", Authorization=f"Bearer {ports.rig.tokens['admin']}")
    await connection.send(request)
    return hanging_up(connection)


@pytest.mark.parametrize("dry_run", [1, 0], ids=["dry run", "import"])
@pytest.mark.parametrize("way", WAYS)
async def test_an_import_ends_with_its_client_until_it_writes(
    ports: Gateway, way: str, dry_run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, services, stand = await ports.rig.add_config(), ports.rig.services, Stand()
    monkeypatch.setattr(Planner, "plan", stand)
    hang_up = await begin_import(ports, way, config, dry_run=dry_run)
    await until(lambda: stand.came == 1, "the rows are read, and about to be checked")
    assert services.memory.by_kind()["imports"] > 0
    hang_up()
    await until(lambda: stand.given_up == 1, "nobody waits for what would be found")
    await until(lambda: services.memory.by_kind()["imports"] == 0, "its memory is free")
    assert services.imports.begin(1), "and its company's turn is"
    assert await abandoned(ports) == 1


@pytest.mark.parametrize("way", ["bulk", "action", "websocket", "tcp"])
async def test_an_import_that_writes_goes_on_without_its_client(
    ports: Gateway, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, stand, write = await ports.rig.add_config(), Stand(), ImportWriter.write

    async def gated(writer: ImportWriter, planned: Sequence[Planned], on_row: Callable[[int], object]) -> None:
        await stand()
        await write(writer, planned, on_row)

    gone, end_of_lost = [], at_work.end_of_lost

    def end(work: Work) -> None:
        gone.append(work.operation)
        end_of_lost(work)

    monkeypatch.setattr(at_work, "end_of_lost", end)
    monkeypatch.setattr(ImportWriter, "write", gated)
    hang_up = await begin_import(ports, way, config, dry_run=0)
    await until(lambda: stand.came == 1, "all is checked")
    hang_up()
    await until(lambda: gone == ["import_terminals"], "the server knows that nobody is there")
    stand.open.set()
    await until(lambda: ports.rig.services.registry.terminal(f"T{ROWS - 1}") is not None, "the last one is made")
    assert stand.given_up == 0


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_what_reads_ends_with_a_connection_that_stays(
    ports: Gateway, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ports.rig.add_terminal("t1")
    stand = Stand()
    monkeypatch.setattr(ports.rig.services.store, "latest", stand)
    connection = await ports._open(kind)
    await connection.ask("ping", Authorization=f"Bearer {ports.rig.tokens['viewer']}")
    for _ in range(5):
        await connection.send(json.dumps({"action": "get_last_grid", "terminal_id": "t1", "topic": "r"}).encode())
    await until(lambda: stand.came == 5, "reads are under way")
    hanging_up(connection)()
    await until(lambda: stand.given_up == 5, "all of them have ended")
    await until(lambda: ports.connection_limiter.open == 0, "and the connection is counted out")


async def test_an_export_is_made_for_its_company_and_ends_with_its_connection(
    ports: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a piece takes long, and nothing is written meanwhile that would show that nobody is there."""
    await ports.rig.add_terminal("t1")
    stand, made_for = Stand(), []

    async def scan(*_: Any, **__: Any) -> AsyncIterator[list[Record]]:
        for number in range(2):
            made_for.append(at_work.company_id())
            yield [Record("g/t1/r", 1_770_000_000_000_000 + number, b'{"p": 1}')]
        await stand()

    monkeypatch.setattr(ports.rig.services.store, "scan", scan)
    hang_up = await ask_over_http(ports, "GET", "/export/grid/t1?format=jsonl")
    await until(lambda: stand.came == 1, "two pieces are made")
    assert made_for == [1, 1]
    hang_up()
    await until(lambda: stand.given_up == 1, "the third is not waited for")


def test_what_ends_with_its_client_is_known() -> None:
    """Whatever is called so reads; nothing else of administrators and operators may end at any moment."""
    all_rows = [*TABLE, *(each.upload() for each in BULK)]
    assert [each.name for each in all_rows if each.name.startswith("get_") and not each.may_end] == []
    odd = [each.name for each in all_rows if each.may_end and not each.only_reads and not each.name.startswith("get_")]
    assert odd == []
    assert {each.name for each in all_rows if each.tries_first} == {each.import_name for each in BULK}
