"""Rules about terminals on a running platform with real connections that are cut: a site's uplink, the platform itself,
a terminal that flaps. One message each, and one when it is over. Minutes pass by a clock that the test moves.

The long form (``make long``) has 1,000 terminals behind the uplink.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rule_stand
import sqlalchemy as sa
from rule_stand import Receiver

from cutting_proxy import CuttingProxy
from length import rounds
from mqtt_bytes import login
from platform_site import Company, Ports, Site, running_site
from support import free_port
from terrazzo.database.tables.messages import MESSAGE
from terrazzo.rules import watch
from terrazzo.times import now_us
from terrazzo_broker.core import BrokerCore
from terrazzo_simulators.device import Habits
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import LinkOptions
from terrazzo_simulators.spec import Naming, generate_specs
from waiting import until

COUNT = rounds(60, 1_000)
PATIENCE_S = rounds(30, 300)
STEP_US = 30_000_000  # less than a minute, which the platform would take for having stood still
AWAY = {"kinds": ["offline", "back", "outage"], "minutes": 10, "back_minutes": 5, "window_s": 60}


class World:
    """A platform that comes and goes on one folder and port, a clock that is ahead, and an uplink."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ahead_us = 0
        self.port, self.uplink_port = free_port(), free_port()

    def clock(self) -> int:
        return now_us() + self.ahead_us

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[Site]:
        given: dict[str, Any] = {"mqtt": {"port": self.port}, "messenger": {"allow_private": ("127.0.0.0/8",)}}
        async with running_site(self.folder, ports=Ports(clock=self.clock), **given) as site:
            yield site

    @asynccontextmanager
    async def uplink(self) -> AsyncIterator[None]:
        async with CuttingProxy(self.port, cuts=0, steps=1, port=self.uplink_port).running():
            yield

    async def pass_minutes(self, site: Site, minutes: int) -> None:
        """Time passes; the platform's heart beats at each step, and what is due is done."""
        watching, notifier = site.platform.parts.rules.watch, site.platform.parts.objects.notifier
        for _ in range(minutes * 60_000_000 // STEP_US):
            self.ahead_us += STEP_US
            moment = self.clock()

            def is_done(moment: int = moment) -> bool:
                next_us = watching._timers.next
                return watching._ran_us >= moment and (next_us is None or next_us > moment)

            watching._wake.set()
            await until(is_done, "a beat and all looks", timeout_s=PATIENCE_S)
            notifier.wake()

    def fleet(self) -> Fleet:
        """The terminals behind the uplink, which come back by themselves."""
        naming = Naming(uid="n{n:04d}", username="u-n{n:04d}", pin="pin-n{n:04d}")
        habits = Habits(interval_s=None, backoff_s=0.05, backoff_most_s=0.3)
        link = LinkOptions(port=self.uplink_port)
        return Fleet(generate_specs(COUNT, naming=naming), FleetOptions(link=link, habits=habits, connect_rate=0))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(watch, "BEAT_S", 0.02)
    monkeypatch.setattr(watch, "_LEAST_NAP_S", 0.01)
    monkeypatch.setattr(rule_stand, "time", SimpleNamespace(time=lambda: made.clock() / 1e6))  # whoever takes webhooks
    monkeypatch.setattr(BrokerCore, "now_us", lambda _core: made.clock())
    return made


async def told(site: Site, receiver: Receiver, count: int) -> dict[str, Any]:
    """The last webhook, when there are so many, and no more messages than that."""
    await until(lambda: len(receiver.hooks) >= count, f"{count} webhooks, not {receiver.hooks}", timeout_s=PATIENCE_S)
    async with site.platform.metadata.database.reading() as connection:
        journaled = (await connection.execute(sa.select(sa.func.count()).select_from(MESSAGE))).scalar_one()
    assert (journaled, len(receiver.hooks)) == (count, count), [hook["summary"] for hook in receiver.hooks]
    assert receiver.faults == []
    return receiver.hooks[-1]


def is_online(site: Site, uid: str) -> bool:
    return site.presence.presence(uid).online


async def connected(fleet: Fleet, site: Site) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await fleet.connected()
    await until(lambda: all(is_online(site, uid) for uid in fleet.devices), timeout_s=PATIENCE_S)


async def prepare(site: Site, fleet: Fleet, receiver: Receiver) -> Company:
    company = await site.company()
    for uid in [*fleet.devices, "flap-1"]:
        await company.terminal(uid, tags=["north"])
    row = await site.entities.rules.create(company.actor, {"name": "north", "tags": "north", **AWAY, **receiver.hook})
    await site.entities.rules.set_active(company.actor, row["uid"], True)
    return company


@asynccontextmanager
async def flapping(site: Site) -> AsyncIterator[None]:
    """The connection of ``flap-1``, which ends without a word. By hand: paho waits by ``select``, which takes no file
    descriptor above 1,023."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        writer.write(login("flap-1", "u-flap-1", "pin-flap-1"))
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.readexactly(4) == b"\x20\x02\0\0"
        yield
    finally:
        writer.transport.abort()


async def flap(world: World, site: Site, receiver: Receiver, count: int) -> None:
    """A terminal goes for long, and comes and goes for a while before it stays."""
    async with flapping(site):
        pass
    await world.pass_minutes(site, 13)
    gone = await told(site, receiver, count + 1)
    assert (gone["kinds"], gone["items"][0]["terminal"]) == ({"offline": 1}, "flap-1")
    for _ in range(4):
        async with flapping(site):
            await world.pass_minutes(site, 3)
        await world.pass_minutes(site, 3)
    await told(site, receiver, count + 1)
    async with flapping(site):
        await world.pass_minutes(site, 10)
        back = await told(site, receiver, count + 2)
        assert (back["kinds"], back["items"][0]["terminal"]) == ({"back": 1}, "flap-1")


async def test_an_uplink_the_platform_and_a_terminal_that_flaps_are_told_once_each(
    world: World, receiver: Receiver
) -> None:
    fleet = world.fleet()
    async with fleet.running():
        async with world.platform() as site:
            await prepare(site, fleet, receiver)
            async with world.uplink():
                await connected(fleet, site)
                await world.pass_minutes(site, 3)
            await until(lambda: not any(is_online(site, uid) for uid in fleet.devices), timeout_s=PATIENCE_S)
            await world.pass_minutes(site, 13)
            cut = await told(site, receiver, 1)
            assert (cut["kinds"], cut["count"], cut["shared"]) == ({"offline": COUNT}, COUNT, ["tag north"])
            async with world.uplink():
                await connected(fleet, site)
                await world.pass_minutes(site, 10)
                back = await told(site, receiver, 2)
                assert (back["kinds"], back["count"]) == ({"back": COUNT}, COUNT)
        world.ahead_us += 11 * 60_000_000
        async with world.uplink(), world.platform() as site:
            await connected(fleet, site)
            await world.pass_minutes(site, 15)
            outage = await told(site, receiver, 3)
            assert outage["kinds"] == {"outage": 1}
            await flap(world, site, receiver, 3)
