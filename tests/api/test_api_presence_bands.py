"""A terminal's connections over time: kept over a restart, and told to its own company alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from api_rig import Rig, open_rig

from terrazzo.database.tables.presence import PRESENCE_DAY
from terrazzo.ports.bus import Presence
from terrazzo.terminals.presence_bands import MOST_A_DAY, STOPPED
from terrazzo.terminals.presence_log import KEPT_DAYS
from terrazzo.times import DAY_US, format_iso, now_us

RANGE = {"start_time": "2000-01-01 00:00:00", "end_time": "2000-12-01 00:00:00"}


def note(rig: Rig, uid: str, *, online: bool, reason: str = "") -> None:
    terminal = rig.services.registry.terminal(uid)
    client: Any = SimpleNamespace(identity=SimpleNamespace(terminal=terminal))
    rig.services.presence_log.on_presence(client, Presence(online=online, disconnect_reason=reason))


def lately() -> dict[str, str]:
    return {"start_time": format_iso(now_us() - DAY_US), "end_time": format_iso(now_us() + DAY_US)}


@pytest.mark.usefixtures("each_database")
async def test_bands_are_read_by_whoever_sees_the_terminal(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    for is_online in (True, False) * 2:
        note(rig, "t1", online=is_online, reason="" if is_online else "keep alive")
    found = await rig.call("get_presence_list", "viewer", terminal_id="t1", **lately())
    assert found[0]["state"] == "unknown"
    assert (found[-1]["state"], found[-1]["reason"], found[-1]["end"]) == ("offline", "keep alive", None)
    other = await rig.call("get_presence_list", terminal_id="t2", **lately())
    assert [each["state"] for each in other] == ["unknown"]
    assert (await rig.ask("get_presence_list", "stranger", terminal_id="t1", **lately()))["code"] == 10404
    back = {"start_time": RANGE["end_time"], "end_time": RANGE["start_time"]}
    assert (await rig.ask("get_presence_list", terminal_id="t1", **back))["code"] == 10401
    assert (await rig.ask("get_presence_list", terminal_id="t1", **RANGE | {"end_time": "2002-01-01 00:00:00"}))[
        "code"
    ] == 10401


@pytest.mark.usefixtures("each_database")
async def test_what_is_read_while_it_is_written_is_told_once_and_whole(rig: Rig) -> None:
    """The task writes each few seconds, and everyone who looks at a terminal writes before."""
    await rig.add_terminal("t1")
    log = rig.services.presence_log
    looks = []
    for number in range(40):
        note(rig, "t1", online=number % 2 == 0, reason=f"end {number}")
        looks.append(asyncio.create_task(log.write()))
        await asyncio.sleep(0)
    await asyncio.gather(*looks)
    found = await rig.call("get_presence_list", terminal_id="t1", **lately())
    ends = [each["reason"] for each in found if each["state"] == "offline"]
    assert ends == [f"end {number}" for number in range(1, 40, 2)]


async def test_a_restart_ends_connections_and_says_so(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.add_terminal("t1")
        note(rig, "t1", online=True)
        tokens = rig.tokens
    async with open_rig(tmp_path, tokens=tokens) as rig:
        note(rig, "t1", online=True)
        found = await rig.call("get_presence_list", terminal_id="t1", **lately())
        assert found[-1]["state"] == "online"
        stopped = [each for each in found if each["state"] == "offline"]
        assert [each["reason"] for each in stopped] == [STOPPED]


@pytest.mark.usefixtures("each_database")
async def test_what_flaps_is_one_row_a_day_and_the_oldest_go(rig: Rig) -> None:
    record_id = await rig.add_terminal("t1")
    log = rig.services.presence_log
    for number in range(300):
        note(rig, "t1", online=number % 2 == 0)
        if number % 50 == 0:
            await log.write()
    old = {"terminal_id": record_id, "day": now_us() // DAY_US - KEPT_DAYS - 1, "log": b"\x92\x90\x00"}
    async with rig.platform.metadata.database.writing() as connection:
        await connection.execute(PRESENCE_DAY.insert(), [old, old | {"day": old["day"] - 1}])
    await log.write()
    await log.prune()
    query = sa.select(PRESENCE_DAY).where(PRESENCE_DAY.c.terminal_id == record_id)
    async with rig.platform.metadata.database.reading() as connection:
        rows = (await connection.execute(query)).all()
    assert len(rows) in (1, 2)  # midnight may have passed
    assert all(len(row.log) < 60 * MOST_A_DAY for row in rows)
    assert log.stats.written >= 300
