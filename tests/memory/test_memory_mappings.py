"""A company's mappings take a quarter of ``limits.memory_mib``: more are refused by its name, fewer never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from platform_site import Company, Site, running_site
from terrazzo.domain.actor import Actor
from terrazzo.errors import QuotaExceeded
from waiting import until

ROWS = 60


def rows(count: int = ROWS) -> list[list[str]]:
    return [[f"V{n}", f"variable {n}", "", "STA", f"t1.p{n}", ""] for n in range(count)]


async def create(company: Company, count: int = ROWS) -> Any:
    return await company.site.entities.mappings.create(company.actor, {"name": "m", "script": rows(count)})


async def create_many(company: Company, made: list[Any]) -> None:
    for _ in range(20):
        made.append(await create(company))


def counted(site: Site, actor: Actor) -> int:
    kept = site.platform.parts.objects.mapper.engine.catalogue.scripts.kept().get(actor.company_id)
    return 0 if kept is None else kept.bytes


async def test_what_makes_them_more_is_refused_and_the_other_company_has_its_own(tmp_path: Path) -> None:
    async with running_site(tmp_path, limits={"memory_mib": 2}) as site:
        ours, theirs = await site.company("A"), await site.company("B")
        made = [await create(ours) for _ in range(2)]
        with pytest.raises(QuotaExceeded, match=r"limits\.memory_mib"):
            await create_many(ours, made)
        assert len(made) <= 4, "half a MiB"
        mappings, objects = site.entities.mappings, site.entities.objects
        with pytest.raises(QuotaExceeded, match=r"limits\.memory_mib"):
            await mappings.update(ours.actor, made[0]["uid"], {"script": rows(ROWS * 3)})
        await mappings.update(ours.actor, made[0]["uid"], {"name": "as long as before"})
        await create(theirs)
        await ours.terminal("t1")
        values = {"name": "o", "terminal_list": ["t1"], "mapping_id": made[0]["uid"]}
        await objects.create(ours.actor, values)
        await until(lambda: counted(site, ours.actor) > 50_000, "it is read")
        memory = site.platform.gateway.services.memory
        await until(lambda: memory.by_kind()["mappings"] > counted(site, ours.actor), "it is told")
        await mappings.update(ours.actor, made[0]["uid"], {"script": rows(1)})
        for each in made[1:]:
            await mappings.delete(ours.actor, each["uid"])
        await create(ours)


async def test_what_was_there_works_on_and_no_object_gets_one_beyond_it(tmp_path: Path) -> None:
    """As where ``limits.memory_mib`` was more, or was not looked at, when they were made."""
    async with running_site(tmp_path) as site:
        company = await site.company("A")
        await company.terminal("t1")
        mapping, other = await create(company, 200), await create(company, 200)
        values = {"name": "o", "terminal_list": ["t1"], "mapping_id": mapping["uid"]}
        kept = await site.entities.objects.create(company.actor, values)
    async with running_site(tmp_path, limits={"memory_mib": 2}) as site:
        objects = site.entities.objects
        await until(lambda: counted(site, company.actor) > 150_000, "what is used is read")
        with pytest.raises(QuotaExceeded, match=r"limits\.memory_mib"):
            await objects.update(company.actor, kept["uid"], {"mapping_id": other["uid"]})
        await objects.create(company.actor, values)  # of that one the table is there
        await objects.update(company.actor, kept["uid"], {"name": "n", "mapping_id": mapping["uid"]})


async def test_rows_that_were_read_count_and_go_before_anybody_is_refused(tmp_path: Path) -> None:
    async with running_site(tmp_path, limits={"memory_mib": 2}) as site:
        ours, theirs = await site.company("A"), await site.company("B")
        memory = site.platform.gateway.services.memory
        owner = ours.actor.company_id
        for company in (ours, theirs):
            made = await create(company, 20)
            await site.entities.mappings.item(company.actor, made["uid"])
        kept = site.entities.kept_rows()
        assert kept[owner].bytes > 1_000
        await until(lambda: memory.by_kind()["rows"] == sum(each.bytes for each in kept.values()), "it is counted")
        with memory.holding("imports", owner) as held:
            held.resize(memory.most_bytes - 100_000)
            await until(lambda: owner not in site.entities.kept_rows(), "the company's go")
            assert theirs.actor.company_id in site.entities.kept_rows()
            assert memory.stats.given_up["rows"] >= kept[owner].bytes
