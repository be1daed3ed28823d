"""Campaigns of several companies: each has its turn, and a fault of one is nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from migrated import seed
from open_stores import open_rocks
from support import new_tasks
from terrazzo.campaigns.rests import REST_US
from terrazzo.campaigns.runner import CampaignRunner
from terrazzo.campaigns.terminal_records import CampaignTerminalRecords
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.commands.journal import CommandJournal
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import CAMPAIGN_TERMINAL
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.campaigns.rollout import CampaignState
from terrazzo.domain.command import CommandRequest
from terrazzo.domain.registry import Registry
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.ports import at_work
from terrazzo_adapters.rocksdb import RocksStore
from waiting import DEADLINE_S, until
from watched_loop import Turns

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)
BEGIN_US = 1_800_000_000_000_000
OF_TURN = 10  # commands
FLEET = 3_000  # terminals
LONGEST_S = 0.03  # of the loop's processor time in one turn


class NobodyThere:
    """A bus: commands wait in the journal."""

    def send(self, uid: str, payload: bytes, **_: Any) -> bool:
        return False

    def seen(self, uid: str) -> tuple[bool, int | None]:
        return False, None


class Stand:
    """A database with companies, and what runs their campaigns."""

    def __init__(self, database: Database, entities: Entities, registry: Registry, store: RocksStore) -> None:
        self.now = BEGIN_US
        self.database = database
        self.entities = entities
        self.registry = registry
        self.given: list[tuple[int, str]] = []  # company and terminal of each command, in order
        self.requests = 0  # by which commands were given, or one was tried
        self.recalled = 0
        self.noted: set[tuple[int, int]] = set()  # company of a command, and whose work the task said that it was
        self.faulty: set[str] = set()  # uids whose commands fail, nobody knows why
        self.tasks = new_tasks()
        self.dispatcher = CommandDispatcher(
            CommandJournal(database),
            registry=registry,
            bus=NobodyThere(),  # type: ignore[arg-type]
            configurations=entities.configurations,
            tasks=self.tasks,
            clock=self.clock,
        )
        self.store = store
        self.runner = self.new_runner()

    def new_runner(self) -> CampaignRunner:
        """What runs the campaigns, as after a start."""
        return CampaignRunner(
            self.entities.campaigns,
            CampaignTerminalRecords(self.database),
            registry=self.registry,
            commands=self,
            store=self.store,
            tasks=self.tasks,
            clock=self.clock,
        )

    def clock(self) -> int:
        return self.now

    async def submit_all(self, actor: Actor, orders: Sequence[CommandRequest]) -> list[Row]:
        self.noted.add((actor.company_id, at_work.company_id()))
        is_faulty = any(order.terminal_id in self.faulty for order in orders)
        if len(orders) == 1 or not is_faulty:  # otherwise they are tried one by one
            self.given += [(actor.company_id, order.terminal_id) for order in orders]
            self.requests += 1
        if is_faulty:
            raise ValueError("planted")
        return await self.dispatcher.submit_all(actor, orders)

    def recall(self, terminal_id: str, uid: str, reason: str) -> bool:
        is_recalled = self.dispatcher.recall(terminal_id, uid, reason)
        self.recalled += is_recalled
        return is_recalled

    async def company(self, name: str, terminals: int) -> tuple[Actor, str]:
        """A company with so many terminals of one configuration; who acts for it, and the configuration's uid."""
        company = await self.entities.companies.create(ROOT, {"name": name})
        user = {"username": name, "password": "a long password", "role": "admin"}
        made = await self.entities.users.create(ROOT, {**user, "permission_company_id": company["id"]})
        actor = Actor(user_id=made["id"], username=name, company_id=company["id"], role=Role.ADMIN)
        firmware = {"lua_file": "http://127.0.0.1/f.bin", "lua_version": "3"}
        config = str((await self.entities.configurations.create(actor, {"name": "c", **firmware}))["uid"])
        given = {"type": "A", "mode": "pwd", "username": "u", "pin": "p", "config_id": config}
        first = await self.entities.terminals.create(actor, {"uid": f"{name}-0000", "name": name, **given})
        table = TERMINAL.table
        async with self.database.writing() as connection:
            row = dict((await connection.execute(sa.select(table).where(table.c.id == first["id"]))).mappings().one())
            del row["id"]
            more = [{**row, "uid": f"{name}-{number:04}", "name": f"{name}{number}"} for number in range(1, terminals)]
            if more:
                await connection.execute(table.insert(), more)
        for terminal in (await load_registry(self.database, self.entities.terminals.secrets)).terminals():
            self.registry.put_terminal(terminal)
        return actor, config

    async def campaign(self, actor: Actor, config: str) -> int:
        """A campaign that runs; its id."""
        row = await self.entities.campaigns.create(actor, {"name": "c", "config_id": config, "unit": "LUA"})
        await self.entities.campaigns.set_state(actor, row["uid"], CampaignState.RUNNING)
        return int(row["id"])

    async def are_given(self, campaign: int, count: int, *, timeout_s: float = DEADLINE_S) -> None:
        """Waits until so many of a campaign's terminals have commands in the database."""
        columns = CAMPAIGN_TERMINAL.c
        query = sa.select(sa.func.count()).where(columns.campaign_id == campaign, columns.command_uid != "")
        async with asyncio.timeout(timeout_s):
            while True:
                async with self.database.reading() as connection:
                    if (await connection.execute(query)).scalar_one() == count:
                        return
                await asyncio.sleep(0.01)


