"""Descriptors: as many as the system allows, shared out, and what is served when silent sockets take them."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running import Platform
from terrazzo.config.limits import LimitsSection
from terrazzo.runtime.descriptors import plan_descriptors, plan_of, spare_of
from waiting import close

HARD = 1_024
CONNECT = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04nobo"


class Limited(Platform):
    """A platform that may have ``HARD`` descriptors, and is started with half of them."""

    program = (
        "-c",
        "import resource, runpy; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({HARD // 2}, {HARD})); "
        "runpy.run_module('terrazzo', run_name='__main__', alter_sys=True)",
    )


@given(st.integers(256, 2_000_000), st.integers(1, 1_000_000), st.integers(1, 1_000_000))
def test_a_plan_is_within_the_descriptors(total: int, wanted: int, of_apis: int) -> None:
    plan = plan_descriptors(total, wanted, of_apis)
    rest, planned = total - min(2_048, total // 4), (plan.connections, plan.of_apis)
    for possible, asked in zip(planned, (wanted, of_apis), strict=True):
        assert min(16, asked) <= possible <= asked
    assert sum(each + spare_of(each) for each in planned if each > 16) <= rest
    assert plan.is_enough == (planned == (wanted, of_apis))


@given(st.integers(16, 1_000_000), st.integers(16, 1_000_000))
def test_what_is_said_to_be_needed_is_enough(wanted: int, of_apis: int) -> None:
    plan = plan_descriptors(1_024, wanted, of_apis)
    assert plan_descriptors(max(plan.needed, 4 * 2_048), wanted, of_apis).is_enough


@pytest.mark.parametrize(
    ("total", "connections"), [(1_048_576, 10_000), (24_096, 10_000), (20_000, 7_952), (4_096, 1_228), (1_024, 307)]
)
def test_usual_limits(total: int, connections: int) -> None:
    plan = plan_descriptors(total, 10_000, 10_000)
    assert (plan.connections, plan.of_apis) == (connections, connections)


def test_who_has_more_terminals_than_clients_says_so() -> None:
    limits = LimitsSection(connections=10_000, api_connections=2_000)
    assert plan_of(20_000, limits).is_enough
    told = str(plan_of(8_192, limits))
    assert told == (
        "8192 descriptors (ulimit -n) are enough for 4096 connections of MQTT and 819 of the APIs, not for "
        "limits.connections = 10000 and limits.api_connections = 2000"
    )


async def status_of(port: int, address: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n")[0]
    finally:
        await close(writer)


async def connack(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.1", 0))
    try:
        writer.write(CONNECT)
        return await asyncio.wait_for(reader.readexactly(1), 20)
    finally:
        await close(writer)


async def silent(stack: AsyncExitStack, port: int, address: str) -> None:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    except ConnectionError:
        return
    stack.push_async_callback(close, writer)


async def test_silent_sockets_do_not_take_all_descriptors(tmp_path: Path) -> None:
    with Limited(tmp_path / "data") as platform:
        log = (tmp_path / "data.log").read_text()
        assert f"{HARD} descriptors (ulimit -n) are enough for 307 connections of MQTT and as many of the APIs" in log
        platform.login()
        assert await connack(platform.mqtt) == b"\x20"
        async with AsyncExitStack() as stack:
            for round_ in range(4):
                for number in range(2, 12):  # ten addresses
                    for port in (platform.http, platform.websocket, platform.mqtt):
                        for _ in range(15):
                            await silent(stack, port, f"127.0.0.{number}")
                assert b" 200 " in await status_of(platform.http, "127.0.0.1"), f"round {round_}"
                assert await connack(platform.mqtt) == b"\x20"
                assert await asyncio.to_thread(platform.ask, "get_app") is not None
                assert len(os.listdir(f"/proc/{platform.pid}/fd")) < HARD
        assert "Too many open files" not in (tmp_path / "data.log").read_text()
        assert b" 200 " in await status_of(platform.http, "127.0.0.1")
