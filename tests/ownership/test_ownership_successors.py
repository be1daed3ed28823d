"""The next owner of a uid begins anew: nothing of the former one counts, and whoever is closed or deleted is out."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from platform_site import ROOT, Company, Site, peers, running_site
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.errors import BadParameter
from terrazzo.metadata.entities import Entities
from waiting import until

ACCEPTED, BAD_CREDENTIALS, NOT_AUTHORIZED, ADMINISTRATIVE_ACTION = 0, 0x86, 0x87, 0x98
PIN = "pin-meter"


def signed(uid: str, time_ms: int) -> str:
    """The password of a terminal that logs in by ``auto``, of this time."""
    digest = hmac.new(PIN.encode(), f"{uid}.{time_ms}".encode(), hashlib.sha256)
    return f"{time_ms}.{digest.hexdigest()}"


@asynccontextmanager
async def another_process(folder: Path) -> AsyncIterator[Entities]:
    """The records as a second platform on the same database has them."""
    database = await Database.open("", data_dir=folder)
    try:
        yield Entities.open(database, Registry(), Secrets.open(folder))
    finally:
        await database.close()


async def test_a_replay_is_known_of_the_terminal_that_is_there_and_of_no_former_one(tmp_path: Path) -> None:
    """What is kept in ``auto-logins`` outlives the record that it is about, and says nothing of the next one."""
    now_ms = time.time_ns() // 1_000_000
    later, sooner = now_ms + 60_000, now_ms
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter", mode="auto")
        assert await make("meter").connect(password=signed("meter", later)) == ACCEPTED
        assert await make("meter").connect(password=signed("meter", sooner)) == BAD_CREDENTIALS
        await site.entities.terminals.delete(theirs.actor, "meter")
        await ours.terminal("meter", mode="auto")
    assert f"{later} meter\n" in (tmp_path / "auto-logins").read_text()
    async with running_site(tmp_path) as site, peers(site) as make:
        assert await make("meter").connect(password=signed("meter", sooner)) == ACCEPTED
        assert await make("meter").connect(password=signed("meter", sooner)) == BAD_CREDENTIALS
    async with running_site(tmp_path) as site, peers(site) as make:
        assert await make("meter").connect(password=signed("meter", sooner)) == BAD_CREDENTIALS
        assert await make("meter").connect(password=signed("meter", sooner + 1)) == ACCEPTED


async def test_nothing_of_a_former_terminal_shapes_the_next_one_after_a_restart(tmp_path: Path) -> None:
    """Where it came from, when it was seen, its first login and why it was refused are the former record's."""
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        former = make("meter")
        await former.connect()
        await former.publish("g/r", b'{"n": 1}')
        await former.cut()
        assert await make("meter").connect(password="wrong") == BAD_CREDENTIALS
        await until(lambda: (tmp_path / "last-seen").read_text(), "noted")
        await site.entities.terminals.delete(theirs.actor, "meter")
        made = await ours.terminal("meter")
    async with running_site(tmp_path) as site:
        assert site.presence.last_seen_us("meter") is None
        row = await site.entities.terminals.item(ours.actor, "meter")
        assert (row["id"], row["activated"]) == (made["id"], None)
        assert site.platform.messaging.refusals.of_terminal(made["id"]) == []