@pytest.fixture
async def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    monkeypatch.setattr("terrazzo.campaigns.runner._AT_ONCE", OF_TURN)
    database = await Database.open("", data_dir=seed(tmp_path))
    registry = Registry()
    store = await open_rocks(tmp_path / "series")
    stand = Stand(database, Entities.open(database, registry, Secrets.open(tmp_path)), registry, store)
    try:
        yield stand
    finally:
        await stand.runner.stop()
        await store.close()
        await database.close()


async def test_a_companys_campaigns_of_many_terminals_do_not_keep_another_from_its_own(stand: Stand) -> None:
    large, config = await stand.company("large", 25)
    small, other = await stand.company("small", 1)
    campaigns = [await stand.campaign(large, config) for _ in range(3)]
    own = await stand.campaign(small, other)
    await stand.runner.start()
    await stand.are_given(own, 1)
    before = [company_id for company_id, _ in stand.given].index(small.company_id)
    assert before <= OF_TURN, "a turn of one of the large company's campaigns"
    for campaign in campaigns:
        await stand.are_given(campaign, 25)
    first = [uid for company_id, uid in stand.given if company_id == large.company_id][: 3 * OF_TURN]
    assert max(first.count(uid) for uid in first) == 3, "its own campaigns take turns, too"
    assert stand.noted == {(each.company_id, each.company_id) for each in (large, small)}


async def test_one_that_begins_while_anothers_are_given_has_the_next_turn(stand: Stand) -> None:
    large, config = await stand.company("large", 60)
    small, other = await stand.company("small", 1)
    for _ in range(2):
        await stand.campaign(large, config)
    await stand.runner.start()
    await until(lambda: len(stand.given) > 10, "commands are given")
    begun = len(stand.given)
    own = await stand.campaign(small, other)
    started = len(stand.given)
    await stand.are_given(own, 1)
    at = [company_id for company_id, _ in stand.given].index(small.company_id)
    assert begun <= at <= started + 3 * OF_TURN, "the turn under way, and one before each of its own"


