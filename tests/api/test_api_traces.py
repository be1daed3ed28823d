"""The live trace of a terminal's packets: what administrators see of them, for how long, and what nobody sees."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from mqtt_bytes import field, frame, login, publish
from terrazzo.domain.terminal import Terminal
from terrazzo.terminals import tracing
from terrazzo.terminals.packet_summary import MOST_TEXT, masked, summarize
from terrazzo.terminals.tracing import MOST_KEPT, PACKETS_PER_SECOND, TerminalTraces, Trace
from terrazzo_broker.tracing.packet_tap import HEAD_BYTES, OnPacket, TappedPacket
from waiting import close, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATIENCE_S = 20
UID = "traced"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder = tmp_path_factory.mktemp("traces") / "data"
    async with open_rig(folder, mqtt={"provision_plain": True}) as opened:
        for uid in (UID, "other"):
            await opened.add_terminal(uid)
        await opened.add_terminal("strange", "stranger")
        yield opened


class Device:
    """A terminal that speaks bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes, answer_bytes: int = 4) -> bytes:
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(answer_bytes)


@contextlib.asynccontextmanager
async def device(rig: Rig, uid: str = UID, *, protocol: int = 4) -> AsyncIterator[Device]:
    row = rig.services.registry.terminal(uid)
    assert row is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.addresses.mqtt_port)
    made = Device(reader, writer)
    try:
        writer.write(login(uid, row.username, row.pin, protocol=protocol))
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readexactly(2)
            await reader.readexactly(head[1])
        yield made
    finally:
        writer.close()
        await until(lambda: not rig.services.bus.presence(uid).online, "it is gone")


def packets(state: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["direction"], each["packet"]) for each in state["packets"]]


async def test_packets_of_both_ways_are_shown_with_secrets_masked(rig: Rig) -> None:
    frames: list[dict[str, Any]] = []
    async with device(rig) as peer, _following(rig, "admin", frames):
        await peer.send(publish(f"g/{UID}/r", b'{"before": 1}'))
        started = await rig.call("start_trace", terminal_id=UID, minutes=1)
        assert (started["packets"], started["by"]) == ([], "admin-user")
        halves = publish(
            f"g/{UID}/r", b'{"t": 1, "pin": "4711", "Url": "https://a.example/x?Signature=abc"}', packet_id=7
        )
        peer.writer.write(halves[:9])
        await asyncio.sleep(0)
        await peer.send(halves[9:])
        await peer.send(frame(0x82, b"\0\x09", field(f"p2p/{UID}"), b"\x01"), 5)
        peer.writer.write(frame(0x30, field(f"g/{UID}/r"), b"\xff\xfe\x00") + frame(0xC0))
        await until(lambda: len(frames) >= 6, lambda: f"frames: {frames}")
    state = await rig.call("get_trace", terminal_id=UID)
    assert packets(state)[:5] == [
        ("in", "PUBLISH"), ("out", "PUBACK"), ("in", "SUBSCRIBE"), ("out", "SUBACK"), ("in", "PUBLISH"),
    ]  # fmt: skip
    assert ("in", "PINGREQ") in packets(state)
    first, second, third, fourth, fifth = state["packets"][:5]
    assert json.loads(first["payload"]) == {"t": 1, "pin": "***", "Url": "https://a.example/x?***"}
    assert (first["topic"], first["qos"], first["packet_id"], first["size"]) == (f"g/{UID}/r", 1, 7, len(halves))
    assert (second["packet_id"], third["filters"], fourth["codes"]) == (7, [f"p2p/{UID}"], ["0x01"])
    assert (fifth["payload"], fifth["is_hex"]) == ("fffe00", True)
    assert [each["number"] for each in frames] == [each["number"] for each in state["packets"][: len(frames)]]
    async with device(rig, protocol=5) as peer:  # it has connected anew: the trace goes on
        await peer.send(publish(f"g/{UID}/r", b'{"t": 2}', protocol=5))
        await until(lambda: _last(rig)["topic"] == f"g/{UID}/r" and "2" in _last(rig)["payload"], "it is shown")
        connection = rig.platform.terminals.broker._open_connection(UID)
        assert connection is not None
        reader, transport = type(connection.handle_packets).__name__, type(connection.transport).__name__
        assert (reader, transport) == ("_TappedReader", "_TappedTransport")
        assert (await rig.call("stop_trace", terminal_id=UID))["until"] is None
        assert connection.handle_packets.__name__ == "handle_packets"
        assert type(connection.transport).__name__ != "_TappedTransport"
        await peer.send(publish(f"g/{UID}/r", b'{"t": 3}', protocol=5))
    assert (await rig.call("get_trace", terminal_id=UID))["packets"] == []
    entries = (await rig.call("get_audit_list", entity="terminal"))["data"]
    assert [each["after"] for each in entries if each["action"] == "trace"] == [{"minutes": 1}]


