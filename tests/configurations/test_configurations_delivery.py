"""Configurations on their way to terminals: real broker, real database, paho terminals and simulated ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from platform_site import Company, Site, peers, running_site, until
from terrazzo.configurations.comparison import WantedConfiguration
from terrazzo.configurations.delivery import ConfigDeliveries, ConfigState, Configured
from terrazzo.ports import at_work
from terrazzo.ports.bus import DeliveryFate
from terrazzo.ports.store import Record
from terrazzo_simulators.device import Habits
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import LinkOptions
from terrazzo_simulators.spec import TerminalSpec
from waiting import DEADLINE_S

CONFIG = {"limits": {"high": 80}, "interval": 30}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with running_site(tmp_path) as running:
        yield running


@pytest.fixture
async def peer(site: Site) -> AsyncIterator[Any]:
    async with peers(site) as make:
        yield make


async def deliver(company: Company, config: Any = CONFIG, **values: Any) -> None:
    """Has the company's configuration delivered."""
    fields = {"config_script": config, "deliver": 1, **values}
    await company.site.entities.configurations.update(company.actor, company.config, fields)


def state(site: Site, uid: str) -> ConfigState | None:
    """How far a terminal is."""
    status = site.platform.messaging.configurations.status(uid)
    return None if status is None else status.state


async def listening(peer: Any, uid: str) -> Any:
    one = peer(uid)
    assert await one.connect() == 0
    assert await one.subscribe(f"p2p/{uid}") == 1
    return one


async def test_it_is_off_unless_switched_on(site: Site, peer: Any) -> None:
    company = await site.company()
    await company.terminal("t1")
    await site.entities.configurations.update(company.actor, company.config, {"config_script": CONFIG})
    one = await listening(peer, "t1")
    command = await site.commands.submit(company.actor, "t1", "A", "1")
    (message,) = await one.received(1)
    assert message.properties.CorrelationData == command["uid"].encode()
    assert state(site, "t1") is None


async def test_it_is_sent_when_it_changes_and_confirmed_by_a_report(site: Site, peer: Any) -> None:
    company = await site.company()
    await company.terminal("t1")
    one = await listening(peer, "t1")
    await deliver(company)
    (message,) = await one.received(1)
    sent = json.loads(message.payload)
    assert sent == {"Act": "Config", "Version": WantedConfiguration.of(CONFIG).version, "Config": CONFIG}
    assert message.qos == 1
    await until(lambda: state(site, "t1") is ConfigState.SENT)
    report = {"Version": sent["Version"], "limits": {"high": 70}, "interval": 30, "serial": "A17"}
    assert await one.publish("g/t1/p", json.dumps(report).encode()) == 0
    await until(lambda: state(site, "t1") is ConfigState.DIFFERS)
    (found,) = site.platform.messaging.configurations.status("t1").difference
    assert (found.key, found.wanted, found.reported) == ("limits.high", 80, 70)
    assert await one.publish("g/t1/p", json.dumps({**report, "limits": {"high": 80}}).encode()) == 0
    await until(lambda: state(site, "t1") is ConfigState.CONFIRMED)
    assert site.platform.messaging.configurations.status("t1").difference == []
    await site.entities.configurations.update(company.actor, company.config, {"deliver": 0})
    await until(lambda: state(site, "t1") is None)
    assert (await site.commands.page(company.actor)).rows == []  # it is in no journal


async def test_of_simulated_terminals_that_one_confirms_whose_firmware_knows_the_command(site: Site) -> None:
    company = await site.company()
    specs = []
    for uid, configurable in (("new", True), ("old", False)):
        await company.terminal(uid)
        specs.append(TerminalSpec(uid=uid, username=f"u-{uid}", pin=f"pin-{uid}", configurable=configurable))
    await deliver(company)
    fleet = Fleet(specs, FleetOptions(link=LinkOptions(port=site.port), habits=Habits(interval_s=None)))
    async with fleet.running():
        await until(lambda: state(site, "new") is ConfigState.CONFIRMED, "the new firmware reports what is wanted")
        await until(lambda: state(site, "old") is ConfigState.SENT, "the old one has it too")
        async with asyncio.timeout(DEADLINE_S):
            while not (answers := await site.grid("g/old/n")):  # noqa: ASYNC110 - it is asked for
                await asyncio.sleep(0.02)
    assert "this firmware takes no Config" in str(answers[0])
    assert (state(site, "new"), state(site, "old")) == (ConfigState.CONFIRMED, ConfigState.SENT)