async def test_commands_are_given_some_at_a_time_each_time_with_one_transaction(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo.campaigns.runner._TOGETHER", 4)
    actor, config = await stand.company("large", 25)
    campaign = await stand.campaign(actor, config)
    await stand.runner.start()
    await stand.are_given(campaign, 25)
    assert sorted(stand.given) == [(actor.company_id, f"large-{number:04}") for number in range(25)]
    assert stand.requests == 3 + 3 + 2, "turns of ten, ten and five: four, four and two; and so on"


async def test_a_terminal_that_fails_rests_and_the_others_have_their_commands(stand: Stand) -> None:
    large, config = await stand.company("large", 15)
    small, other = await stand.company("small", 3)
    stand.faulty = {f"large-{number:04}" for number in range(12)} | {"small-0000"}  # more than one turn has
    campaigns = [await stand.campaign(large, config), await stand.campaign(small, other)]
    await stand.runner.start()
    await stand.are_given(campaigns[0], 3)
    await stand.are_given(campaigns[1], 2)
    assert stand.runner.stats.faults == 13
    assert len(stand.given) == 18, "none is tried twice"
    stand.faulty.clear()
    stand.now += REST_US + 1
    await stand.are_given(campaigns[0], 15)
    await stand.are_given(campaigns[1], 3)


async def test_a_campaign_that_can_not_be_read_keeps_no_other_from_its_turn(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, config = await stand.company("large", 2)
    small, other = await stand.company("small", 1)
    bad = await stand.campaign(large, config)
    load = stand.runner.terminal_records.load

    async def failing(row: Row) -> Any:
        if row["id"] == bad:
            raise ValueError("planted")
        return await load(row)

    with monkeypatch.context() as patch:
        patch.setattr(stand.runner.terminal_records, "load", failing)
        await stand.runner.take_up()  # as after a start
        await stand.runner.start()
        good = await stand.campaign(small, other)
        await stand.are_given(good, 1)
        assert 1 <= stand.runner.stats.faults <= 2
    stand.now += REST_US + 1
    await stand.are_given(bad, 2)


async def test_a_campaign_that_can_not_be_advanced_rests_until_its_record_is_changed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, config = await stand.company("large", 2)
    small, other = await stand.company("small", 1)
    bad, good = await stand.campaign(large, config), await stand.campaign(small, other)
    repository, set_wave = stand.entities.campaigns, stand.entities.campaigns.set_wave

    async def failing(actor: Actor, key: int, wave: int) -> Row:
        if key == bad:
            raise ValueError("planted")
        return await set_wave(actor, key, wave)

    with monkeypatch.context() as patch:
        patch.setattr(repository, "set_wave", failing)
        await stand.runner.start()
        await stand.are_given(good, 1)
        await until(lambda: stand.runner.stats.faults == 1, "it has failed")
    await repository.update(large, bad, {"name": "another"})
    await stand.are_given(bad, 2)
    assert stand.runner.stats.faults == 1


async def test_a_fleets_campaign_is_made_run_and_aborted_some_terminals_at_a_time(stand: Stand) -> None:
    actor, config = await stand.company("fleet", FLEET)
    loop, turns = asyncio.get_running_loop(), Turns()
    turns.begin(loop)
    try:
        waves = {"waves": [1, 99], "config_id": config, "unit": "LUA"}
        row = await stand.entities.campaigns.create(actor, {"name": "c", **waves})
        await stand.entities.campaigns.set_state(actor, row["uid"], CampaignState.RUNNING)
        await stand.runner.start()
        await stand.are_given(row["id"], FLEET // 100, timeout_s=60)
        await stand.entities.campaigns.set_state(actor, row["uid"], CampaignState.ABORTED, reason="enough")
        columns = CAMPAIGN_TERMINAL.c
        told = sa.select(sa.func.count()).where(columns.campaign_id == row["id"], columns.reason == "enough")
        recalled = told.where(columns.command_uid == "")
        async with asyncio.timeout(60):
            while True:
                async with stand.database.reading() as connection:
                    if (await connection.execute(recalled)).scalar_one() >= FLEET * 99 // 100:
                        break
                await asyncio.sleep(0.01)
        await until(lambda: stand.runner.is_wanted is False, "it is over", timeout_s=60)
        assert stand.recalled == FLEET // 100
    finally:
        turns.end()
        turns.stop()
    assert turns.longest_s < LONGEST_S
