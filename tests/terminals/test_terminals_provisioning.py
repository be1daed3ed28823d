"""Terminals come in by a claim key: whatever is cut, none twice and none left over; no key opens what isn't its own."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select

from mqtt_bytes import field, frame
from platform_site import ROOT, Company, Site, running_site
from terrazzo.database.entity import METADATA
from terrazzo.database.tables.registry import AUDIT
from terrazzo.domain.claims.claim_key import hash_of
from terrazzo.terminals import provisioning
from waiting import until

PLAIN = {"mqtt": {"provision_plain": True}}
WRONG, NOT_AUTHORIZED, BUSY = 0x86, 0x87, 0x89
STEPS = ("connect", "connack", "subscribe", "suback", "publish", "puback", "login", "logged in")
"""What was sent or received last when the line is cut."""


class Cut(Exception):
    """The line was cut on purpose."""


class Firmware:
    """A terminal that knows its uid and a claim key, written from docs/terminals.md, over a raw socket."""

    def __init__(self, port: int, uid: str, key: str, *, protocol: int = 5) -> None:
        self._port, self.uid, self._key, self._protocol = port, uid, key, protocol
        self.credentials: dict[str, str] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.refused = 0

    async def come_in(self, cut_at: str = "") -> None:
        """Claims and logs in, as far as ``cut_at``; stays connected."""
        if self.credentials is None:
            self.credentials = await self.claim(cut_at)
        await self.connect(self.credentials["Username"], self.credentials["Pin"], cut_at, ("login", "logged in"))

    async def claim(self, cut_at: str = "") -> dict[str, str]:
        """Asks for credentials, and hangs up."""
        await self.connect("claim", self._key, cut_at, ("connect", "connack"))
        topic = f"p2p/{self.uid}"
        properties = b"\0" if self._protocol == 5 else b""
        self._send(frame(0x82, b"\0\1", properties, field(topic) + b"\1"), cut_at, "subscribe")
        await self._receive(0x90, cut_at, "suback")
        body = await self._receive(0x32, cut_at, "publish")
        length = int.from_bytes(body[:2], "big")
        assert body[2 : 2 + length].decode() == topic
        packet_id, rest = body[2 + length : 4 + length], body[4 + length :]
        if self._protocol == 5:
            assert rest[0] == 0, "no properties: it is no command"
            rest = rest[1:]
        self._send(frame(0x40, packet_id), cut_at, "puback")
        self.hang_up()
        told: dict[str, str] = json.loads(rest)
        assert told.pop("Act") == "Provision"
        return told

    async def connect(
        self,
        username: str,
        password: str,
        cut_at: str = "",
        steps: tuple[str, str] = ("-", "-"),
        *,
        flags: int = 0xC2,
        properties: bytes = b"\0",
    ) -> None:
        """Logs in; refused is a ``PermissionError``."""
        self.hang_up()
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = field("MQTT") + bytes((self._protocol, flags)) + b"\0\0" + (properties if self._protocol == 5 else b"")
        self._send(frame(0x10, head, field(self.uid), field(username), field(password)), cut_at, steps[0])
        body = await self._receive(0x20, cut_at, steps[1])
        if body[1]:
            self.refused = body[1]
            self.hang_up()
            raise PermissionError(f"refused: 0x{body[1]:02x} {body[2:]!r}")

    def _send(self, packet: bytes, cut_at: str = "", step: str = "-") -> None:
        assert self._writer is not None
        self._writer.write(packet)
        self._cut(is_due=cut_at == step)

    async def subscribe(self, *filters: str, qos: int = 1) -> bytes:
        """The reason codes of a SUBACK of MQTT 5."""
        wishes = (field(each) + bytes((qos,)) for each in filters)
        self._send(frame(0x82, b"\0\1\0", *wishes))
        return (await self._receive(0x90))[-len(filters) :]  # after a Reason String, where something is refused

    async def publish(self, topic: str) -> int:
        """The reason code of a PUBACK of MQTT 5."""
        self._send(frame(0x32, field(topic), b"\0\7\0", b"{}"))
        return (await self._receive(0x40))[2]

    async def _receive(self, first: int, cut_at: str = "", step: str = "-") -> bytes:
        async with asyncio.timeout(10):
            head = await self._reader.readexactly(2)
            size = head[1]
            if size > 127:
                size += ((await self._reader.readexactly(1))[0] - 1) * 128
            body = await self._reader.readexactly(size)
        assert head[0] == first, (hex(head[0]), body)
        self._cut(is_due=cut_at == step)
        return body

    def _cut(self, *, is_due: bool) -> None:
        if is_due:
            self.hang_up()
            raise Cut

    def hang_up(self) -> None:
        """Without a DISCONNECT."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """One platform for all tests of the module; each has companies of its own."""
    async with running_site(tmp_path_factory.mktemp("site"), **PLAIN) as opened:
        yield opened


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def new_key(company: Company, key: str, **values: Any) -> Any:
    """A claim key; its row."""
    made = {"name": "site", "config_id": company.config, "uses": 5, **values}
    return await company.site.entities.claim_keys.create_hashed(company.actor, made, hash_of(key.encode()))


async def used(company: Company, key: Any) -> int:
    return int((await company.site.entities.claim_keys.item(company.actor, key["uid"]))["used"])


async def uids(company: Company) -> list[str]:
    return [row["uid"] for row in (await company.site.entities.terminals.page(company.actor)).rows]


def promises(company: Company) -> int:
    of_uids = company.site.platform.terminals.provisioning._promises.values()
    return sum(company.actor.company_id in each for each in of_uids)


def is_open(site: Site, uid: str) -> bool:
    return uid in site.platform.terminals.provisioning._open


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("step", STEPS)
async def test_cut_at_any_step_none_twice_and_none_left_over(site: Site, protocol: int, step: str) -> None:
    company = await site.company(f"cut {protocol} {step}")
    key = await new_key(company, f"key {protocol} {step}", uses=1)
    uid = f"{step.replace(' ', '-')}-{protocol}"
    firmware = Firmware(site.port, uid, f"key {protocol} {step}", protocol=protocol)
    for _ in range(2):
        with pytest.raises(Cut):
            await firmware.come_in(step)
    await firmware.come_in()
    assert await uids(company) == [uid]
    assert await used(company, key) == 1
    assert promises(company) == 0
    await until(lambda: not is_open(site, uid))
    assert site.presence.presence(uid).online
    firmware.hang_up()
    await until(lambda: not site.presence.presence(uid).online)
    await firmware.come_in()  # the pin is good for good
    firmware.hang_up()


@pytest.mark.parametrize("protocol", [4, 5])
async def test_many_at_once(site: Site, protocol: int) -> None:
    company = await site.company(f"many {protocol}")
    key = await new_key(company, f"many {protocol}", uses=60, prefix="p")
    fleet = [
        Firmware(site.port, f"p{protocol}-{number}", f"many {protocol}", protocol=protocol) for number in range(60)
    ]

    async def bring_in(number: int, firmware: Firmware) -> None:
        try:
            await firmware.come_in(STEPS[number % len(STEPS)])
        except Cut:
            await firmware.come_in()

    await asyncio.gather(*(bring_in(number, firmware) for number, firmware in enumerate(fleet)))
    rows = await site.entities.terminals.page(company.actor, page_size=100)
    assert rows.total == 60
    assert {row["uid"]: row["pin"] for row in rows.rows} == {
        each.uid: each.credentials["Pin"] for each in fleet if each.credentials
    }
    assert (await used(company, key), promises(company)) == (60, 0)
    for firmware in fleet:
        firmware.hang_up()
    late = Firmware(site.port, f"p{protocol}-late", f"many {protocol}", protocol=protocol)
    with pytest.raises(PermissionError):
        await late.come_in()
    assert late.refused == (NOT_AUTHORIZED if protocol == 5 else 5)


async def test_the_record_is_what_the_key_says(site: Site) -> None:
    company = await site.company("fixed")
    await new_key(company, "fixed", type="Adapter-X", mode="auto", access="pub", topic="pub:r,n")
    firmware = Firmware(site.port, "u" * 40, "fixed")
    firmware.credentials = await firmware.claim()
    assert firmware.credentials == {"Username": "u" * 32, "Pin": firmware.credentials["Pin"], "Mode": "auto"}
    assert len(firmware.credentials["Pin"]) == 16
    assert await uids(company) == [], "a claim makes no record"
    with pytest.raises(PermissionError):
        await firmware.come_in()  # its mode is auto, and a plain pin is no password then
    seconds = int(time.time())
    digest = hmac.new(firmware.credentials["Pin"].encode(), f"{firmware.uid}.{seconds}".encode(), hashlib.sha256)
    await firmware.connect("u" * 32, f"{seconds}.{digest.hexdigest()}")
    [row] = (await site.entities.terminals.page(company.actor)).rows
    shown = {name: row[name] for name in ("name", "type", "mode", "access", "topic", "config_uid", "is_available")}
    assert shown == {
        "name": "u" * 40,
        "type": "Adapter-X",
        "mode": "auto",
        "access": "pub",
        "topic": "pub:r,n",
        "config_uid": company.config,
        "is_available": 1,
    }
    firmware.hang_up()


async def test_a_new_pin_each_time_until_the_first_login_then_never(site: Site) -> None:
    company = await site.company("again")
    await new_key(company, "again")
    firmware = Firmware(site.port, "again-1", "again")
    first = await firmware.claim()
    second = await firmware.claim()
    assert first["Pin"] != second["Pin"]
    firmware.credentials = first
    with pytest.raises(PermissionError):
        await firmware.come_in()
    firmware.credentials = second
    await firmware.come_in()
    firmware.hang_up()
    with pytest.raises(PermissionError):
        await firmware.claim()
    assert firmware.refused == WRONG, "as anybody is told of any terminal"


async def test_what_nobody_uses_expires(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    company = await site.company("expires")
    key = await new_key(company, "expires", uses=1)
    part = site.platform.terminals.provisioning
    firmware = Firmware(site.port, "expires-1", "expires")
    firmware.credentials = await firmware.claim()
    other = Firmware(site.port, "expires-2", "expires")
    with pytest.raises(PermissionError, match="used up"):
        await other.come_in()
    now = part._clock()
    monkeypatch.setattr(part, "_clock", lambda: now + 601 * 1_000_000)
    with pytest.raises(PermissionError):
        await firmware.come_in()
    await other.come_in()  # the use is free again
    assert (await uids(company), await used(company, key), promises(company)) == (["expires-2"], 1, 0)
    other.hang_up()


async def test_it_may_do_nothing_but_be_told(site: Site) -> None:
    company = await site.company("nothing")
    await new_key(company, "nothing")
    await company.terminal("neighbour")
    firmware = Firmware(site.port, "nothing-1", "nothing")
    await firmware.connect("claim", "nothing")
    filters = ["#", "g/nothing-1/#", "p2p/#", "p2p/neighbour", "$share/a/p2p/nothing-1", "p2p/nothing-1"]
    assert await firmware.subscribe(*filters) == bytes([NOT_AUTHORIZED] * 5 + [1])
    assert b"p2p/nothing-1" in await firmware._receive(0x32)
    for topic in ("g/nothing-1/r", "g/r", "p2p/neighbour"):
        assert await firmware.publish(topic) == NOT_AUTHORIZED
    assert not site.presence.presence("nothing-1").online
    assert await uids(company) == ["neighbour"]
    firmware.hang_up()
    await until(lambda: not is_open(site, "nothing-1"))


async def test_at_qos_0_nothing_is_told_and_nothing_promised(site: Site) -> None:
    company = await site.company("careless")
    await new_key(company, "careless")
    firmware = Firmware(site.port, "careless-1", "careless")
    await firmware.connect("claim", "careless")
    assert await firmware.subscribe("p2p/careless-1", qos=0) == b"\0"
    assert await firmware.publish("g/r") == NOT_AUTHORIZED, "the next packet: there was none before"
    assert promises(company) == 0
    firmware.hang_up()


async def test_the_answer_is_kept_nowhere(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    company = await site.company("nowhere")
    await new_key(company, "nowhere")
    await company.terminal("listener", topic="pub:r;sub:p2p/#")
    heard: list[Any] = []
    site.broker.subscribe_local("a bridge", {"#": 2}, lambda message: heard.append(message) is None)
    with caplog.at_level(logging.DEBUG):
        credentials = await Firmware(site.port, "nowhere-1", "nowhere").claim()
    assert heard == []
    assert site.broker.retained.count == 0
    await until(lambda: "nowhere-1" not in site.broker.sessions)
    async with site.entities.terminals._database.reading() as connection:
        for table in METADATA.sorted_tables:
            rows = (await connection.execute(select(table))).all()
            assert credentials["Pin"] not in str(rows), table.name
    folder = site.platform.config.data_dir
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert [each for each in files if b"nowhere" in each.read_bytes()], "what is kept is found so"
    assert [each for each in files if credentials["Pin"].encode() in each.read_bytes()] == []
    assert credentials["Pin"] not in caplog.text


async def test_company_as_key_gets_nothing_of_bs(site: Site) -> None:
    one, other = await site.company("A"), await site.company("B")
    key, _ = await new_key(one, "of A", uses=10), await new_key(other, "of B", uses=10)
    await other.terminal("b-registered")
    taken = Firmware(site.port, "b-registered", "of A")
    with pytest.raises(PermissionError):
        await taken.come_in()
    assert taken.refused == WRONG
    waiting, intruder = Firmware(site.port, "b-waits", "of B"), Firmware(site.port, "b-waits", "of A")
    waiting.credentials = await waiting.claim()
    intruder.credentials = await intruder.claim()
    await waiting.come_in()
    with pytest.raises(PermissionError):
        await intruder.come_in()
    assert (await uids(one), await uids(other)) == ([], ["b-registered", "b-waits"])
    assert (await used(one, key), promises(one), promises(other)) == (0, 0, 0)
    waiting.hang_up()


async def test_nobody_takes_the_line_of_another_companys_claim(site: Site) -> None:
    one, other = await site.company("line A"), await site.company("line B")
    await new_key(one, "line of A")
    await new_key(other, "line of B")
    first, second = Firmware(site.port, "line", "line of A"), Firmware(site.port, "line", "line of B")
    await first.connect("claim", "line of A")
    with pytest.raises(PermissionError, match="somebody else"):
        await second.claim()
    assert is_open(site, "line")
    first.hang_up()
    await until(lambda: not is_open(site, "line"))
    await second.come_in()
    second.hang_up()


async def test_why_a_claim_is_refused_is_told_to_who_has_the_key(site: Site) -> None:
    company = await site.company("why")
    entities = site.entities.claim_keys
    await new_key(company, "prefix", prefix="pump-")
    await new_key(company, "late", expires=1)
    off = await new_key(company, "off")
    await entities.update(company.actor, off["uid"], {"is_available": 0})
    gone = await new_key(company, "gone")
    await entities.delete(company.actor, gone["uid"])
    for key, uid, reason in [
        ("prefix", "fan-1", "for other uids"),
        ("prefix", "pump-" + "x" * 64, "more than 64"),
        ("prefix", "pump-/", "contains '/'"),
        ("late", "pump-1", "expired"),
        ("off", "pump-1", "disabled"),
    ]:
        firmware = Firmware(site.port, uid, key)
        with pytest.raises(PermissionError, match=reason):
            await firmware.come_in()
        assert firmware.refused == NOT_AUTHORIZED
    for key in ("gone", "no key at all", hash_of(b"prefix")):
        firmware = Firmware(site.port, "pump-1", key)
        with pytest.raises(PermissionError):
            await firmware.come_in()
        assert firmware.refused == WRONG
    assert await uids(company) == []


async def test_a_closed_company_takes_nobody_in(site: Site) -> None:
    company = await site.company("closed")
    await new_key(company, "closed")
    firmware = Firmware(site.port, "closed-1", "closed")
    firmware.credentials = await firmware.claim()
    await site.entities.companies.update(ROOT, company.actor.company_id, {"is_available": 0})
    with pytest.raises(PermissionError):
        await Firmware(site.port, "closed-2", "closed").come_in()
    with pytest.raises(PermissionError):
        await firmware.come_in()
    assert await uids(company) == [], "a promise of before makes no record either"
    await site.entities.companies.update(ROOT, company.actor.company_id, {"is_available": 1})
    await firmware.come_in()
    firmware.hang_up()


async def test_who_is_claiming_when_the_company_is_closed_is_ended_and_told_nothing(site: Site) -> None:
    company = await site.company("closing")
    await new_key(company, "closing")
    firmware = Firmware(site.port, "closing-1", "closing")
    await firmware.connect("claim", "closing")
    assert is_open(site, "closing-1")
    await site.entities.companies.update(ROOT, company.actor.company_id, {"is_available": 0})
    await until(lambda: not is_open(site, "closing-1"), "it is ended")
    assert promises(company) == 0
    firmware.hang_up()


async def test_who_is_registered_meanwhile_is_not_claimed_any_more(site: Site) -> None:
    company = await site.company("meanwhile")
    key = await new_key(company, "meanwhile", uses=1)
    firmware = Firmware(site.port, "meanwhile-1", "meanwhile")
    await firmware.connect("claim", "meanwhile")
    await company.terminal("meanwhile-1")
    await until(lambda: not is_open(site, "meanwhile-1"))
    firmware.credentials = {"Username": "meanwhile-1", "Pin": "x"}
    with pytest.raises(PermissionError):
        await firmware.come_in()
    assert (await used(company, key), promises(company)) == (0, 0)


async def test_a_claim_needs_a_clean_session_and_ends_by_itself(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    company = await site.company("clean")
    await new_key(company, "clean")
    for wish in ({"flags": 0xC0}, {"properties": b"\5\x11\0\0\0\5"}):
        firmware = Firmware(site.port, "clean-1", "clean")
        with pytest.raises(PermissionError, match="claim with a clean session"):
            await firmware.connect("claim", "clean", **wish)
    monkeypatch.setattr(provisioning, "CLAIM_S", 0.05)
    firmware = Firmware(site.port, "clean-2", "clean")
    await firmware.connect("claim", "clean")
    await until(lambda: not is_open(site, "clean-2"))
    assert await asyncio.wait_for(firmware._reader.read(), 10) != b"never", "the server has closed it"
    firmware.hang_up()


async def test_who_claims_is_seen_by_the_company_whose_key_it_is(site: Site) -> None:
    one, other = await site.company("seen A"), await site.company("seen B")
    await new_key(one, "seen", prefix="other")
    firmware = Firmware(site.port, "seen-1", "seen")
    with pytest.raises(PermissionError):
        await firmware.come_in()
    found = site.platform.terminals.unknown.found
    assert [each.uid for each in found(one.actor)] == ["seen-1"]
    assert found(other.actor) == []


async def test_the_audit_log_says_by_which_key(site: Site) -> None:
    company = await site.company("audited")
    key = await new_key(company, "audited")
    firmware = Firmware(site.port, "audited-1", "audited")
    await firmware.come_in()
    firmware.hang_up()
    async with site.entities.terminals._database.reading() as connection:
        query = select(AUDIT).where(AUDIT.c.company_id == company.actor.company_id, AUDIT.c.entity == "terminal")
        [entry] = (await connection.execute(query)).mappings().all()
    assert (entry["action"], entry["uid"], entry["user_id"]) == ("create", "audited-1", 0)
    assert (entry["username"], entry["address"]) == (f"claim key {key['uid']}", "127.0.0.1")
    assert firmware.credentials is not None
    assert firmware.credentials["Pin"] not in str(dict(entry))


async def test_a_quota_that_is_full_is_said_and_leaves_nothing(tmp_path: Any) -> None:
    async with running_site(tmp_path, **PLAIN, limits={"company_records": 1}) as small:
        company = await small.company("small")
        key = await new_key(company, "small")
        await company.terminal("only")
        firmware = Firmware(small.port, "more", "small")
        with pytest.raises(PermissionError, match="company_records"):
            await firmware.come_in()
        assert firmware.refused == BUSY
        assert (await uids(company), await used(company, key)) == (["only"], 0)


async def test_plain_connections_are_refused_unless_the_configuration_allows_them(tmp_path: Any) -> None:
    async with running_site(tmp_path) as strict:
        company = await strict.company("strict")
        await new_key(company, "strict")
        firmware = Firmware(strict.port, "t1", "strict")
        with pytest.raises(PermissionError, match="over TLS"):
            await firmware.come_in()
        assert await uids(company) == []


async def test_after_a_restart_it_claims_again(tmp_path: Any) -> None:
    async with running_site(tmp_path, **PLAIN) as before:
        company = await before.company("restarted")
        key = await new_key(company, "restarted")
        firmware = Firmware(before.port, "restarted-1", "restarted")
        firmware.credentials = await firmware.claim()
    async with running_site(tmp_path, **PLAIN) as after:
        again = Firmware(after.port, "restarted-1", "restarted")
        again.credentials = firmware.credentials
        with pytest.raises(PermissionError):
            await again.come_in()
        again.credentials = None
        await again.come_in()
        again.hang_up()
        assert (await after.entities.claim_keys.item(ROOT, key["uid"]))["used"] == 1
