"""What of the disk a company's time series take, and may."""

from __future__ import annotations

import asyncio
import base64
import random
from pathlib import Path
from typing import Any

import pytest
from test_quotas_own_limits import company_uid

from api.api_rig import open_rig
from platform_site import ROOT, Company, Site, peers, running_site
from terrazzo.memory_shares import MIB
from terrazzo.terminals.series_use import FILE_NAME, SeriesUse
from terrazzo.times import DAY_US, now_us
from waiting import until

_BODY = 100_000


def body(number: int) -> bytes:
    """A report that no compression makes shorter by more than a quarter."""
    text = base64.b64encode(random.Random(number).randbytes(_BODY * 3 // 4)).decode()
    return f'{{"text": "{text}"}}'.encode()


def use_of(site: Site) -> SeriesUse:
    return site.platform.messaging.series_use


async def limit(site: Site, company: Company, mib: int) -> None:
    """Changes how much of the disk the company may have."""
    rows = [row async for row in site.entities.companies.every()]
    uid = next(row["uid"] for row in rows if row["id"] == company.actor.company_id)
    await site.entities.companies.update(ROOT, uid, {"limit_series_mib": mib})


async def fill(site: Site, company: Company, peer: Any, reports: int) -> None:
    """Reports until the company has as much as it may; all of it is acknowledged."""
    for number in range(reports):
        assert await peer.publish("g/r", body(number)) < 0x80
    await until(lambda: use_of(site).full == {company.actor.company_id}, "the company is full")


async def test_who_is_full_waits_and_the_others_do_not(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        for company, uid in ((ours, "t1"), (ours, "t2"), (theirs, "t3")):
            await company.terminal(uid)
        await limit(site, ours, 1)
        filler, neighbour, other = make("t1"), make("t2"), make("t3")
        for peer in (filler, neighbour, other):
            await peer.connect()
        await fill(site, ours, filler, 16)
        waiting = [filler.send("g/r", b'{"n": 1}'), neighbour.send("g/r", b'{"n": 2}')]
        for number in range(20):
            assert await other.publish("g/r", b'{"n": %d}' % number) < 0x80
        late = make("t1")
        await neighbour.cut()
        assert await late.connect() == 0, "whoever comes later is let in"
        waiting[0] = late.send("g/r", b'{"n": 3}')
        for number in range(20):
            assert await other.publish("g/r", b'{"n": %d}' % number) < 0x80
        assert [each() for each in waiting] == [False, False]
        assert len(await site.grid("g/t1/r")) == 16
        assert await site.grid("g/t2/r") == []
        assert len(await site.grid("g/t3/r")) == 40
        await limit(site, ours, 0)
        assert use_of(site).full == frozenset()
        await until(waiting[0], "what waited is acknowledged")
        assert (await site.grid("g/t1/r"))[-1].body == b'{"n": 3}', "nothing is lost"


async def test_what_was_counted_outlives_a_restart_and_room_is_found_at_once(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours = await site.company("ours")
        await ours.terminal("t1")
        await limit(site, ours, 1)
        filler = make("t1")
        await filler.connect()
        await fill(site, ours, filler, 16)
        had = use_of(site).bytes_of(ours.actor.company_id)
    async with running_site(tmp_path) as site, peers(site) as make:
        company_id, use = ours.actor.company_id, use_of(site)
        assert use.full == {company_id}, "before anything is counted"
        assert use.bytes_of(company_id) == pytest.approx(had, rel=0.25)
        filler = make("t1")
        await filler.connect()
        acknowledged = filler.send("g/r", b'{"n": 1}')
        await use.count()
        assert not acknowledged()
        assert use.full == {company_id}
        newest = (await site.grid("g/t1/r"))[-1].time_us
        await site.store.drop_before(newest, series=["g/t1/r"])
        await use.count()
        assert use.full == frozenset()
        await until(acknowledged, "there is room")
        assert use.bytes_of(company_id) < 3 * _BODY


async def test_what_is_told(tmp_path: Path) -> None:
    async with running_site(tmp_path, limits={"company_series_mib": 1}) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await ours.terminal("t1")
        await theirs.terminal("t3")
        filler, other = make("t1"), make("t3")
        await filler.connect()
        await other.connect()
        await other.publish("g/r", body(99))
        await fill(site, ours, filler, 16)
        figures = use_of(site).figures(ours.actor.company_id)
        assert (figures.most, figures.key, figures.is_full) == (MIB, "limits.company_series_mib", True)
        attention = site.platform.gateway.services.attention
        own = await attention.overview(ours.actor.company_id, owner=ours.actor.company_id)
        assert own.series.is_full
        assert own.companies == []
        everything = await attention.overview(None, owner=1)
        first, second = everything.companies[:2]
        assert [first.company_id, second.company_id] == [ours.actor.company_id, theirs.actor.company_id]
        assert not second.is_full


async def test_a_file_that_is_no_file_of_sizes_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"companies": {"x": []}}')
    async with running_site(tmp_path) as site:
        assert use_of(site).full == frozenset()
        await use_of(site).count()


async def _counted(use: SeriesUse) -> None:
    await asyncio.gather(use.count(), use.count())


async def test_two_counts_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site:
        before = use_of(site).stats.counts
        await _counted(use_of(site))
        assert use_of(site).stats.counts >= before + 2


async def test_the_company_and_super_users_are_told_with_days_left(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"company_series_mib": 100}) as rig:
        use = rig.platform.messaging.series_use
        await use.count()
        use._counted_s = float("inf")  # it is not counted again
        use._counted.companies = {1: 90 * MIB, 2: 100 * MIB}
        use._counted.days = {1: [(now_us() - DAY_US, 80 * MIB)], 2: [(now_us(), 50 * MIB)]}
        use.look()
        told = await rig.call("get_attention", "admin")
        expected = {"limit": "limits.company_series_mib", "has": 90, "most": 100, "percent": 90.0, "days_left": 1.0}
        assert told["quotas"] == [expected]
        assert told["disk"] is None
        companies = (await rig.call("get_attention", "root"))["disk"]["companies"]
        assert companies == (await rig.call("get_platform_status", "root"))["disk"]["companies"]
        assert [(each["company_id"], each["is_full"], each["days_left"]) for each in companies] == [
            (2, True, None),
            (1, False, 1.0),
        ]
        async with rig.http.get("/metrics") as response:
            metrics = await response.text()
        assert 'terrazzo_series_company_bytes{company="2"} 1.048576e+08' in metrics
        assert "terrazzo_series_full 1.0" in metrics


async def test_a_store_that_tells_no_sizes_refuses_it_by_name(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.platform.metadata.entities.companies.tells_sizes = lambda: False
        refused = await rig.ask("update_company", "root", uid=await company_uid(rig), limit_series_mib=5)
        assert refused["code"] == 10401
        assert refused["info"].startswith("limit_series_mib: the time-series store (InfluxDB) doesn't say")
