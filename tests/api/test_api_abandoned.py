"""A question ends with whoever asked it; a change that has begun goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from own_platform import Ports, store_through
from terrazzo.ports.store import TimeSeriesStore
from trace_collector import Collector, attributes_of, collector
from waiting import until


class SlowStore:
    """Has whoever asks for a page wait, and notes who was given up."""

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store
        self.waits = self.given_up = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def page(self, *_: Any, **__: Any) -> Any:
        self.waits += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, ports=Ports(open_store=store_through(SlowStore))) as opened:
        yield opened


def request(rig: Rig, **fields: Any) -> bytes:
    body = json.dumps(fields).encode()
    head = f"POST /apiproxy/api HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {rig.tokens['viewer']}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture
async def traced(tmp_path: Path) -> AsyncIterator[tuple[Rig, Collector]]:
    """All requests are traced."""
    with collector() as there:
        ports = Ports(open_store=store_through(SlowStore))
        async with open_rig(tmp_path, ports=ports, tracing={"endpoint": there.url, "sample": 1.0}) as opened:
            yield opened, there


async def abandoned(rig: Rig) -> float:
    async with rig.http.get("/metrics") as response:
        text = await response.text()
    (line,) = (each for each in text.splitlines() if each.startswith("terrazzo_api_abandoned_total "))
    return float(line.split()[1])


@pytest.mark.parametrize("known", [False, True], ids=["aiohttp reads it", "its head is known"])
async def test_a_question_ends_with_its_connection(rig: Rig, known: bool) -> None:
    await rig.add_terminal("g1")
    store = rig.platform.store
    assert isinstance(store, SlowStore)
    address = rig.addresses.http.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(address[0], int(address[1]))
    if known:  # the same head twice: the second time aiohttp doesn't see it
        for _ in range(2):
            writer.write(request(rig, action="ping"))
            await reader.readuntil(b"}}")
    times = {"start_time": "2026-01-01 00:00:00", "end_time": "2026-02-01 00:00:00"}
    writer.write(request(rig, action="get_grid_list", terminal_id="g1", topic=["r"], **times))
    await until(lambda: store.waits == 1)
    assert await abandoned(rig) == 0
    writer.close()
    await writer.wait_closed()
    await until(lambda: store.given_up == 1)
    assert await abandoned(rig) == 1
    assert (await rig.ask("ping", "viewer"))["code"] == 200


async def test_the_span_of_a_question_ends_with_its_connection(traced: tuple[Rig, Collector]) -> None:
    rig, there = traced
    await rig.add_terminal("g1")
    store = rig.platform.store
    assert isinstance(store, SlowStore)
    address = rig.addresses.http.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(address[0], int(address[1]))
    times = {"start_time": "2026-01-01 00:00:00", "end_time": "2026-02-01 00:00:00"}
    writer.write(request(rig, action="get_grid_list", terminal_id="g1", topic=["r"], **times))
    await until(lambda: store.waits == 1)
    writer.close()
    await writer.wait_closed()
    await until(lambda: there.named("get_grid_list"))
    (span,) = there.named("get_grid_list")
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert span.status.message == "abandoned"
    assert attributes_of(span)["terrazzo.code"] == 0
    assert attributes_of(span)["terrazzo.company"] == 1
    assert (await rig.ask("ping", "viewer"))["code"] == 200
    await until(lambda: there.named("ping"))
    after = there.named("ping")[0]
    assert after.trace_id != span.trace_id, "what comes later is no part of it"
    assert not after.parent_span_id


async def test_a_change_goes_on_without_its_connection(rig: Rig) -> None:
    """Whoever has gone may have been told of nothing; half a change would be worse than one that nobody hears of."""
    config = await rig.add_config()
    database, gate = rig.platform.metadata.database, asyncio.Event()
    entered = asyncio.Event()

    async def hold() -> None:
        async with database.writing():
            entered.set()
            await gate.wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    address = rig.addresses.http.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(address[0], int(address[1]))
    fields = {"action": "register_terminal", "uid": "late", "config_id": config}
    writer.write(request(rig, **fields).replace(rig.tokens["viewer"].encode(), rig.tokens["admin"].encode()))
    await until(lambda: bool(database._writers._waiting))
    writer.close()
    await writer.wait_closed()
    gate.set()
    await holding
    await until(lambda: rig.services.registry.terminal("late") is not None)
