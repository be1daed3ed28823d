"""Events and labels are replaced some hundred rows at a time: others write in between, and a kill does no harm."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from replay_stand import PLAIN, RICH, T0, Stand

from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.mapping.replay import replacement
from terrazzo.mapping.replay.run import Disturbed, _Attempt
from turns_of_loop import longest_turn

SECONDS = 200
REPORTS = [
    (at_s + part, uid, points)
    for at_s in range(0, SECONDS, 2)
    for part, uid, points in (
        (0.0, "t1", {"T": 50 + at_s % 40}),
        (0.1, "t2", {"RUN": at_s // 2 % 3}),
        (0.2, "t1", {"T": 50}),
    )
]


class Transactions:
    """How many rows of events and labels each transaction changed."""

    def __init__(self, stand: Stand) -> None:
        self.rows: list[int] = []
        self._now = 0
        engine = stand.database.engine.sync_engine
        sa.event.listen(engine, "after_cursor_execute", self._on_execute)
        sa.event.listen(engine, "commit", self._on_commit)

    def _on_execute(self, _connection: Any, cursor: Any, statement: str, given: Any, _of: Any, many: bool) -> None:
        if statement.startswith(("UPDATE event ", "UPDATE label ")):
            self._now += len(given) if many else 1
        elif statement.startswith(("DELETE FROM event ", "DELETE FROM label ")):
            self._now += cursor.rowcount

    def _on_commit(self, _connection: Any) -> None:
        if self._now:
            self.rows.append(self._now)
        self._now = 0


async def happened(stand: Stand) -> tuple[Any, Any]:
    events, labels = [[{**row, "id": 0} for row in await stand.rows(table)] for table in (EVENT, LABEL)]
    return events, labels


@pytest.mark.parametrize("end_s", [None, SECONDS - 50])
async def test_a_replay_that_ends_in_between_and_is_done_again_ends_as_a_whole_one(
    new_stand: Any, monkeypatch: pytest.MonkeyPatch, end_s: float | None
) -> None:
    whole, stand = await new_stand(PLAIN), await new_stand(PLAIN)
    for each in (whole, stand):
        await each.report(*REPORTS)
        await each.remap(RICH)
    await whole.replay(20, end_s)
    monkeypatch.setattr(replacement, "_SLICE", 4)
    check, done = _Attempt._check, 0

    async def break_off(self: _Attempt, *given: Any) -> None:
        nonlocal done
        done += 1
        if done == at:
            raise ZeroDivisionError("nobody knows why")
        await check(self, *given)

    monkeypatch.setattr(_Attempt, "_check", break_off)
    at = 0
    for at in (2, 5, 9, 12, 10_000):
        done = 0
        row = await stand.ended(await stand.submit(20, end_s))
        assert row["state"] == ("done" if at == 10_000 else "failed")
    assert done > 12
    assert await happened(stand) == await happened(whole)
    assert (row["events_after"], row["labels_after"]) == (
        sum(1 for each in await whole.events() if each[0] >= 20 and (end_s is None or each[0] <= end_s)),
        sum(1 for each in await whole.labels() if each[1] >= 20 and (end_s is None or each[1] <= end_s)),
    )


async def test_others_write_between_the_rows_of_a_replay(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 events that change held the only writer for 18 s."""
    monkeypatch.setattr(replacement, "_SLICE", 4)
    await stand.report(*REPORTS)
    renamed = [[*PLAIN[2][:1], "Very hot", *PLAIN[2][2:]]]
    await stand.remap([*PLAIN[:2], *renamed])
    transactions, ended = Transactions(stand), list[str]()

    async def other() -> None:
        while not transactions.rows:  # noqa: ASYNC110 - a counter of SQLAlchemy's events
            await asyncio.sleep(0)
        async with stand.database.writing() as connection:
            await connection.execute(sa.text("UPDATE company SET name = name"))
        ended.append("other")

    async def replayed() -> None:
        await stand.replay(-10, SECONDS)
        ended.append("replay")

    await asyncio.wait_for(asyncio.gather(replayed(), other()), 60)
    assert ended == ["other", "replay"]
    assert len(transactions.rows) >= 3
    assert max(transactions.rows) <= 5
    assert {row["label_en"] for row in await stand.rows(EVENT)} == {"Very hot"}


