"""A range made again: as if the mapping had always been so, and nothing outside of it touched."""

from __future__ import annotations

from typing import Any

from replay_stand import PLAIN, RICH, Stand

from terrazzo.database.tables.events import EVENT, LABEL

STORY: list[tuple[float, str, dict[str, Any]]] = [
    (0, "t1", {"T": 50}),
    (1, "t2", {"RUN": 0}),
    (2, "t1", {"T": 70}),
    (3, "t2", {"RUN": 1}),
    (4, "t1", {"T": 90}),
    (5, "t2", {"RUN": 0}),
    (6, "t1", {"T": 40}),
    (7, "t1", {"T": 95}),
    (8, "t2", {"RUN": 1}),
    (9, "t1", {"T": 50}),
]


async def test_a_replay_under_the_same_mapping_changes_nothing(stand: Stand) -> None:
    await stand.report(*STORY)
    before = [await stand.mosaic(), await stand.rows(EVENT), await stand.rows(LABEL)]
    row = await stand.replay(-10, 100)
    assert [await stand.mosaic(), await stand.rows(EVENT), await stand.rows(LABEL)] == before
    assert [code for _, code, _ in await stand.events()] == ["HOT", "HOT"]
    assert {label[0] for label in await stand.labels()} == {"RUN", "T"}
    counts = [row[f"{name}_{when}"] for name in ("mosaic", "events", "labels") for when in ("before", "after")]
    assert counts == [10, 10, 2, 2, 3, 3]
    assert (row["records_total"], row["records_done"], row["records_skipped"]) == (10, 10, 0)


async def test_a_replay_makes_what_the_new_mapping_would_have_made(stand: Stand, new_stand: Any) -> None:
    await stand.report(*STORY)
    await stand.remap(RICH)
    await stand.replay(-10, None)
    oracle = await new_stand(RICH)
    await oracle.report(*STORY)
    assert await stand.everything() == await oracle.everything()
    assert (await stand.events())[0] == (2, "HOT", "70")


async def test_only_the_range_changes_and_what_was_before_it_counts(stand: Stand, new_stand: Any) -> None:
    await stand.report(*STORY)
    was, rich = await stand.everything(), await new_stand(RICH)
    await rich.report(*STORY)
    would = await rich.everything()
    await stand.remap(RICH)
    await stand.replay(3, 5)
    mosaic, events, _ = await stand.everything()
    for now, old, new in ((mosaic, was[0], would[0]), (events, was[1], would[1])):
        outside = [each for each in old if not 3 <= each[0] <= 5]
        inside = [each for each in new if 3 <= each[0] <= 5]
        assert now == sorted(outside + inside, key=lambda each: each[0])


async def test_a_dry_run_counts_and_changes_nothing(stand: Stand) -> None:
    await stand.report(*STORY)
    await stand.remap([row for row in PLAIN if row[0] != "RUN"])
    before = await stand.everything()
    counted = await stand.replay(-10, 100, dry_run=True)
    assert await stand.everything() == before
    done = await stand.replay(-10, 100)
    names = [f"{name}_{when}" for name in ("mosaic", "events", "labels") for when in ("before", "after")]
    assert [counted[name] for name in names] == [done[name] for name in names] == [10, 6, 2, 2, 3, 1]


async def test_what_people_did_about_an_event_is_kept_where_it_occurs_again(stand: Stand) -> None:
    from terrazzo.events.events import ACKNOWLEDGED, EventRecords

    await stand.report(*STORY)
    book = EventRecords(stand.database, zone=None)
    first, second = await stand.rows(EVENT)
    await book.move(stand.actor, first["id"], ACKNOWLEDGED, comment="seen")
    await book.comment(stand.actor, second["id"], "gone")
    await stand.remap([*PLAIN[:2], ["HOT", "New label", "", "EVNT", "$AdapterID-1.T", "", "x > 80 and RUN == 1"]])
    await stand.replay(-10, 100)
    rows = await stand.rows(EVENT)
    kept = await book.item(stand.actor, first["id"])
    assert (kept["state"], kept["label_en"], [each["text"] for each in kept["comments"]]) == (
        "acknowledged",
        "New label",
        ["seen"],
    )
    assert [(row["created"], row["state"]) for row in rows[1:]] == [(second["created"] + 1_000_000, "raised")]


async def test_events_of_one_time_keep_their_ids_whatever_comes_between_them(stand: Stand) -> None:
    at_once = [("t1", {"T": 90}), ("t2", {"RUN": 1}), ("t2", {"RUN": 0}), ("t1", {"T": 0}), ("t1", {"T": 85})]
    await stand.report((0, "t2", {"RUN": 0}), *((1, *each) for each in at_once))
    first, second = await stand.rows(EVENT)
    await stand.remap(RICH)
    await stand.replay(-10, None)
    found = [(row["id"], row["terminal_id"], row["value"]) for row in await stand.rows(EVENT)]
    assert found == [(first["id"], "t1", "90"), (second["id"], "t1", "85"), (second["id"] + 1, "t2", "90")]


async def test_offline_data_counts_from_when_it_was_collected(stand: Stand) -> None:
    await stand.report(*STORY)
    collect = await stand.entities.collects.create(stand.actor, {"name": "water"})
    given = {"project_id": collect["id"], "object_id": 1, "value": "7"}
    made = await stand.entities.collected.create(stand.actor, given)
    await stand.remap([*PLAIN, ["W", "", "", "COL", "Changed", "water", "", ""]])
    await stand.replay(-10, None)
    found = [(at, values["W"]) for at, values in await stand.mosaic() if "W" in values]
    assert [value for _, value in found] == [7]
    assert round(found[0][0] * 1e6) + 1_700_000_000_000_000 == made["collect_at"]
