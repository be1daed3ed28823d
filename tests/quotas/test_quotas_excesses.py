"""What is over a new or lowered quota: it is named with its limit, by the start and the doctor alike, and stays."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec
import pytest

from api.api_rig import Rig, open_rig
from client_certificates import ClientCa
from metadata.registry_stand import ROOT, Stand, make_stand
from metadata.sealed_stand import HOOK
from quotas.test_quotas_events import event, opened
from quotas.test_quotas_records import send
from terrazzo.cli.checks import examine
from terrazzo.config.limits import LimitsSection
from terrazzo.config.sections import Config, load_config
from terrazzo.database.database import Database
from terrazzo.database.usage import Holder, Use, add_use, count_missing
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.metadata.excesses import ALL_COUNTED, MOST_NAMED, find_excesses

DOWNLOAD, DISCARD = "/object/api/v1/file/download", "/object/api/v1/file/discard"
STAYS = ": what is there stays"


async def fill(stand: Stand) -> None:
    """Two or three of each kind in the first company, one in the second."""
    await count_missing(stand.database, ALL_COUNTED)
    for uid in ("t1", "t2"):
        await stand.terminal(uid)
    await stand.terminal("t3", stand.second)
    entities, first = stand.entities, stand.first
    for number in range(2):
        await entities.api_keys.create_hashed(
            first, {"name": f"k{number}"}, {"key_hash": f"{number}" * 64, "expires": 2**50}
        )
        await entities.authorities.create(first, {"name": f"a{number}", "certificate": ClientCa(f"A{number}").pem})
    for name, kinds in (("a", ["offline"]), ("b", ["silent", "back"]), ("plain", ["event"]), ("stopped", ["offline"])):
        made = await entities.rules.create(first, {**HOOK, "name": name, "kinds": kinds})
        await entities.rules.set_active(first, made["id"], name != "stopped")
    async with stand.database.writing() as connection:
        await add_use(connection, "upload", {Holder(first.company_id): Use(3, 9_000)})
    company = first.company_id
    effects = [
        event(1, 17, company),
        event(2, 17, company),
        event(3, 18, company),
        event(4, 19, stand.second.company_id),
    ]
    await EffectWriter(stand.database).apply([(1, effects)])


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("company_records", 1, "company {0} has 2 records of terminal, more than limits.company_records = 1"),
        ("company_files", 2, "company {0} has 3 files, more than limits.company_files = 2"),
        (
            "company_file_bytes",
            8_999,
            "company {0} has 9,000 bytes of files, more than limits.company_file_bytes = 8,999",
        ),
        ("company_events", 2, "company {0} has 3 rows of event, more than limits.company_events = 2"),
        ("object_events", 1, "object 17 of company {0} has 2 rows of event, more than limits.object_events = 1"),
        ("company_api_keys", 1, "company {0} has 2 API keys, more than limits.company_api_keys = 1"),
        ("company_authorities", 1, "company {0} has 2 authorities, more than limits.company_authorities = 1"),
        (
            "company_rules",
            1,
            "company {0} has 2 started rules about terminals, objects and times, more than limits.company_rules = 1",
        ),
    ],
)
async def test_who_has_more_than_a_limit_is_named(
    database: Database, tmp_path: Path, limit: str, most: int, said: str
) -> None:
    stand = await make_stand(database, tmp_path)
    await fill(stand)
    assert await find_excesses(database, LimitsSection()) == []
    found = await find_excesses(database, msgspec.structs.replace(LimitsSection(), **{limit: most}))
    assert said.format(stand.first.company_id) + STAYS in found
    assert not [each for each in found if f"limits.{limit} " not in each], "other limits are not touched"
    assert await find_excesses(database, msgspec.structs.replace(LimitsSection(), **{limit: 9_000})) == []


async def test_bytes_of_events_and_of_records_are_named(database: Database, tmp_path: Path) -> None:
    stand = await make_stand(database, tmp_path)
    await fill(stand)
    for limit, unit in (("company_event_bytes", "bytes of event"), ("company_record_bytes", "bytes of records")):
        found = await find_excesses(database, msgspec.structs.replace(LimitsSection(), **{limit: 2}))
        ours = [each for each in found if each.startswith(f"company {stand.first.company_id} has ")]
        assert len(ours) == 1
        assert f" {unit}, more than limits.{limit} = 2" in ours[0]


async def test_a_companys_own_limit_is_named_as_its_own(database: Database, tmp_path: Path) -> None:
    stand = await make_stand(database, tmp_path)
    await fill(stand)
    company = stand.first.company_id
    row = await stand.entities.companies.item(ROOT, company)
    await stand.entities.companies.update(ROOT, row["uid"], {"limit_files": 1, "limit_events": 2, "limit_rules": 1})
    assert await find_excesses(database, LimitsSection()) == [
        f"company {company} has 3 files, more than its own limit_files = 1{STAYS}",
        f"company {company} has 3 rows of event, more than its own limit_events = 2{STAYS}",
        f"company {company} has 2 started rules about terminals, objects and times,"
        f" more than its own limit_rules = 1{STAYS}",
    ]


async def test_those_that_are_not_named_are_counted_for_each_limit(database: Database) -> None:
    """Many who are over one limit don't hide who is over another one."""
    await count_missing(database, ALL_COUNTED)
    async with database.writing() as connection:
        many = {Holder(number): Use(10 + number, 1) for number in range(1, MOST_NAMED + 6)}
        await add_use(connection, "terminal", many)
        await add_use(connection, "upload", {Holder(3): Use(7, 70)})
    limits = msgspec.structs.replace(LimitsSection(), company_records=10, company_files=5)
    found = await find_excesses(database, limits)
    assert len(found) == MOST_NAMED + 2
    assert found[0].startswith(f"company {MOST_NAMED + 5} has {MOST_NAMED + 15} records"), "who has most comes first"
    assert found[MOST_NAMED].startswith("5 more have more than limits.company_records")
    assert found[-1].startswith("company 3 has 7 files, more than limits.company_files = 5")


