"""A closed company (``is_available`` = 0): its terminals are ended at once, stay out, and can't be commanded."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_site import ROOT, Company, Site, peers, running_site
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.errors import Conflict
from terrazzo.metadata.entities import Entities
from waiting import until

ADMINISTRATIVE_ACTION, NOT_AUTHORIZED = 0x98, 0x87


async def set_available(site: Site, company: Company, *, is_available: int) -> None:
    await site.entities.companies.update(ROOT, company.actor.company_id, {"is_available": is_available})


async def test_terminals_of_a_closed_company_are_ended_and_stay_out(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        for number in range(150):  # more than are looked at in one turn
            await theirs.terminal(f"t{number}")
        await theirs.terminal("off", is_available=0)
        await ours.terminal("bystander")
        bystander, first, last = make("bystander"), make("t0"), make("t149")
        for peer in (bystander, first, last):
            await peer.connect()
        await set_available(site, theirs, is_available=0)
        assert await first.gone() == await last.gone() == ADMINISTRATIVE_ACTION
        assert await make("t0").connect() == NOT_AUTHORIZED
        assert await bystander.publish("g/r", b"{}") == 0
        with pytest.raises(Conflict, match="closed"):
            await site.commands.submit(ROOT, "t0", "AXReboot", "")
    async with running_site(tmp_path) as site, peers(site) as make:
        assert await make("t0").connect() == NOT_AUTHORIZED
        await set_available(site, Company(site, theirs.actor, theirs.config), is_available=1)
        await until(lambda: (found := site.platform.metadata.registry.terminal("t149")) and found.is_admitted, "open")
        for uid, code in (("t0", 0), ("t149", 0), ("off", NOT_AUTHORIZED)):
            assert await make(uid).connect() == code
        await site.commands.submit(ROOT, "t0", "AXReboot", "")


async def test_a_command_that_waits_is_sent_when_the_company_is_open_again(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        company = await site.company("theirs")
        await company.terminal("t0")
        await site.commands.submit(company.actor, "t0", "AXReboot", "")
        await set_available(site, company, is_available=0)
        assert await make("t0").connect() == NOT_AUTHORIZED
        await set_available(site, company, is_available=1)
        peer = make("t0")
        await peer.connect()
        await peer.subscribe("p2p/t0")
        assert [each.topic for each in await peer.received(1)] == ["p2p/t0"]


async def test_it_is_in_force_here_though_another_process_has_closed_it(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        company = await site.company("theirs")
        await company.terminal("t0")
        peer = make("t0")
        await peer.connect()
        database = await Database.open("", data_dir=tmp_path)
        elsewhere = Entities.open(database, Registry(), Secrets.open(tmp_path))
        await elsewhere.companies.update(ROOT, company.actor.company_id, {"is_available": 0})
        assert await peer.gone() == ADMINISTRATIVE_ACTION
        assert await make("t0").connect() == NOT_AUTHORIZED
        await database.close()