def _last(rig: Rig) -> dict[str, Any]:
    terminal = rig.services.registry.terminal(UID)
    assert terminal is not None
    trace = rig.services.traces.of(terminal)
    assert trace is not None
    shown = [each for each in trace.packets if each.packet == "PUBLISH"][-1]
    return {"topic": shown.topic, "payload": shown.payload}


@contextlib.asynccontextmanager
async def _following(rig: Rig, who: str, frames: list[dict[str, Any]]) -> AsyncIterator[None]:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{rig.addresses.http}/apiproxy/api", headers=headers) as raw,
    ):
        await raw.send_json({"action": "subscribe", "kinds": ["trace"], "terminal_id": UID})
        assert json.loads((await raw.receive(PATIENCE_S)).data)["code"] == 200

        async def follow() -> None:
            async for message in raw:
                found = json.loads(message.data)
                frames.append(found.get("data") or found["end"])

        task = asyncio.create_task(follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.parametrize(
    ("who", "fields", "code"),
    [
        ("viewer", {"terminal_id": UID}, 10403),
        ("operator", {"terminal_id": UID}, 10403),
        ("admin", {}, 10401),  # of a terminal alone
        ("stranger", {"terminal_id": UID}, 10404),
    ],
)
async def test_frames_are_for_administrators_of_the_terminal(
    rig: Rig, who: str, fields: dict[str, Any], code: int
) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{rig.addresses.http}/apiproxy/api", headers=headers) as raw,
    ):
        await raw.send_json({"action": "subscribe", "kinds": ["grid", "trace"], **fields})
        assert json.loads((await raw.receive(PATIENCE_S)).data)["code"] == code


async def test_who_is_no_administrator_any_more_sees_no_more(rig: Rig) -> None:
    user = await rig.call("get_user_item", "root", username="admin-user")
    changed = {name: user[name] for name in ("username", "created_by", "last_modified_by", "is_active") if name in user}
    frames: list[dict[str, Any]] = []
    async with _following(rig, "admin", frames):
        await rig.call("update_user", "root", **changed, role="operator")
        try:
            await until(lambda: frames, "the subscription has ended")
            assert frames[0]["code"] == 10403
        finally:
            await rig.call("update_user", "root", **changed, role="admin")


async def test_one_of_a_company_at_a_time(rig: Rig) -> None:
    await rig.call("start_trace", terminal_id=UID)
    refused = await rig.ask("start_trace", terminal_id="other")
    assert (refused["code"], refused["info"]) == (
        500,
        f"terminal_id: {UID} is traced by admin-user; one of a company at a time",
    )
    assert (await rig.call("start_trace", "stranger", terminal_id="strange"))["until"]
    assert (await rig.ask("start_trace", terminal_id=UID, minutes=11))["code"] == 10401
    await rig.call("delete_terminal", uid="other")
    for uid, who in ((UID, "admin"), ("strange", "stranger")):
        await rig.call("stop_trace", who, terminal_id=uid)


async def test_who_is_claiming_is_not_traced(rig: Rig) -> None:
    """Its record isn't made yet, and what it is told is its pin."""
    made = await rig.call("create_claim_key", name="k", prefix="new-")
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.addresses.mqtt_port)
    one = Device(reader, writer)
    try:
        assert await one.send(login("new-1", "claim", made["key"])) == b"\x20\x02\0\0"
        assert await one.send(frame(0x82, b"\0\1", field("p2p/new-1"), b"\1"), 5) == b"\x90\x03\0\1\1"
        async with asyncio.timeout(PATIENCE_S):
            assert (await reader.readexactly(1))[0] == 0x32, "the pin"
        for who in ("admin", "root"):
            assert (await rig.ask("start_trace", who, terminal_id="new-1"))["code"] == 10404
    finally:
        await close(writer)


