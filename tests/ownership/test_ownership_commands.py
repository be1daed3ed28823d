"""A command is for the terminal that it was given for, not for whoever has its uid next."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from platform_site import ROOT, Company, peers, running_site


async def test_a_command_for_a_former_terminal_is_not_sent_to_the_next_one(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await theirs.terminal("meter")
        await site.commands.submit(theirs.actor, "meter", "AXReboot", "secret")
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:
        database.execute("update terminal set permission_company_id = ? where uid = 'meter'", (ours.actor.company_id,))
    async with running_site(tmp_path) as site, peers(site) as make:
        company = Company(site, ours.actor, ours.config)
        own = await site.commands.submit(company.actor, "meter", "AXReboot", "own")
        meter = make("meter")
        await meter.connect()
        await meter.subscribe("p2p/meter")
        assert [b"own" in each.payload for each in await meter.received(1)] == [True]
        rows = {row["uid"]: row for row in (await site.commands.page(ROOT)).rows}
        former = next(row for uid, row in rows.items() if uid != own["uid"])
        assert (former["state"], former["reason"]) == ("failed", "the terminal was deleted")
