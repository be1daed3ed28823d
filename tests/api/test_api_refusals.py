"""Each way to be refused, in MQTT 3.1.1 and 5: what the terminal gets, and what the operator finds of it: the entry in
``get_terminal_status``, the live frame, the counter, and what ``terrazzo terminal why`` prints."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import mqtt5
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig
from typer.testing import CliRunner

from certificate_authority import Authority
from mqtt_bytes import login
from platform_site import ROOT, Company, Peer, Site, peers, unix_s
from terrazzo.cli.shell.program import make_app
from terrazzo.domain.refusals.reasons import REASONS, STRANGERS_ARE_TOLD
from terrazzo.ports.control import SOCKET, at_folder
from terrazzo_simulators.link import LinkOptions, LoginRefused
from terrazzo_simulators.login import auto_password
from terrazzo_simulators.scram_link import ScramLink
from terrazzo_simulators.spec import TerminalSpec
from waiting import close, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

PACKET_BYTES = 4_096
FAILURES = 6
SUBSCRIPTIONS = 30
RETAINED = 2
_ADDRESS = "127.0.0.1"


@dataclass
class World:
    """A platform with live subscribers, one of each company, and one of all."""

    rig: Rig
    site: Site
    folder: Path
    config: str
    frames: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by user

    @property
    def company(self) -> Company:
        return Company(self.site, ROOT, self.config)

    def frames_of(self, uid: str, reason: str, who: str = "admin") -> list[dict[str, Any]]:
        return [each for each in self.frames[who] if (each["terminal_id"], each["reason"]) == (uid, reason)]

    async def frame(self, uid: str, reason: str, *, count: int = 1, who: str = "admin") -> dict[str, Any]:
        """The last frame of a terminal and a reason, once it counts so many."""

        def found() -> dict[str, Any] | None:
            last = self.frames_of(uid, reason, who)[-1:]
            return last[0] if last and last[0]["count"] >= count else None

        return dict(await until(found, f"a frame of {uid}: {reason}, {self.frames[who][-3:]}"))

    async def counted(self, reason: str) -> float:
        """What ``/metrics`` says of a reason."""
        async with self.rig.http.get("/metrics") as response:
            text = await response.text()
        found = re.search(rf'^terrazzo_refusals_total{{reason="{reason}"}} (\S+)$', text, re.MULTILINE)
        assert found is not None, reason
        return float(found[1])

    async def why(self, uid: str, *options: str) -> str:
        """What the command prints; without options of the platform that runs on the folder."""
        arguments = ["terminal", "why", uid, *(options or ("--data", str(self.folder)))]
        result = await asyncio.to_thread(CliRunner().invoke, make_app(), arguments)
        return result.output if result.exception is None else f"{result.exit_code}: {result.exception}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("refusals")
    pair = Authority(folder / "ca").issue("server")
    mqtt = {"tls_port": 0, "tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    limits = {"mqtt_packet_bytes": PACKET_BYTES, "login_failures": FAILURES, "company_subscriptions": SUBSCRIPTIONS}
    limits |= {"terminal_retained_messages": RETAINED}
    async with open_rig(folder / "data", limits=limits, mqtt=mqtt) as rig, contextlib.AsyncExitStack() as stack:
        made = World(rig, Site(rig.platform, rig.addresses), folder / "data", await rig.add_config())
        for who in ("admin", "root", "stranger"):
            frames = made.frames[who] = []
            stack.push_async_callback(_stop, asyncio.create_task(_subscribe(rig, who, frames)))
        await until(lambda: len(rig.services.live.every()) == 3)
        yield made


async def _subscribe(rig: Rig, who: str, frames: list[dict[str, Any]]) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{rig.addresses.http}/apiproxy/api", headers=headers) as raw,
    ):
        await raw.send_json({"action": "subscribe", "kinds": ["diagnostic"]})
        async for message in raw:
            found = json.loads(message.data)
            if found["resp"] == "live":
                frames.append(found["data"])


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@dataclass(frozen=True)
class Got:
    """What the terminal gets: the code that its protocol has, and the Reason String of MQTT 5."""

    code: int | None
    text: str = ""


Act = Callable[[World, Callable[..., Peer], str, int], Awaitable[Got]]


async def _connect(make: Callable[..., Peer], uid: str, protocol: int, **credentials: Any) -> Got:
    peer = make(uid, protocol=protocol)
    return Got(await peer.connect(**credentials), peer.told)


async def wrong_user_name(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    return await _connect(make, uid, protocol, username="somebody")


async def wrong_pin(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    return await _connect(make, uid, protocol, password="guess")


async def no_credentials(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    return await _connect(make, uid, protocol, username=None)


async def wrong_signature(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    password = auto_password(uid=uid, pin="guess", unix_s=unix_s())
    return await _connect(make, uid, protocol, password=password)


async def clock_off(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    password = auto_password(uid=uid, pin=f"pin-{uid}"[:16], unix_s=unix_s() - 3_602)
    return await _connect(make, uid, protocol, password=password)


async def replayed(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    password = auto_password(uid=uid, pin=f"pin-{uid}"[:16], unix_s=unix_s())
    peer = make(uid, protocol=protocol)
    assert await peer.connect(password=password) == 0
    await peer.close()
    return await _connect(make, uid, protocol, password=password)


async def wrong_pin_by_scram(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    """The proof in the AUTH is that of another pin."""
    spec = TerminalSpec(uid=uid, username=f"u-{uid}", pin="guess", dixie=True)
    link = ScramLink(spec, LinkOptions(port=world.site.port), on_error=lambda: None)
    with pytest.raises(LoginRefused) as caught:
        await link.open("guess")
    return Got(caught.value.reason, str(caught.value))


async def unknown_method(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    reader, writer = await asyncio.open_connection(_ADDRESS, world.site.port)
    asked = mqtt5.ConnectPacket(uid, authentication_method="PLAIN", authentication_data=b"x")
    writer.write(asked.write())
    connack, _ = mqtt5.read(await asyncio.wait_for(reader.read(-1), 15))
    await close(writer)
    return Got(int(connack.reason_code), connack.reason_str or "")


async def rightly(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    """With the right credentials: it is the record that refuses."""
    return await _connect(make, uid, protocol)


async def throttled(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    for _ in range(FAILURES):
        assert (await _connect(make, uid, protocol, password="guess")).code == 0x86
    return await _connect(make, uid, protocol)


async def publish_not_allowed(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    return Got(await peer.publish(f"g/{uid}/a", b'{"a":1}'), peer.told)


async def payload_refused(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    return Got(await peer.publish(f"g/{uid}/r", b"{oops"), peer.told)


async def subscribe_not_allowed(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    return Got(await peer.subscribe("g/other/r"), peer.told)


async def topic_filter_invalid(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    return Got(await peer.subscribe("/".join("g" * 300)), peer.told)


async def subscription_quota(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    for number in range(SUBSCRIPTIONS):
        assert await peer.subscribe(f"g/{uid}/r/{number}") == 1
    return Got(await peer.subscribe(f"g/{uid}/r/one-more"), peer.told)


async def retained_quota(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    """The report is stored, and so acknowledged."""
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    for number in range(RETAINED):
        assert await peer.publish(f"g/{uid}/r/{number}", b'{"a":1}', retain=True) == 0
    return Got(await peer.publish(f"g/{uid}/r/one-more", b'{"a":1}', retain=True), peer.told)


async def taken_over(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    first, second = make(uid, protocol=protocol), make(uid, protocol=protocol)
    assert await first.connect() == 0
    assert await second.connect() == 0
    return Got(await first.gone(), first.told)


async def packet_too_large(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    peer.send(f"g/{uid}/r", b"x" * PACKET_BYTES)
    return Got(await peer.gone(), peer.told)


async def protocol_error(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    peer.client.socket().send(login(uid, "u", "p", protocol=protocol))  # a second CONNECT
    return Got(await peer.gone(), peer.told)


async def ended_by_server(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    peer = make(uid, protocol=protocol)
    assert await peer.connect() == 0
    await world.site.entities.terminals.update(ROOT, uid, {"is_available": 0})
    return Got(await peer.gone(), peer.told)


async def keep_alive_timeout(world: World, make: Callable[..., Peer], uid: str, protocol: int) -> Got:
    """A client that says nothing after its CONNECT; paho would."""
    reader, writer = await asyncio.open_connection(_ADDRESS, world.site.port)
    writer.write(login(uid, f"u-{uid}", f"pin-{uid}"[:16], protocol=protocol))
    said = await asyncio.wait_for(reader.read(-1), 15)
    await close(writer)
    goodbye = said[2 + said[1] :]  # what follows the CONNACK
    return Got(goodbye[2], goodbye.partition(b"\x1f")[2][2:].decode()) if goodbye else Got(None)


@dataclass(frozen=True)
class Way:
    """One way to be refused.

    Attributes:
        codes: what terminals of MQTT 3.1.1 and of 5 get; None: the connection is closed without a code.
        told: the Reason String, a pattern.
        text: what an operator reads, a pattern.
        proven: whether it is known to have been the terminal.
        record: what its record has besides.
        reason: what it is counted as, where that isn't the act's name.
        protocols: which of MQTT 3.1.1 and of 5 can be refused so.
    """

    act: Act
    codes: tuple[int | None, int | None]
    told: str
    text: str
    proven: bool = True
    record: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    protocols: tuple[int, ...] = (4, 5)

    @property
    def name(self) -> str:
        return self.reason or self.act.__name__

    @property
    def id(self) -> str:
        return "-".join(filter(None, (self.act.__name__, self.reason)))


_STRANGER = {"codes": (0x86, 0x86), "told": STRANGERS_ARE_TOLD, "proven": False}
WAYS = (
    Way(wrong_user_name, text="the user name is not", **_STRANGER),
    Way(wrong_pin, text="the user name is right, the password is not", **_STRANGER),
    Way(wrong_signature, text="not a signature", record={"mode": "auto"}, **_STRANGER),
    Way(no_credentials, (0x87, 0x87), STRANGERS_ARE_TOLD, "no user name or no password", proven=False),
    Way(
        clock_off,
        (0x86, 0x86),
        r"your clock is 3 60[234] s behind",
        r"its clock is 3 60[234] s behind",
        record={"mode": "auto"},
    ),
    Way(replayed, (0x86, 0x86), "used before", "not later than that of the last accepted", record={"mode": "auto"}),
    Way(rightly, (0x87, 0x87), "log in by SCRAM", "asks for SCRAM", record={"dixie": 1}, reason="scram_required"),
    Way(
        wrong_pin_by_scram,
        text="the user name is right, the password is not",
        record={"dixie": 1},
        reason="wrong_pin",
        protocols=(5,),
        **_STRANGER,
    ),
    Way(
        unknown_method,
        (None, 0x8C),
        "^methods: SCRAM-SHA-1, SCRAM-SHA-256$",
        "an authentication method that there is none of",
        proven=False,
        reason="scram_method",
        protocols=(5,),
    ),
    Way(
        rightly,
        (0x87, 0x87),
        "terminal is disabled",
        "is disabled",
        record={"is_available": 0},
        reason="terminal_disabled",
    ),
    Way(throttled, (0x88, 0x9F), "try again later", "too many logins have failed", proven=False),
    Way(publish_not_allowed, (0, 0x87), "this topic is not allowed", r"the topic: g/.*/a$", record={"topic": "pub:r"}),
    Way(payload_refused, (0, 0x99), "kept as a reject", "can't be read"),
    Way(subscribe_not_allowed, (0x80, 0x87), "this filter is not allowed", "the filter: g/other/r"),
    Way(topic_filter_invalid, (0x80, 0x8F), "not a topic filter", "no topic filter"),
    Way(subscription_quota, (0x80, 0x97), "as many subscriptions as may be", "as many subscriptions as may be"),
    Way(retained_quota, (0, 0), "^$", "as much is retained as may be: .*g/.*/r/one-more"),
    Way(taken_over, (None, 0x8E), "taken over", "with its client id: from 127.0.0.1"),
    Way(packet_too_large, (None, 0x95), "a packet of 4... bytes", "too large: a packet of"),
    Way(protocol_error, (None, 0x82), "a second CONNECT", "a second CONNECT"),
    Way(ended_by_server, (None, 0x98), "administrative_action: the terminal was disabled", "the terminal was disabled"),
    Way(keep_alive_timeout, (None, 0x8D), "keep-alive timeout", "silent for more than", record={"keep_alive": 1}),
)


CASES = [pytest.param(each, protocol, id=f"{each.id}-{protocol}") for each in WAYS for protocol in each.protocols]


@pytest.mark.parametrize(("way", "protocol"), CASES)
async def test_each_way_to_be_refused(world: World, way: Way, protocol: int) -> None:
    uid = f"{way.id}-{protocol}".replace("_", "-")
    await world.company.terminal(uid, **way.record)
    before = await world.counted(way.name)
    async with peers(world.site) as make:
        got = await way.act(world, make, uid, protocol)
    assert got.code == way.codes[protocol == 5]
    assert re.search(way.told, got.text) if protocol == 5 else not got.text

    frame = await world.frame(uid, way.name)
    assert (frame["address"], frame["count"], frame["proven"]) == (_ADDRESS, 1, way.proven)
    assert (frame["reason_code"], frame["advice"]) == (way.codes[1] or 0, REASONS[way.name].advice)
    assert re.search(way.text, frame["text"])
    assert await world.counted(way.name) == before + 1

    status = await world.rig.call("get_terminal_status", "viewer", terminal_id=uid)
    assert status["refusals"][0] == {name: value for name, value in frame.items() if name != "terminal_id"}

    printed = await world.why(uid)
    assert printed.startswith(f"{uid}: ")
    unproven = "" if way.proven else ", unproven"
    code = f" (0x{frame['reason_code']:02X})" if frame["reason_code"] else ""
    assert f"  {frame['time']}  {way.name}{code}, from {_ADDRESS}{unproven}\n" in printed
    assert frame["text"] in printed
    assert f"to do: {frame['advice']}" in printed


@pytest.mark.parametrize("protocol", [4, 5])
async def test_a_closed_company(world: World, protocol: int) -> None:
    uid, company = f"closed-{protocol}", await world.site.company(f"closing-{protocol}")
    await company.terminal(uid)
    await world.site.entities.companies.update(ROOT, company.actor.company_id, {"is_available": 0})
    before = await world.counted("company_closed")
    async with peers(world.site) as make:
        got = await _connect(make, uid, protocol)
    assert got == Got(0x87, "the terminal's company is closed" if protocol == 5 else "")
    frame = await world.frame(uid, "company_closed", who="root")
    assert (frame["proven"], frame["reason_code"]) == (True, 0x87)
    assert await world.counted("company_closed") == before + 1
    assert "company is closed" in await world.why(uid)


@pytest.mark.parametrize("protocol", [4, 5])
async def test_who_publishes_too_fast_is_told_why_it_is_read_slowly(world: World, protocol: int) -> None:
    """What it sends is taken, later: it gets no code, and the operator learns of it."""
    uid, company = f"fast-{protocol}", await world.site.company(f"paced-{protocol}")
    await company.terminal(uid)
    limits = {"limit_publish_per_second": 2}
    await world.site.entities.companies.update(ROOT, company.actor.company_id, limits)
    before = await world.counted("publish_rate")
    async with peers(world.site) as make:
        peer = make(uid, protocol=protocol)
        assert await peer.connect() == 0
        for number in range(6):
            assert await peer.publish(f"g/{uid}/r", b'{"a":%d}' % number) == 0
        assert peer.told == ""
    frame = await world.frame(uid, "publish_rate", who="root")
    assert (frame["proven"], frame["reason_code"], frame["advice"]) == (True, 0, REASONS["publish_rate"].advice)
    assert re.search("publishes faster than it may.*: more than 2 a second", frame["text"])
    assert await world.counted("publish_rate") >= before + 1
    assert "publish_rate, from 127.0.0.1" in await world.why(uid)


@pytest.mark.parametrize("protocol", [4, 5])
async def test_a_uid_that_nobody_has(world: World, protocol: int) -> None:
    uid, before = f"nobody-{protocol}", await world.counted("unknown_terminal")
    async with peers(world.site) as make:
        assert await _connect(make, uid, protocol) == Got(0x86, STRANGERS_ARE_TOLD if protocol == 5 else "")
    assert await world.counted("unknown_terminal") == before + 1
    assert (await world.frame("", "unknown_terminal", who="root"))["address"] == _ADDRESS
    assert world.frames_of("", "unknown_terminal", who="admin") == []
    assert f"{uid}: no terminal with this uid is registered" in await world.why(uid)


async def test_a_failed_tls_handshake_is_found_by_address(world: World) -> None:
    await world.company.terminal("tls-1")
    async with peers(world.site) as make:
        peer = make("tls-1")
        assert await peer.connect() == 0
        before = await world.counted("tls_failed")
        port = int(world.rig.addresses.mqtt[1].rpartition(":")[2])
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(_shake_hands, port)
        frame = await world.frame("", "tls_failed", who="root")
        assert (frame["address"], frame["reason_code"]) == (_ADDRESS, 0)
        assert "the TLS handshake failed: " in frame["text"]
        assert await world.counted("tls_failed") == before + 1
        status = await world.rig.call("get_terminal_status", "viewer", terminal_id="tls-1")
        assert "tls_failed" in [each["reason"] for each in status["address_refusals"]]
        printed = await world.why("tls-1", "--url", world.rig.addresses.http, "--token", world.rig.tokens["viewer"])
        running = ("--url", world.rig.addresses.http, "--token")
        told = await world.why("--address", _ADDRESS, *running, world.rig.tokens["root"])
        assert told.startswith(f"{_ADDRESS}\n  ")
        assert "tls_failed, from 127.0.0.1" in told
        assert "10403" in await world.why("--address", _ADDRESS, *running, world.rig.tokens["admin"])
    at_address = await world.why("--address", _ADDRESS, "--data", str(world.folder))
    assert at_address.startswith(f"{_ADDRESS}\n  ")
    assert "tls_failed, from 127.0.0.1" in at_address
    assert "unproven" not in at_address
    assert printed.startswith("tls-1: online since ")
    assert "at its addresses, of whoever it was:\n" in printed
    assert "tls_failed, from 127.0.0.1" in printed


def _shake_hands(port: int) -> None:
    """A client that trusts another authority."""
    with socket.create_connection((_ADDRESS, port)) as raw:
        ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")


async def test_repeated_ones_are_counted_in_one_entry(world: World) -> None:
    await world.company.terminal("often-1", topic="pub:r")
    async with peers(world.site) as make:
        peer = make("often-1")
        assert await peer.connect() == 0
        for _ in range(40):
            assert await peer.publish("g/often-1/a", b"{}") == 0x87
    frame = await world.frame("often-1", "publish_not_allowed", count=40)
    assert len(world.frames_of("often-1", "publish_not_allowed")) < 10
    assert f", 40 times since {frame['first_time']}" in await world.why("often-1")


async def test_a_client_that_wants_no_reasons_gets_codes(world: World) -> None:
    await world.company.terminal("curt-1", topic="pub:r")
    async with peers(world.site) as make:
        peer = make("curt-1")
        assert await peer.connect(problem_information=False) == 0
        assert (await peer.publish("g/curt-1/a", b"{}"), peer.told) == (0x87, "")
        assert (await peer.subscribe("#"), peer.told) == (0x87, "")


async def test_milliseconds_let_a_terminal_log_in_twice_in_a_second(world: World) -> None:
    await world.company.terminal("fast-1", mode="auto")
    milliseconds = unix_s() * 1_000
    async with peers(world.site) as make:
        for password_ms, code in (
            (milliseconds, 0),
            (milliseconds + 1, 0),
            (milliseconds + 1, 0x86),
            (milliseconds, 0x86),
        ):
            password = auto_password(uid="fast-1", pin="pin-fast-1", unix_s=password_ms)
            assert (await _connect(make, "fast-1", 5, password=password)).code == code


async def test_the_other_company_hears_and_reads_nothing(world: World) -> None:
    await world.company.terminal("private-1")
    async with peers(world.site) as make:
        await _connect(make, "private-1", 5, password="guess")
    await world.frame("private-1", "wrong_pin")
    assert world.frames["stranger"] == []
    answer = await world.rig.ask("get_terminal_status", "stranger", terminal_id="private-1")
    assert answer["code"] == 10404


async def test_the_platform_that_runs_on_the_folder_says_it_at_once(world: World) -> None:
    """Not five seconds later, and with what only it knows."""
    await world.company.terminal("now-1")
    async with peers(world.site) as make:
        await _connect(make, "now-1", 5, password="guess")
        assert "wrong_pin" in await world.why("now-1")
        peer = make("now-1")
        assert await peer.connect() == 0
        assert "now-1: online since " in await world.why("now-1")


@pytest.mark.parametrize("is_hung", [False, True])
async def test_where_none_runs_the_folder_says_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_hung: bool
) -> None:
    """A copy of the folder says the same: nothing but the file is needed. Nor is a platform that stands still."""
    uid = f"lasting-{is_hung:d}"
    await world.company.terminal(uid)
    async with peers(world.site) as make:
        await _connect(make, uid, 5, password="guess")
    await world.site.platform.messaging.refusals.write()
    shutil.copytree(world.folder, tmp_path / "copy", ignore=shutil.ignore_patterns(SOCKET))
    monkeypatch.setattr("terrazzo.cli.terminal._PATIENCE_S", 0.2)
    with socket.socket(socket.AF_UNIX) as hung:
        if is_hung:
            with at_folder(tmp_path / "copy") as address:
                hung.bind(address)
            hung.listen()
        arguments = ["terminal", "why", uid, "--json", "--data", str(tmp_path / "copy")]
        printed = await asyncio.to_thread(CliRunner().invoke, make_app(), arguments)
    assert [each["reason"] for each in json.loads(printed.stdout)["refusals"]] == ["wrong_pin"]
    assert ("does not answer; read in its data folder" in printed.stderr) is is_hung


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected a terminal's UID, or --address"),
        (("x", "--address", "10.0.0.1"), "expected a terminal's UID, or --address"),
        (("--address", "10.0.0.1", "--token", "t", "--url", "http://127.0.0.1:1"), "127.0.0.1"),
        (("x", "--token", "t", "--url", "http://127.0.0.1:9"), "--url: "),
    ],
)
async def test_what_does_not_go_together_is_said(world: World, arguments: tuple[str, ...], said: str) -> None:
    result = await asyncio.to_thread(CliRunner().invoke, make_app(), ["terminal", "why", *arguments])
    assert said in str(result.exception)


async def test_a_folder_that_is_not_there_is_said(world: World, tmp_path: Path) -> None:
    assert "there is no folder" in await world.why("x", "--data", str(tmp_path / "none"))