async def doctors(folder: Path, **limits: int) -> list[str]:
    """What the doctor says of quotas."""
    ports = {f"TERRAZZO_{name}": "0" for name in ("HTTP__PORT", "WEBSOCKET__PORT", "MQTT__PORT")}
    config = load_config(None, ports | {"TERRAZZO_MQTT__WEBSOCKET_PORT": "off", "TERRAZZO_DATA__DIR": str(folder)})
    lowered: Config = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, **limits))
    findings = await asyncio.to_thread(lambda: list(examine(lowered)))
    return [finding.found for finding in findings if finding.part == "quotas"]


async def download(rig: Rig, uid: str) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.get(f"{DOWNLOAD}/{uid}", headers=headers) as response:
        return response.status, await response.read()


async def discard(rig: Rig, uid: str) -> int:
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}"}
    async with rig.http.post(DISCARD, json={"uid": uid}, headers=headers) as response:
        return int((await response.json())["code"])


@pytest.mark.parametrize("limits", [{"company_files": 2}, {"company_file_bytes": 2_500}])
async def test_files_over_a_lowered_quota_are_named_read_and_deleted_and_none_is_added(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, limits: dict[str, int]
) -> None:
    async with open_rig(tmp_path) as rig:
        uids = [(await send(rig, bytes((number,)) * 1_000))["result"]["uid"] for number in range(4)]
        tokens = rig.tokens
    (key,) = limits
    name = "files" if key == "company_files" else "bytes of files"
    said = f"company 1 has {4 if key == 'company_files' else '4,000'} {name}, more than limits.{key} = {limits[key]:,}"
    assert await doctors(tmp_path, **limits) == [said + STAYS]
    caplog.set_level(logging.WARNING)
    async with open_rig(tmp_path, limits=limits, tokens=tokens) as rig:
        assert any(said in record.getMessage() for record in caplog.records)
        for number, uid in enumerate(uids):
            assert await download(rig, uid) == (200, bytes((number,)) * 1_000)
        for uid in uids[:2]:
            assert f"limits.{key}" in (await send(rig, b"x" * 1_000))["info"]
            assert await discard(rig, uid) == 200
            assert b"no record" in (await download(rig, uid))[1]
        assert f"limits.{key}" in (await send(rig, b"x" * 1_000))["info"], "there are as many as there may be"
        assert await discard(rig, uids[2]) == 200
        assert (await send(rig, b"x" * 1_000))["code"] == 200
    assert await doctors(tmp_path, **limits) == []


async def test_the_doctor_names_records_events_and_labels_over_their_limits(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        for uid in ("t1", "t2"):
            await rig.add_terminal(uid)
        queue = rig.platform.parts.objects.mapper.effect_queue
        for each in (event(1), event(2), event(3), opened(1, "A"), opened(2, "B")):
            queue.seal([each])
        queue.on_committed()
        await queue.settled(queue.last)
    assert await doctors(tmp_path) == []
    found = await doctors(tmp_path, company_records=3, company_events=1, object_events=2)
    assert found == [
        f"company 1 has 4 records of user, more than limits.company_records = 3{STAYS}",
        f"company 1 has 3 rows of event, more than limits.company_events = 1{STAYS}",
        f"company 1 has 2 rows of label, more than limits.company_events = 1{STAYS}",
        f"object 17 of company 1 has 3 rows of event, more than limits.object_events = 2{STAYS}",
    ]