async def test_a_topic_that_two_owners_retain_one_after_the_other_is_the_latters(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        for company, name in ((ours, "ours"), (theirs, "theirs")):
            await company.terminal(f"{name}-reader", topic="pub:r;sub:#")
        for company, text in ((theirs, b'{"n": "first"}'), (ours, b'{"n": "second"}')):
            await company.terminal("meter")
            meter = make("meter")
            await meter.connect()
            assert await meter.publish("g/meter/r", text, retain=True) == 0
            if company is theirs:
                await site.entities.terminals.delete(theirs.actor, "meter")
        await until(lambda: site.broker.retained.count == 1, "the former one has ended")
    for _ in range(2):  # as it is on disk, twice
        async with running_site(tmp_path) as site, peers(site) as make:
            for name, expected in (("ours", [b'{"n": "second"}']), ("theirs", [])):
                reader = make(f"{name}-reader")
                await reader.connect()
                await reader.subscribe("g/#")
                await reader.publish("g/r", b'{"end": 1}')
                await until(lambda: any(b"end" in each.payload for each in reader.messages), "its own")  # noqa: B023
                assert [each.payload for each in reader.messages if b"end" not in each.payload] == expected


async def test_a_terminal_that_another_process_deletes_is_ended_and_publishes_nothing_more(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make, another_process(tmp_path) as elsewhere:
        theirs = await site.company("theirs")
        await theirs.terminal("meter")
        meter = make("meter")
        await meter.connect()
        assert await meter.publish("g/r", b'{"n": 1}', retain=True) == 0
        await elsewhere.terminals.delete(theirs.actor, "meter")
        sent = 0
        while not meter.is_down.is_set():  # as fast as it can, up to the end
            meter.send("g/r", b'{"n": 2}', qos=0)
            sent += 1
            await until(lambda: not meter.client.want_write() or meter.is_down.is_set(), "written")
        assert await meter.gone() == ADMINISTRATIVE_ACTION
        assert sent
        assert site.platform.metadata.registry.terminal("meter") is None
        assert await site.ingest.is_idle(10)  # at QoS 0 its last ones may be under way to the store still
        before = len(await site.grid("g/meter/r"))
        assert await make("meter").connect() == BAD_CREDENTIALS
        await until(lambda: site.broker.retained.count == 0, "what it retained has ended")
        assert len(await site.grid("g/meter/r")) == before


async def test_a_uid_that_another_process_gives_to_another_company_is_not_the_connections(tmp_path: Path) -> None:
    """Deleted and registered anew between two looks at the table of changes."""
    async with running_site(tmp_path) as site, peers(site) as make, another_process(tmp_path) as elsewhere:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        await theirs.terminal("reader", topic="pub:r;sub:#")
        await ours.terminal("our-reader", topic="pub:r;sub:#")
        meter = make("meter", clean=False)
        await meter.connect(expiry_s=3600)
        assert await meter.publish("g/r", b'{"secret": 1}', retain=True) == 0
        await elsewhere.terminals.delete(theirs.actor, "meter")
        values = {"uid": "meter", "name": "m", "type": "Other", "mode": "pwd", "config_id": ours.config}
        await elsewhere.terminals.create(ours.actor, values | {"username": "u-meter", "pin": PIN})
        assert await meter.gone() == ADMINISTRATIVE_ACTION
        new = make("meter", clean=False)
        await until(lambda: _owner(site, "meter") == ours.actor.company_id, "the new record is known")
        assert await new.connect(expiry_s=3600) == ACCEPTED
        assert not new.connack[1].session_present
        assert await new.publish("g/r", b'{"n": 1}') == 0
        await until(lambda: site.broker.retained.count == 0, "what the former retained has ended")
        name = site.platform.metadata.registry.series_name("meter")
        assert [each.body for each in await site.grid(f"g/{name}/r")] == [b'{"n": 1}']
        assert name != "meter"


def _owner(site: Site, uid: str) -> int:
    terminal = site.platform.metadata.registry.terminal(uid)
    return 0 if terminal is None else terminal.company_id


async def test_a_router_speaks_for_no_terminal_of_a_closed_company(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        theirs = await site.company("theirs")
        await theirs.terminal("router", is_route=1)
        for uid in ("routed", "disabled"):
            await theirs.terminal(uid)
        await theirs.object("router", "routed", "disabled")
        router = make("router")
        await router.connect()
        assert await router.publish("g/routed/r", b'{"n": 1}') == 0
        assert await router.publish("g/disabled/r", b'{"n": 1}') == 0
        await site.entities.terminals.update(theirs.actor, "disabled", {"is_available": 0})
        assert await router.publish("g/disabled/r", b'{"n": 2}') == NOT_AUTHORIZED
        router.client.will_set("g/routed/r", b'{"n": 3}', 1)
        await site.entities.companies.update(ROOT, theirs.actor.company_id, {"is_available": 0})
        assert await router.gone() == ADMINISTRATIVE_ACTION
        assert await make("router").connect() == NOT_AUTHORIZED
        assert await make("routed").connect() == NOT_AUTHORIZED
        for uid in ("routed", "disabled"):
            assert [each.body for each in await site.grid(f"g/{uid}/r")] == [b'{"n": 1}']


async def test_the_will_of_a_router_is_not_published_for_a_company_that_was_closed_meanwhile(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        theirs = await site.company("theirs")
        for uid, values in (("router", {"is_route": 1}), ("routed", {})):
            await theirs.terminal(uid, **values)
        await theirs.object("router", "routed")
        router = make("router")
        router.client.will_set("g/routed/a", b'{"n": 1}', 1)
        await router.connect()
        await site.entities.companies.update(ROOT, theirs.actor.company_id, {"is_available": 0})
        assert await router.gone() == ADMINISTRATIVE_ACTION
        await until(lambda: site.presence.client("router") is None, "gone")
        assert site.broker.stats.wills_sent == 0
        assert await site.grid("g/routed/a") == []


async def test_a_router_of_the_former_owner_does_not_speak_for_the_next(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("router", is_route=1)
        await theirs.terminal("routed")
        listed = await theirs.object("router", "routed")
        router = make("router")
        await router.connect()
        assert await router.publish("g/routed/r", b'{"n": 1}') == 0
        await site.entities.objects.update(theirs.actor, listed["uid"], {"terminal_list": ["router"]})
        await site.entities.terminals.delete(theirs.actor, "routed")
        await ours.terminal("routed")
        assert await router.publish("g/routed/r", b'{"n": 2}') == NOT_AUTHORIZED
        name = site.platform.metadata.registry.series_name("routed")
        assert await site.grid(f"g/{name}/r") == []
        await _refuses_to_list(theirs, listed["uid"], "routed")


async def _refuses_to_list(company: Company, uid: str, terminal: str) -> None:
    with pytest.raises(BadParameter, match=terminal):
        await company.site.entities.objects.update(company.actor, uid, {"terminal_list": ["router", terminal]})
