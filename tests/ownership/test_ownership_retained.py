"""Retained messages, sessions and wills belong to a company: they end with their terminal, and reach nobody else."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from platform_site import Company, Site, peers, running_site
from waiting import until

WIDE = "pub:r,a,v,p,i,n;sub:#"


async def retain(peer: Any, topic: str, payload: bytes) -> None:
    info = peer.client.publish(topic, payload, 1, retain=True)
    await asyncio.to_thread(info.wait_for_publish, 10)


async def hears(site: Site, make: Any, company: Company, uid: str) -> list[str]:
    """The topics of what a new terminal of the company that subscribes to everything gets."""
    await company.terminal(uid, topic=WIDE)
    reader = make(uid)
    await reader.connect()
    await reader.subscribe("#")
    await reader.subscribe("g/#")
    await reader.publish("g/a", b'{"end": 1}')
    await until(lambda: any(b"end" in each.payload for each in reader.messages), "its own message")
    return sorted({each.topic for each in reader.messages if b"end" not in each.payload})


async def delete(company: Company, uid: str) -> None:
    await company.site.entities.terminals.delete(company.actor, uid)


async def test_a_deleted_terminal_leaves_no_retained_message(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        meter = make("meter")
        await meter.connect()
        for channel in ("r", "i", "i/deeper"):
            await retain(meter, f"g/{channel}", b'{"secret": 1}')
        assert site.broker.retained.count == 3
        assert await hears(site, make, ours, "before") == []
        await delete(theirs, "meter")
        assert await hears(site, make, ours, "after") == []
        assert await hears(site, make, theirs, "own") == []
        await ours.terminal("meter")
        assert await hears(site, make, ours, "later") == []
        await until(lambda: site.broker.retained.count == 0, "removed from the disk too")
        assert site.broker.stats.retained_ended == 3
    async with running_site(tmp_path) as site:
        assert site.broker.retained.count == 0


async def test_the_new_terminal_of_a_uid_retains_while_the_former_ones_end(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        meter = make("meter")
        await meter.connect()
        await retain(meter, "g/r", b'{"secret": 1}')
        await delete(theirs, "meter")
        await ours.terminal("meter")
        fresh = make("meter")
        await fresh.connect()
        await retain(fresh, "g/r", b'{"new": 1}')
        await until(lambda: site.broker.stats.retained_ended == 1, "the former one is removed")
    async with running_site(tmp_path) as site, peers(site) as make:
        company = Company(site, ours.actor, ours.config)
        assert await hears(site, make, company, "reader") == ["g/meter/r"]


async def test_what_was_deleted_while_the_platform_was_away_ends_at_its_start(tmp_path: Path) -> None:
    """By another process: a platform on the same database, an import."""
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        await theirs.terminal("reader", topic=WIDE)
        reader = make("reader", clean=False)
        await reader.connect(expiry_s=3600)
        await reader.subscribe("#")
        await reader.cut()
        meter = make("meter")
        await meter.connect()
        await retain(meter, "g/r", b'{"secret": 1}')
        await until(lambda: site.broker.sessions["reader"].queued == 1, "waits for the reader")
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:
        for uid in ("meter", "reader"):
            database.execute("delete from terminal where uid = ?", (uid,))
    async with running_site(tmp_path) as site, peers(site) as make:
        company = Company(site, ours.actor, ours.config)
        assert await hears(site, make, company, "reader") == []
        assert await hears(site, make, company, "meter") == []
        await until(lambda: site.broker.retained.count == 0, "removed")


async def test_a_session_of_the_former_owner_is_not_the_new_ones(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        await theirs.terminal("reader", topic=WIDE)
        reader = make("reader", clean=False)
        await reader.connect(expiry_s=3600)
        await reader.subscribe("#")
        await reader.cut()
        meter = make("meter")
        await meter.connect()
        await meter.publish("g/r", b'{"secret": 1}')
    # the record's uid is another company's by now, and nobody who runs has seen how
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:
        database.execute("update terminal set permission_company_id = ? where uid = 'reader'", (ours.actor.company_id,))
    async with running_site(tmp_path) as site, peers(site) as make:
        back = make("reader", clean=False)
        await back.connect(expiry_s=3600)
        assert not back.connack[1].session_present
        await back.subscribe("g/#")
        await back.publish("g/r", b'{"end": 1}')
        assert [each.payload for each in await back.received(1)] == [b'{"end": 1}']


async def test_the_same_terminal_keeps_its_session(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        company = await site.company("ours")
        for uid in ("meter", "reader"):
            await company.terminal(uid, topic=WIDE)
        reader = make("reader", clean=False)
        await reader.connect(expiry_s=3600)
        await reader.subscribe("g/meter/#")
        await reader.cut()
        meter = make("meter")
        await meter.connect()
        await meter.publish("g/r", b'{"n": 1}')
    async with running_site(tmp_path) as site, peers(site) as make:
        back = make("reader", clean=False)
        await back.connect(expiry_s=3600)
        assert back.connack[1].session_present
        assert [each.payload for each in await back.received(1)] == [b'{"n": 1}']


async def test_a_will_that_waits_is_not_published_for_the_next_owner(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        meter = make("meter", clean=False)
        meter.client.will_set("g/meter/a", b'{"secret": 1}', 1, properties=_delay(3))
        await meter.connect(expiry_s=3600)
        await meter.cut()
        await until(lambda: site.presence.client("meter") is None, "gone")
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:
        database.execute("update terminal set permission_company_id = ? where uid = 'meter'", (ours.actor.company_id,))
    async with running_site(tmp_path) as site:
        await until(lambda: site.broker.stats.publishes_refused == 1, "the will is due")
        assert site.broker.stats.wills_sent == 0
        assert await site.grid("g/meter/a") == []


def _delay(seconds: int) -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.WillDelayInterval = seconds
    return properties