async def test_each_login_that_has_not_confirmed_is_sent_the_newest_alone(site: Site, peer: Any) -> None:
    company = await site.company()
    await company.terminal("t1")
    for interval in range(5):
        await deliver(company, {"interval": interval})
    for _ in range(2):
        one = await listening(peer, "t1")
        assert [json.loads(each.payload)["Config"] for each in await one.received(1)] == [{"interval": 4}]
        await until(lambda: state(site, "t1") is ConfigState.SENT)
        await one.close()
    one = await listening(peer, "t1")
    (message,) = await one.received(1)
    report = json.dumps({"interval": 4, "Version": json.loads(message.payload)["Version"]}).encode()
    assert await one.publish("g/t1/p", report) == 0
    await until(lambda: state(site, "t1") is ConfigState.CONFIRMED)
    await one.close()
    one = await listening(peer, "t1")
    command = await site.commands.submit(company.actor, "t1", "A", "1")
    (message,) = await one.received(1)  # nothing before it
    assert message.properties.CorrelationData == command["uid"].encode()


def test_the_newest_is_sent_once_though_not_every_terminal_was_looked_at_yet() -> None:
    """It logs in after the change, and before the change's turn has come to it among many."""
    deliveries, terminal = ConfigDeliveries(), Configured("t1", record_id=1, company_id=1, config_id=7)
    deliveries.set_wanted(7, WantedConfiguration.of({"interval": 1}))
    deliveries.follow(terminal, 1)
    assert deliveries.next_due() == "t1"  # it isn't there
    newest = WantedConfiguration.of({"interval": 2})
    deliveries.set_wanted(7, newest)
    deliveries.on_ready("t1")
    assert deliveries.next_due() == "t1"
    assert deliveries.begin(terminal, 2) is newest
    deliveries.end("t1", DeliveryFate.DELIVERED, 3)
    deliveries.follow(terminal, 4)
    assert deliveries.next_due() is None
    status = deliveries.status("t1")
    assert status is not None
    assert (status.version, status.state) == (newest.version, ConfigState.SENT)


async def test_what_is_known_outlives_a_restart_and_another_configuration_starts_anew(
    tmp_path: Path,
) -> None:
    async with running_site(tmp_path) as site, peers(site) as peer:
        company = await site.company()
        for uid in ("t1", "t2"):
            await company.terminal(uid)
        await deliver(company)
        one = await listening(peer, "t1")
        await one.received(1)
        assert await one.publish("g/t1/p", json.dumps(CONFIG).encode()) == 0
        await until(lambda: state(site, "t1") is ConfigState.CONFIRMED)
    async with running_site(tmp_path) as site:
        assert (state(site, "t1"), state(site, "t2")) == (ConfigState.CONFIRMED, ConfigState.PENDING)
        actor = company.actor
        other = await site.entities.configurations.create(actor, {"name": "other", "config_script": [1], "deliver": 1})
        await site.entities.terminals.update(actor, "t1", {"config_id": other["uid"]})
        await until(lambda: state(site, "t1") is ConfigState.PENDING)
        await site.entities.terminals.delete(actor, "t2")
        await until(lambda: state(site, "t2") is None)
    async with running_site(tmp_path) as site:
        assert (state(site, "t1"), state(site, "t2")) == (ConfigState.PENDING, None)


