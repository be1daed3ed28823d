"""``kill -9`` again and again, with labels open and edges armed: no event twice, none missing, no label lost."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from mapping_child import START_US, TERMINAL, open_parts, points

from length import rounds
from loaded_process import loaded_child
from support import new_tasks
from terrazzo.access.users import SYSTEM
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.domain.actor import Actor, Role
from terrazzo.mapping.effect_queue import PREFIX, EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter

ROUNDS = {"sqlite": rounds(8, 100), "postgresql": rounds(4, 30)}
SCRIPT = [
    ["T", "", "", "STA", "$AdapterID-1.T", ""],
    ["RUN", "", "", "STA", "$AdapterID-1.RUN", ""],
    ["N", "", "", "STT", "Changed", "3600", "", {"fn": "count", "of": "T"}],
    ["HOT", "", "", "EVNT", "$AdapterID-1.T", "", "x > 80 and RUN < 2"],
]


async def prepare(folder: Path) -> None:
    """A terminal, its object, a mapping and a retainer that runs."""
    store, database, entities = await open_parts(folder)
    company = await entities.companies.create(SYSTEM, {"name": "c"})
    actor = Actor(user_id=1, username="u", company_id=company["id"], role=Role.ADMIN)
    config = await entities.configurations.create(actor, {"name": "c"})
    terminal = {"uid": TERMINAL, "name": "k", "type": "Other", "mode": "pwd", "username": "u", "pin": "p"}
    await entities.terminals.create(actor, {**terminal, "config_id": config["uid"]})
    mapping = await entities.mappings.create(actor, {"name": "m", "script": SCRIPT})
    given = {"name": "o", "mapping_id": mapping["uid"], "terminal_list": [TERMINAL]}
    item = await entities.objects.create(actor, given)
    script = [["RUN", "on", "on", "1", ""]]
    retainer = {"name": "r", "object_list": [str(item["id"])], "script": script}
    made = await entities.retainers.create(actor, retainer)
    await entities.retainers.set_active(actor, made["uid"], True)
    await store.close()
    await database.close()


def run_and_kill(folder: Path, first: int, alive_s: float) -> int:
    """The number up to which messages were acknowledged before the process died."""
    program = Path(__file__).with_name("mapping_child.py")
    with loaded_child(program, str(folder), str(first)) as (child, said):
        assert said.readline() == "ready\n"
        time.sleep(alive_s)  # how long it lives is the point of the round, not a wait for something
        child.kill()
        lines = [line for line in said.read().splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) if lines else first


def expected(count: int) -> tuple[list[int], list[tuple[int, int | None]]]:
    """Seconds of the events, and of opening and closing of the labels, after ``count`` messages."""
    events, labels, is_hot, is_open = [], [], False, False
    for number in range(count):
        said = points(number)
        hot = said["T"] > 80 and said["RUN"] < 2
        events += [number] if hot and not is_hot else []
        is_hot = hot
        if said["RUN"] == 1 and not is_open:
            labels.append((number, None))
        elif said["RUN"] != 1 and is_open:
            labels[-1] = (labels[-1][0], number)
        is_open = said["RUN"] == 1
    return events, labels


def seconds(time_us: int | None) -> int | None:
    return None if time_us is None else (time_us - START_US) // 1_000_000


@pytest.mark.parametrize("kind", ROUNDS)
async def test_kills_leave_every_event_and_label_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "postgresql":
        monkeypatch.setenv("TERRAZZO_DATABASE__URL", request.getfixturevalue("postgresql").migrated_database())
    await prepare(tmp_path)
    pick, acknowledged = random.Random(), 0
    for _ in range(ROUNDS[kind]):
        acknowledged = run_and_kill(tmp_path, acknowledged, pick.uniform(0, 0.12))
    assert acknowledged > ROUNDS[kind]
    store, database, _ = await open_parts(tmp_path)
    try:
        effect_queue = EffectQueue(EffectWriter(database), new_tasks())
        await effect_queue.start(await store.notes(PREFIX))
        await effect_queue.stop()
        async with database.reading() as connection:
            events = list((await connection.execute(sa.select(EVENT.c.created).order_by(EVENT.c.id))).scalars())
            query = sa.select(LABEL.c.opened_at, LABEL.c.close_at).order_by(LABEL.c.id)
            labels = [tuple(row) for row in await connection.execute(query)]
        (newest,) = await store.latest([f"g/{TERMINAL}/r"], 1)
        stored = seconds(newest.time_us) + 1
        assert stored >= acknowledged
        assert ([seconds(time) for time in events], [tuple(map(seconds, row)) for row in labels]) == expected(stored)
    finally:
        await store.close()
        await database.close()
