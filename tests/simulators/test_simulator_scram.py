"""The simulators' SCRAM client against the embedded broker, and against servers that cheat."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import mqtt5
import pytest

from scram_broker import ScramBroker, scram_broker
from terrazzo_simulators.device import Habits
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import DROPPED, QUEUED_MOST, LinkError, LinkOptions, LoginRefused
from terrazzo_simulators.scram_link import ScramLink
from terrazzo_simulators.spec import Naming, TerminalSpec, generate_specs
from waiting import until

SPEC = TerminalSpec(uid="t1", username="user", pin="secret", dixie=True)
USERS = {"user": "secret"}


class Errors:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def link_to(port: int, *, spec: TerminalSpec = SPEC, errors: Errors | None = None, **options: Any) -> ScramLink:
    return ScramLink(spec, LinkOptions(port=port, **{"timeout_s": 3, **options}), on_error=errors or Errors())


def told(link: ScramLink, payload: bytes, qos: int = 1, channel: str = "r") -> list[int]:
    reasons: list[int] = []
    link.publish(f"g/t1/{channel}", payload, qos=qos, correlation=None, settled=reasons.append)
    return reasons


@pytest.mark.parametrize("method", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
async def test_it_logs_in_publishes_and_obeys(method: str) -> None:
    specs = generate_specs(3, naming=Naming(), dixie=True, scram=method)
    users = {spec.username: spec.pin for spec in specs}
    options = {"habits": Habits(interval_s=0.1, reboot_s=0.2, backoff_s=0.1), "connect_rate": 1_000}
    async with scram_broker(scram=users) as server:
        fleet = Fleet(specs, FleetOptions(link=LinkOptions(port=server.port), **options))
        async with fleet.running():
            await asyncio.wait_for(fleet.connected(), 15)
            assert {request.auth_method for request in server.hooks.requests} == {method}
            assert all(request.password is None for request in server.hooks.requests)
            assert server.command("sim-00002", b'{"Act":"Control","VALVE":3}', b"\x07")
            await until(lambda: notices(server, "sim-00002"), "an answer")
            assert notices(server, "sim-00002") == [("Control", "ok", b"\x07")]
            await until(lambda: server.outcomes, "the PUBACK of the command")
            assert server.command("sim-00001", b'{"Act":"Reboot"}', b"\x08")
            await until(lambda: fleet.statistics.connects == 4, "the terminal is back")
    assert fleet.statistics.acknowledged == fleet.statistics.published
    assert fleet.statistics.errors == 0


def notices(server: ScramBroker, uid: str) -> list[tuple[str, str, bytes | None]]:
    found = []
    for client_id, topic, payload, correlation in server.hooks.taken:
        if client_id == uid and topic == f"g/{uid}/n":
            points = json.loads(payload)
            found.append((points["Act"], points["Result"], correlation))
    return found


async def test_a_wrong_pin_is_refused() -> None:
    async with scram_broker(scram={"user": "other"}) as server:
        with pytest.raises(LoginRefused) as caught:
            await link_to(server.port).open("secret")
        assert caught.value.reason == 0x87


async def test_a_server_that_cannot_sign_is_not_believed() -> None:
    async with scram_broker(scram=USERS) as server:
        server.hooks.forge_signature = True
        errors = Errors()
        link = link_to(server.port, errors=errors)
        with pytest.raises(LinkError, match="broke the protocol"):
            await link.open("secret")
        assert errors.count == 1
        assert link.closed.is_set()


@pytest.mark.parametrize(
    "answer",
    [
        mqtt5.ConnAckPacket().write(),  # lets in without a proof of its own
        mqtt5.AuthPacket(reason_code=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION).write(),
        mqtt5.AuthPacket(
            reason_code=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION,
            authentication_method="SCRAM-SHA-1",
            authentication_data=b"r=other,s=AAAAAAAAAAAAAAAAAAAAAA==,i=4096",
        ).write(),
        mqtt5.PingReqPacket().write(),
        b"\xff\xff\xff\xff\xff\xff",
        b"\x20\x02",  # and never the rest
        b"",
    ],
)
async def test_a_peer_that_breaks_the_protocol_is_left(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client leaves without a word, as it should
            await reader.read(1_000)
            writer.write(answer)
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        left.set()

    left = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        link = link_to(server.sockets[0].getsockname()[1], timeout_s=0.5)
        with pytest.raises((LinkError, TimeoutError)):
            await link.open("secret")
        assert link.closed.is_set()
        await asyncio.wait_for(left.wait(), 5)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_each_quality_of_service(qos: int) -> None:
    async with scram_broker(scram=USERS) as server:
        link = link_to(server.port)
        assert await link.open("secret")
        reasons = [told(link, b"%d" % n, qos=qos) for n in range(300)]
        await until(lambda: link.outstanding == 0, "all acknowledged")
        await until(lambda: len(server.hooks.taken) == 300, "all arrived")
        assert reasons == [[0]] * 300
        assert [payload for _, _, payload, _ in server.hooks.taken] == [b"%d" % n for n in range(300)]
        await link.close()


async def test_a_refused_publish_tells_its_reason() -> None:
    async with scram_broker(scram=USERS) as server:
        link = link_to(server.port)
        await link.open("secret")
        reasons: list[int] = []
        for qos in (1, 2):
            link.publish("g/other/r", b"{}", qos=qos, correlation=None, settled=reasons.append)
        await until(lambda: len(reasons) == 2, "both settled")
        assert reasons == [0x87, 0x87]
        server.hooks.refusal = 0x99
        bad = told(link, b"\xc1")
        await until(lambda: bad, "settled")
        assert bad == [0x99]
        await link.close()


async def test_what_was_not_acknowledged_is_sent_again_after_a_cut() -> None:
    async with scram_broker(scram=USERS) as server:
        server.hooks.holding = []
        link = link_to(server.port)
        await link.open("secret")
        first = told(link, b"held")
        await until(lambda: server.hooks.taken, "the first sending")
        link.cut()
        assert link.closed.is_set()
        offline = told(link, b"offline")
        assert told(link, b"gone", qos=0) == [DROPPED]
        server.hooks.holding = None
        await link.open("secret")
        await until(lambda: first and offline, "both acknowledged")
        assert [payload for _, _, payload, _ in server.hooks.taken] == [b"held", b"held", b"offline"]
        await link.close()


async def test_the_queue_is_bounded() -> None:
    async with scram_broker(scram=USERS) as server:
        link = link_to(server.port)
        await link.open("secret")
        await link.close()
        reasons = [told(link, b"x") for _ in range(QUEUED_MOST + 2)]
        assert reasons[-2:] == [[DROPPED], [DROPPED]]
        assert link.outstanding == QUEUED_MOST


async def test_closing_says_goodbye() -> None:
    async with scram_broker(scram=USERS) as server:
        link = link_to(server.port)
        await link.open("secret")
        await link.close()
        await until(lambda: server.hooks.disconnects, "the broker knows")
        cut = link_to(server.port)
        await cut.open("secret")
        cut.cut()
        await until(lambda: len(server.hooks.disconnects) == 2, "the broker knows")
        goodbye, silence = (reason for _, reason in server.hooks.disconnects)
        assert goodbye != silence


async def test_the_servers_disconnect_is_told_with_its_reason() -> None:
    async with scram_broker(scram=USERS) as server:
        first, second = link_to(server.port), link_to(server.port)
        await first.open("secret")
        await second.open("secret")
        await asyncio.wait_for(first.closed.wait(), 5)
        assert first.closed_reason == 0x8E  # session taken over [MQTT-3.1.4-3]
        await second.close()


async def test_keep_alive_keeps_the_connection() -> None:
    async with scram_broker(scram=USERS, sweep_interval_s=0.1) as server:
        link = link_to(server.port, keep_alive_s=1)
        await link.open("secret")
        for _ in range(25):  # two and a half keep-alives with nothing to say
            await asyncio.sleep(0.1)
            link.keep()
        assert not link.closed.is_set()
        await asyncio.wait_for(link.closed.wait(), 5)  # and none without
        assert link.closed_reason in (0, 0x8D)