def test_companies_take_turns_however_many_terminals_one_has() -> None:
    deliveries = ConfigDeliveries()
    deliveries.set_wanted(1, WantedConfiguration.of(CONFIG))
    for number in range(1_000):
        deliveries.follow(Configured(f"a{number}", number, 1, 1), 5)
    for number in range(2):
        deliveries.follow(Configured(f"b{number}", 2_000 + number, 2, 1), 5)
    deliveries.on_ready("a7")  # keeps its place
    assert [deliveries.next_due() for _ in range(6)] == ["a0", "b0", "a1", "b1", "a2", "a3"]
    deliveries.forget("a4")
    assert deliveries.next_due() == "a5"


async def test_one_that_can_not_be_sent_its_own_keeps_no_other_from_it(
    site: Site, peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    company = await site.company()
    bus, sent = site.platform.messaging.configurations._bus, []
    send = bus.send

    def failing(uid: str, payload: bytes, **options: Any) -> bool:
        sent.append(uid)
        if uid == "t1" and sent.count("t1") == 1:
            raise ValueError("planted")
        return send(uid, payload, **options)

    monkeypatch.setattr(bus, "send", failing)
    for uid in ("t1", "t2"):
        await company.terminal(uid)
    first, second = [await listening(peer, uid) for uid in ("t1", "t2")]
    await deliver(company)
    await second.received(1)
    assert site.platform.messaging.configurations.stats.lost == 1
    await first.close()
    await (await listening(peer, "t1")).received(1)


async def test_many_terminals_are_sent_theirs_in_pace(site: Site, peer: Any) -> None:
    company = await site.company()
    sender = site.platform.messaging.configurations
    ones = []
    for number in range(20):
        await company.terminal(f"t{number}")
        ones.append(await listening(peer, f"t{number}"))
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await deliver(company)
    await until(lambda: sender.stats.sent == 20)
    assert loop.time() - began_s >= 19 / 200
    for one in ones:
        await one.received(1)


async def test_reports_of_other_terminals_and_reports_that_no_one_can_read_confirm_nothing(
    site: Site, peer: Any
) -> None:
    company, stranger = await site.company(), await site.company("two")
    await company.terminal("t1")
    await stranger.terminal("t2")
    await deliver(company)
    one, two = await listening(peer, "t1"), await listening(peer, "t2")
    await one.received(1)
    await two.publish("g/t1/p", json.dumps(CONFIG).encode())
    await two.publish("g/t2/p", json.dumps(CONFIG).encode())
    assert await one.publish("g/t1/p/deeper", json.dumps(CONFIG).encode()) == 0
    await one.publish("g/t1/p", b"{")
    assert await one.publish("g/t1/p", b'{"interval": 30}') == 0
    await until(lambda: state(site, "t1") is ConfigState.DIFFERS)
    assert state(site, "t2") is None


async def test_a_long_report_is_read_beside_the_loop_and_a_later_one_counts(site: Site, peer: Any) -> None:
    company = await site.company()
    await company.terminal("t1")
    await deliver(company)
    one = await listening(peer, "t1")
    await one.received(1)
    await until(lambda: state(site, "t1") is ConfigState.SENT)
    sender = site.platform.messaging.configurations
    many = {f"p{number}": number for number in range(15_000)}
    read, seen = sender._read_points, []

    async def read_points(body: bytes) -> Any:
        seen.append(f"{at_work.operation()} {at_work.company_id()}")
        return await read(body)

    sender._read_points = read_points
    sender.on_records([parameters({**many, "limits.high": 80, "interval": 30})])
    await until(lambda: state(site, "t1") is ConfigState.CONFIRMED)
    sender.on_records([parameters({**many, "limits.high": 80, "interval": 30})])
    sender.on_records([parameters({"limits.high": 70, "interval": 30})])
    await until(lambda: state(site, "t1") is ConfigState.DIFFERS)
    await until(lambda: not sender._to_read and not sender._reading.strip("t1"))
    assert state(site, "t1") is ConfigState.DIFFERS
    assert set(seen) == {f"configuration {company.actor.company_id}"}
    assert sender.stats.reports_left == 0


def parameters(points: dict[str, Any]) -> Record:
    return Record("g/t1/p", 1, json.dumps(points).encode())
