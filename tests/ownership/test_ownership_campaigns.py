"""What a terminal reports counts for campaigns of its own company, whoever had its uid before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa

from platform_site import Site, peers, running_site
from terrazzo.database.tables.registry import CAMPAIGN_TERMINAL
from terrazzo.domain.campaigns.rollout import CampaignState
from waiting import until


async def versions(site: Site) -> dict[str, str]:
    """What campaigns know of their terminals: the last version that each reported."""
    async with site.platform.metadata.database.reading() as connection:
        rows = await connection.execute(sa.select(CAMPAIGN_TERMINAL.c.terminal_id, CAMPAIGN_TERMINAL.c.version))
        return {row.terminal_id: row.version for row in rows}


@pytest.mark.parametrize("restart", [False, True])
async def test_a_campaign_does_not_hear_the_next_owner_of_a_uid(tmp_path: Path, restart: bool) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        file = {"lua_file": "http://files.example/lua.bin", "lua_version": "3.0.0"}
        await site.entities.configurations.update(theirs.actor, theirs.config, file)
        for uid in ("meter", "other"):
            await theirs.terminal(uid)
        campaigns = site.entities.campaigns
        made = await campaigns.create(theirs.actor, {"name": "c", "config_id": theirs.config, "unit": "LUA"})
        await campaigns.set_state(theirs.actor, made["uid"], CampaignState.RUNNING)
        await until(lambda: site.platform.parts.campaigns.stats.running == 1, "the campaign runs")
        await site.entities.terminals.delete(theirs.actor, "meter")
        await ours.terminal("meter")
        meter = make("meter")
        await meter.connect()
        await meter.publish("g/v", b'{"lua_version": "3.0.0"}')
        other = make("other")
        if not restart:
            await other.connect()
            await other.publish("g/v", b'{"lua_version": "2.9"}')
            await until_versions(site, {"meter": "", "other": "2.9"})
    if restart:
        async with running_site(tmp_path) as site, peers(site) as make:
            other = make("other")
            await other.connect()
            await other.publish("g/v", b'{"lua_version": "2.9"}')
            await until_versions(site, {"meter": "", "other": "2.9"})


async def until_versions(site: Site, expected: dict[str, str]) -> None:
    async with asyncio.timeout(15):
        while (await versions(site))["other"] != expected["other"]:  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)
    assert await versions(site) == expected