async def test_a_report_that_comes_in_between_begins_it_anew(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events are not those of the slices before it, and none of them is lost."""
    monkeypatch.setattr(replacement, "_SLICE", 4)
    await stand.report(*REPORTS)
    check, disturbed, done = _Attempt._check, 0, 0

    async def disturb(self: _Attempt, *given: Any) -> None:
        nonlocal disturbed, done
        done += 1
        try:
            await check(self, *given)
        except Disturbed:
            disturbed += 1
            raise

    begin = _Attempt._replace_labels

    async def late(self: _Attempt, *given: Any) -> Any:
        if not disturbed:
            await stand.report((61.5, "t1", {"T": 95}))
        return await begin(self, *given)

    monkeypatch.setattr(_Attempt, "_check", disturb)
    monkeypatch.setattr(_Attempt, "_replace_labels", late)
    await stand.replay(-10, SECONDS)
    assert disturbed == 1
    assert (61.5, "HOT", "95") in await stand.events()


async def test_one_label_with_many_openings_is_replaced_in_parts(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_SLICE", 4)
    await stand.report(*((at_s, "t2", {"RUN": at_s % 2}) for at_s in range(60)))
    before = await stand.labels()
    assert sum(each[0] == "RUN" for each in before) == 30
    async with stand.database.writing() as connection:
        await connection.execute(sa.text("UPDATE label SET value = 'other'"))
    transactions = Transactions(stand)
    row = await stand.replay(-10, 100)
    assert await stand.labels() == before
    assert len(transactions.rows) >= 6
    assert max(transactions.rows) <= 5
    assert (row["labels_before"], row["labels_after"]) == (30, 30)


async def flapped(stand: Stand, count: int) -> dict[str, Any]:
    """A label that is open from 0 to 90 s, as a row says; others say that it flapped meanwhile. Returns the first."""
    await stand.report((0, "t2", {"RUN": 1}), (90, "t2", {"RUN": 0}))
    (row,) = [each for each in await stand.rows(LABEL) if each["code"] == "RUN"]
    flaps = [row | {"opened_at": T0 + at * 1_000, "close_at": T0 + at * 1_000 + 500} for at in range(1, count + 1)]
    for each in flaps:
        del each["id"]
    async with stand.database.writing() as connection:
        await connection.execute(sa.insert(LABEL), flaps)
    return row


@pytest.mark.parametrize("end_s", [None, 50, 100])
async def test_a_label_with_many_rows_and_few_openings_is_replaced_some_rows_at_a_time(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, end_s: float | None
) -> None:
    """200,000 rows that went at once held the only writer, and the loop, for seconds."""
    monkeypatch.setattr(replacement, "_SLICE", 4)
    row = await flapped(stand, 40)
    async with stand.database.writing() as connection:  # somebody closed one of them by hand
        await connection.execute(LABEL.update().where(LABEL.c.id == row["id"] + 20).values(by_hand=1))
    said = await stand.replay(-10, end_s, dry_run=True)
    transactions = Transactions(stand)
    done = await stand.replay(-10, end_s)
    assert max(transactions.rows) <= 5
    assert sum(transactions.rows) >= 39
    counts = ("labels_before", "labels_after")
    assert [said[name] for name in counts] == [done[name] for name in counts]
    inside = [each for each in await stand.labels() if end_s is None or each[1] <= end_s]
    assert (done["labels_before"], done["labels_after"]) == (41, len(inside))
    again = await stand.replay(-10, end_s)
    assert again["labels_after"] == again["labels_before"] == done["labels_after"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_many_rows_of_a_label_hold_nobody_up(stand: Stand, dry_run: bool) -> None:
    await flapped(stand, 20_000)
    async with longest_turn() as longest:
        row = await stand.replay(-10, None, dry_run=dry_run)
    assert (row["labels_before"], row["labels_after"]) == (20_001, 1)
    assert longest.cpu_s < 0.05