class Taps:
    """A bus that keeps who looks."""

    def __init__(self) -> None:
        self.looking: dict[str, OnPacket] = {}

    def tap(self, uid: str, on_packet: OnPacket) -> bool:
        self.looking[uid] = on_packet
        return True

    def untap(self, uid: str) -> None:
        del self.looking[uid]


TERMINAL = Terminal(id=1, uid=UID, name=UID, company_id=1, type="", mode="pwd", username="u", pin="p")
PING = TappedPacket(True, 0xC0, 2, b"", 4)


async def test_a_flood_is_counted_and_what_is_kept_is_bounded() -> None:
    trace = Trace(TERMINAL, "me", 0)
    shown = [trace.note(PING, number * 1_000) for number in range(1_000)]  # within a second
    assert sum(each is not None for each in shown) == PACKETS_PER_SECOND
    late = trace.note(PING, 1_000_000)
    assert late is not None
    assert (late.missed, trace.seen) == (1_000 - PACKETS_PER_SECOND, 1_001)
    for second in range(2, 2 + 2 * MOST_KEPT):
        trace.note(PING, second * 1_000_000)
    assert len(trace.packets) == MOST_KEPT


async def test_it_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    taps, ended = Taps(), list[str]()
    traces = TerminalTraces(taps)
    traces.ended.listen(lambda terminal: ended.append(terminal.uid))
    monkeypatch.setattr(tracing, "MINUTE_S", 0.01)
    traces.start(_actor(), TERMINAL, 1)
    assert [*taps.looking] == [UID]
    await until(lambda: ended == [UID], "its time is over")
    assert (traces.of(TERMINAL), taps.looking) == (None, {})


def _actor() -> Any:
    from terrazzo.domain.actor import SYSTEM

    return SYSTEM


async def test_a_terminal_that_is_gone_is_traced_no_more() -> None:
    taps = Taps()
    traces = TerminalTraces(taps)
    traces.start(_actor(), TERMINAL, 1)
    traces.on_terminal(TERMINAL, TERMINAL)
    assert traces.of(TERMINAL) is not None
    traces.on_terminal(TERMINAL, None)
    assert (traces.of(TERMINAL), taps.looking) == (None, {})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"pin": "1"}', '{"pin": "***"}'),
        ('{"DevicePwd" : 4711, "a": 1}', '{"DevicePwd" : "***", "a": 1}'),
        ('{"wifi_password": "a, b', '{"wifi_password": "***"'),
        ('{"spin": 5, "shipping": 1}', '{"spin": "***", "shipping": "***"}'),  # rather too much than too little
        ("ftp://me:secret@a.example/f", "ftp://***@a.example/f"),
        ("https://a.example/f?Expires=1&Signature=x y", "https://a.example/f?*** y"),
        ('{"temperature": 21.5}', '{"temperature": 21.5}'),
    ],
)
async def test_what_is_secret_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


async def test_what_logs_in_is_never_told() -> None:
    data = login("me", "user-name", "pass-word", protocol=5)
    told = summarize(TappedPacket(True, data[0], len(data), data[2:], 5))
    assert (told.packet, told.payload, told.topic) == ("CONNECT", "", "")
    told = summarize(TappedPacket(True, 0xF0, 20, b"\x18\x10secret", 5))
    assert (told.packet, told.codes, told.payload) == ("AUTH", [], "")


async def test_a_long_payload_is_cut() -> None:
    data = publish("g/a/r", b"x" * 10_000)
    told = summarize(TappedPacket(True, data[0], len(data), data[3 : 3 + HEAD_BYTES], 4))
    assert (len(told.payload), told.cut, told.size) == (MOST_TEXT, True, len(data))
    short = publish("g/a/r", b"x" * 10)
    assert summarize(TappedPacket(True, short[0], len(short), short[2:], 4)).cut is False
