"""Reports on a real broker into a real store: acknowledged means stored, rejects are answered, reading pauses."""

from __future__ import annotations

import asyncio
import json

import msgpack
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from own_platform import Ports, store_through
from platform_site import peers, running_site, until
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ports.store import Record, StoreUnavailable
from terrazzo_simulators.sealing import Seal

INVALID = 0x99
PUBREL_UNKNOWN = 0x92  # paho goes on with PUBREL after a PUBREC that refused; that is how it shows


class Gated:
    """The real store behind a gate that tests shut."""

    def __init__(self, store) -> None:
        self._store = store
        self.open = asyncio.Event()
        self.open.set()
        self.is_away = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, records, **notes) -> None:
        await self.open.wait()
        if self.is_away:
            raise StoreUnavailable("away")
        await self._store.append(records, **notes)


@pytest.fixture
async def site(tmp_path):
    limits = IngestLimits(messages=2_000, group_messages=500)
    ports = Ports(open_store=store_through(Gated), intake_limits=limits)
    async with running_site(tmp_path, ports=ports) as running:
        yield running
        running.store.open.set()


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
async def test_what_is_acknowledged_is_stored(site, company, peer, protocol, qos):
    await company.terminal("t1")
    one = peer("t1", protocol=protocol)
    assert await one.connect() == 0
    for number in range(5):
        assert await one.publish("g/r", json.dumps({"n": number}).encode(), qos) == 0
        assert json.loads((await site.grid("g/t1/r"))[-1].body) == {"n": number}
    packed = msgpack.packb({"n": 5, "Time": "2026-01-01T00:00:00Z"})
    assert await one.publish("g/t1/r", packed, qos) == 0
    assert (await site.grid("g/t1/r"))[0] == Record("g/t1/r", 1_767_225_600_000_000, packed)


async def test_qos_0_is_stored_too(site, company, peer):
    await company.terminal("t1")
    one = peer("t1")
    assert await one.connect() == 0
    await one.publish("g/r", b'{"n":0}', 0)
    assert await one.publish("g/r", b'{"n":1}') == 0
    assert [record.body for record in await site.grid("g/t1/r")] == [b'{"n":0}', b'{"n":1}']


@pytest.mark.parametrize("qos", [1, 2])
async def test_rejects_are_answered_and_kept(site, company, peer, qos):
    await company.terminal("t1")
    one, old = peer("t1"), peer("t1", protocol=4)
    assert await one.connect() == 0
    bad = [b"{oops", b'{"a":' * 100 + b"1" + b"}" * 100, b'{"a":NaN}', b"", b"[1]", b'{"Time":"2099-01-01T00:00:00Z"}']
    for payload in bad:
        assert await one.publish("g/r", payload, qos) == (INVALID if qos == 1 else PUBREL_UNKNOWN)
    assert await one.publish("g/r", b'{"a":"' + b"x" * 2**20 + b'"}', 0) == 0  # beyond the packet limit: cut off
    await one.gone()
    assert await old.connect() == 0
    assert await old.publish("g/r", b"\xff", qos) == 0  # 3.1.1 cannot be told; the reject is kept all the same
    assert await old.publish("g/r", b'{"a":1}', qos) == 0
    kept = [msgspec.msgpack.decode(record.body) for record in await site.grid("x/t1")]
    assert [reject["payload"] for reject in kept] == [*bad, b"\xff"]
    assert all(reject["topic"] == "g/t1/r" and reject["reason"] for reject in kept)
    assert [record.body for record in await site.grid("g/t1/r")] == [b'{"a":1}']


async def test_sealed_reports_and_commands(site, company, peer):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    await company.terminal("t1", encryption=1)
    await company.terminal("t2", encryption=1, rsa_privatekey=private)
    for uid, more in (("t1", {}), ("t2", {"rsa_publickey": public})):
        seal, one = Seal(pin=f"pin-{uid}", uid=uid, **more), peer(uid)
        assert await one.connect() == 0
        assert await one.publish("g/r", seal.seal(b'{"a":1}')) == 0
        assert await one.publish("g/r", b'{"a":2}') == INVALID
        assert [record.body for record in await site.grid(f"g/{uid}/r")] == [b'{"a":1}']
        assert await one.subscribe(f"p2p/{uid}") == 1
        await site.commands.submit(company.actor, uid, "Reboot", "")
        assert seal.open((await one.received(1))[0].payload) == b'{"Act":"Reboot"}'


@pytest.mark.long_turns("it sends 10,000 reports in one turn itself")
async def test_reading_pauses_when_the_store_is_behind_and_nothing_is_lost(site, company, peer):
    await company.terminal("t1")
    one = peer("t1", protocol=4)
    one.client.max_inflight_messages_set(0)
    assert await one.connect() == 0
    site.store.open.clear()
    acknowledged = [one.send("g/r", json.dumps({"n": number}).encode()) for number in range(10_000)]
    await until(lambda: site.broker.intake_paused, "reading pauses")
    held = site.ingest.stats.backlog
    assert 2_000 <= held < 10_000
    assert not any(done() for done in acknowledged)
    site.store.open.set()
    await until(lambda: all(done() for done in acknowledged), "all are acknowledged")
    assert [json.loads(record.body)["n"] for record in await site.grid("g/t1/r")] == list(range(10_000))
    assert not site.broker.intake_paused
    assert site.ingest.stats.backlog == 0


async def test_a_store_that_is_away_holds_acknowledgements_back(site, company, peer):
    await company.terminal("t1")
    one = peer("t1")
    assert await one.connect() == 0
    site.store.is_away = True
    done = one.send("g/r", b'{"a":1}')
    await until(lambda: site.ingest.stats.store_failures >= 2)
    assert not done()
    assert site.broker.intake_paused
    assert not site.ingest.is_healthy
    site.store.is_away = False
    await until(done)
    await until(lambda: not site.broker.intake_paused)
    assert len(await site.grid("g/t1/r")) == 1


async def test_a_will_is_a_report(site, company, peer):
    await company.terminal("t1")
    one = peer("t1", protocol=4)
    one.client.will_set("g/a", b'{"lost":true}', 1)
    assert await one.connect() == 0
    await one.cut()
    await until(lambda: site.ingest.stats.messages == 1)
    assert [record.body for record in await site.grid("g/t1/a")] == [b'{"lost":true}']


async def test_reports_survive_a_restart(tmp_path):
    async with running_site(tmp_path) as site, peers(site) as peer:
        await (await site.company()).terminal("t1")
        one = peer("t1")
        assert await one.connect() == 0
        assert await one.publish("g/r", b'{"a":1}') == 0
    async with running_site(tmp_path) as site:
        assert [record.body for record in await site.grid("g/t1/r")] == [b'{"a":1}']
