"""TCP: what a peer does with lines, and what becomes of one who dawdles, overdoes it, or hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from api.api_rig import open_rig
from lasting import Gateway, LineConnection, open_ports
from terrazzo.api.transports.connection_limiter import Cut
from terrazzo.api.transports.tcp import TcpConnection
from waiting import until

PING = b'{"action": "ping", "actionid": 1}'


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """One for the tests whose connections end in order."""
    async with open_rig(tmp_path_factory.mktemp("shared")) as rig, open_ports(rig) as opened:
        yield opened


def cuts(ports: Gateway) -> dict[str, float]:
    """How often each reason has been counted."""
    families = {family.name: family for family in ports.connection_limiter.collect()}
    return {sample.labels["reason"]: sample.value for sample in families["terrazzo_api_cut"].samples}


async def rest_of(connection: LineConnection) -> list[dict[str, Any]]:
    """Every line until the server has closed."""
    data = await asyncio.wait_for(connection.reader.read(), 15)
    return [json.loads(line) for line in data.splitlines()]


@IN_MODULE
async def test_one_line_for_each_line_in_order(shared: Gateway) -> None:
    async with shared.connect("tcp") as peer:
        await peer.send(PING + b"\r\n" + b"\n" + b"nonsense\r\n" + b'{"action": "get_terminal_list", "actionid": 2}')
        answers = [await peer.receive() for _ in range(4)]
    assert [answer["code"] for answer in answers] == [200, 10401, 10401, 200]
    assert [answer["actionid"] for answer in answers] == [1, "", "", 2]
    assert answers[1]["info"] == "body: is empty"


@IN_MODULE
async def test_bytes_that_come_one_by_one_are_a_request_too(shared: Gateway) -> None:
    async with shared.connect("tcp", "nobody") as peer:
        for byte in PING + b"\n":
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        assert (await peer.receive())["code"] == 10402


@IN_MODULE
async def test_what_was_sent_before_hanging_up_is_answered(shared: Gateway) -> None:
    async with shared.connect("tcp") as peer:
        peer.writer.write(b"\n".join([PING] * 5))  # the last without a line feed
        peer.writer.write_eof()
        assert [answer["code"] for answer in await rest_of(peer)] == [200] * 5


@IN_MODULE
async def test_an_answer_is_one_line_whatever_it_holds(shared: Gateway) -> None:
    async with shared.connect("tcp") as peer:
        answer = await peer.ask("ping", message="a\nb\u2028c")
        assert answer["result"] == {"pong": "a\nb\u2028c"}


async def test_a_line_over_the_limit_is_answered_and_the_connection_closed(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"body_bytes": 2_000}) as rig, open_ports(rig) as ports:
        async with ports.connect("tcp") as peer:
            peer.writer.write(PING + b"\n" + b"x" * 500_000)
            first, refusal = await rest_of(peer)
        assert first["code"] == 200
        assert (refusal["code"], refusal["info"]) == (10401, "body: longer than 2000 bytes (limits.body_bytes)")
        assert refusal["reason"]["code"] == "body_too_long"
        assert cuts(ports)["too_long"] == 1


@pytest.mark.parametrize(
    ("sent", "why", "info", "reason"),
    [
        (
            b"",
            "idle",
            "connection: idle for 0.3 s (limits.idle_timeout_s)",
            {"code": "connection_idle", "parameters": {"seconds": 0.3}},
        ),
        (
            b'{"act',
            "body_timeout",
            "body: the line was not complete within 0.2 s (limits.request_timeout_s)",
            {"code": "line_late", "parameters": {"seconds": 0.2}},
        ),
    ],
)
async def test_who_dawdles_is_told_and_cut_off(
    tmp_path: Path, sent: bytes, why: str, info: str, reason: dict[str, Any]
) -> None:
    changed = {"request_timeout_s": 0.2, "idle_timeout_s": 0.3}
    async with open_rig(tmp_path, limits=changed) as rig, open_ports(rig) as ports:
        async with ports.connect("tcp") as peer:
            peer.writer.write(sent)
            (refusal,) = await rest_of(peer)
        assert (refusal["info"], refusal["reason"]) == (info, reason)
        assert cuts(ports)[why] == 1


async def test_who_takes_no_answers_is_cut_off(tmp_path: Path) -> None:
    changed = {"request_timeout_s": 0.3}
    async with open_rig(tmp_path, limits=changed) as rig, open_ports(rig) as ports, ports.connect("tcp") as peer:
        request = json.dumps({"action": "ping", "message": "x" * 60_000}).encode() + b"\n"
        peer.writer.write(request * 400)
        await until(lambda: cuts(ports)[Cut.UNREAD.value] == 1, "cut off")
        await until(lambda: ports.connection_limiter.open == 0, "counted out")


async def test_a_subscriber_may_be_silent(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(open_rig(tmp_path, limits={"idle_timeout_s": 0.2}))
        ports = await stack.enter_async_context(open_ports(rig))
        peer, idle = [await stack.enter_async_context(ports.connect("tcp")) for _ in range(2)]
        assert (await peer.ask("subscribe", kinds=["event"]))["code"] == 200
        assert len(await rest_of(idle)) == 1
        rig.services.live.publish("event", company_id=1, data={"n": 1})
        assert (await peer.receive())["data"] == {"n": 1}


@pytest.mark.parametrize("limit", ["connections", "api_connections"])
async def test_one_connection_too_many_is_told_over_each_port(tmp_path: Path, limit: str) -> None:
    async with open_rig(tmp_path, limits={limit: 2}) as rig, open_ports(rig) as ports:
        async with ports.connect("tcp"), ports.connect("websocket"):
            async with ports.connect("tcp", "nobody") as third:
                (refusal,) = await rest_of(third)
            assert refusal["info"] == f"connections: 2 are open (limits.{limit})"
            parameters = {"most": 2, "limit": f"limits.{limit}"}
            assert refusal["reason"] == {"code": "connections_open", "parameters": parameters}
            async with ports.client.get(f"http://127.0.0.1:{ports.http}/healthz") as response:
                told = await response.json()
                assert (response.status, told["info"], told["reason"]) == (503, refusal["info"], refusal["reason"])
            assert cuts(ports)["connections"] == 2
        await until(lambda: ports.connection_limiter.open == 0, "both have left")
        async with ports.connect("tcp") as again:
            assert (await again.ask("ping"))["code"] == 200


async def test_a_stop_answers_what_was_read_and_closes(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig, open_ports(rig) as ports:
        peer = LineConnection(*await asyncio.open_connection("127.0.0.1", ports.tcp))
        await peer.ask("ping", Authorization=f"Bearer {rig.tokens['viewer']}")
        peer.writer.write(b"\n".join([PING] * 20) + b"\n" + b'{"action": "never complete')
        first = await peer.receive()
        await rig.platform.stop()
        answers = [first, *await rest_of(peer)]
        await peer.close()
    assert [answer["code"] for answer in answers] == [200] * 20


async def test_a_fault_of_ours_ends_that_connection_alone_and_is_told(
    ports: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_connection: TcpConnection) -> bytes | None:
        raise RuntimeError("planted")

    async with ports.connect("tcp") as other:
        with monkeypatch.context() as planted:
            planted.setattr(TcpConnection, "next_line", fail)
            async with ports.connect("tcp", "nobody") as peer:
                with suppress(ConnectionError):
                    assert await rest_of(peer) == []
        await until(lambda: ports.connection_limiter.open == 1, "its place is free again")
        assert "RuntimeError: planted" in caplog.text
        assert (await other.ask("ping"))["code"] == 200


async def test_a_subscriber_is_sent_nothing_after_the_last_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rig(tmp_path, limits={"body_bytes": 20_000}) as rig, open_ports(rig) as opened:
        async with opened.connect("tcp") as connection:
            assert isinstance(connection, LineConnection)
            answer = await connection.ask("subscribe", kinds=["event"])
            assert answer["code"] == 200
            await connection.send(b"x" * 30_000)
            assert "limits.body_bytes" in (await connection.receive())["info"]
            for number in range(3):
                rig.services.live.publish("event", company_id=1, data=number)
                await asyncio.sleep(0)
            with suppress(ConnectionError):
                assert await connection.reader.read() == b""
        await until(lambda: opened.connection_limiter.open == 0, "it has ended")
    assert "a live subscription failed" not in caplog.text
