"""Rules about terminals of several companies: each has its turn, and a fault of one is nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rule_stand import Receiver
from watch_stand import Stand, watched_company

from terrazzo.domain.refusals.entry import RefusalEntry, ToldRefusal
from terrazzo.domain.refusals.reasons import REASONS
from terrazzo.rules.looks import Looks

AWAY = {"kinds": ["offline"], "minutes": 5}


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with watched_company(tmp_path) as made:
        yield made


@pytest.fixture
async def looked_at(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The companies of what rules look at, one after the other."""
    order: list[int] = []
    look = Looks.look

    def noted(looks: Looks, subject: int, seen: Any, rules: Any, now: int) -> int | None:
        order.append(seen.company_id)
        return look(looks, subject, seen, rules, now)

    monkeypatch.setattr(Looks, "look", noted)
    return order


async def two_companies(stand: Stand, receiver: Receiver, count: int) -> tuple[int, int]:
    """One of so many terminals, and another of one; each has a rule. Their ids."""
    await stand.terminals(count, letter="a")
    await stand.rule(**AWAY, **receiver.hook)
    first = stand.actor.company_id
    await stand.found_company("two")
    await stand.terminals(1, letter="b")
    await stand.rule(**AWAY, **receiver.hook)
    return first, stand.actor.company_id


async def test_a_companys_thousands_of_terminals_do_not_keep_another_from_its_look(
    stand: Stand, receiver: Receiver, looked_at: list[int]
) -> None:
    large, small = await two_companies(stand, receiver, 2_000)
    await stand.pass_minutes(1)
    looked_at.clear()
    now = stand.now
    for terminal in stand.registry.terminals():  # the large company's are due before
        stand.watch._timers.hasten(terminal.id, now - (terminal.company_id == large))
    await stand.settle()
    assert looked_at.index(small) <= 1
    assert looked_at.count(large) == 2_000


async def test_a_terminal_that_can_not_be_looked_at_rests_and_the_others_are_looked_at(
    stand: Stand, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_companies(stand, receiver, 20)
    bad = next(each.id for each in stand.registry.terminals() if each.uid == "a0007")
    look, faults = Looks.look, [0]

    def failing(looks: Looks, subject: int, *rest: Any) -> int | None:
        if subject == bad:
            faults[0] += 1
            raise ValueError("planted")
        return look(looks, subject, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Looks, "look", failing)
        await stand.pass_minutes(10)
        opened = {subject for _, subject in await stand.open_rows()}
        assert len(opened) == 20, "all but one, of both companies"
        assert bad not in opened
        assert 1 <= stand.watch.stats.faults <= 11, "it rests for a minute each time"
        assert stand.watch.stats.faults <= faults[0]
    await stand.pass_minutes(10)
    assert bad in {subject for _, subject in await stand.open_rows()}, "it is looked at again"


async def test_a_row_that_can_not_be_written_keeps_no_other_from_it(
    stand: Stand, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_companies(stand, receiver, 20)
    bad = next(each.id for each in stand.registry.terminals() if each.uid == "a0007")
    apply = stand.watch._store.apply

    async def failing(changes: Any) -> None:
        if any(key.subject == bad for key, _ in changes.opened):
            raise ValueError("planted")
        await apply(changes)

    monkeypatch.setattr(stand.watch._store, "apply", failing)
    await stand.pass_minutes(10)
    assert len(await stand.open_rows()) == 20
    assert stand.watch.stats.faults >= 1


async def test_a_rule_that_can_not_be_looked_up_rests_and_the_others_are(
    stand: Stand, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = stand.watch._scopes.resolve
    bad = stand.actor.company_id

    async def failing(rule: Any) -> Any:
        if rule.company_id == bad:
            raise ValueError("planted")
        return await resolve(rule)

    monkeypatch.setattr(stand.watch._scopes, "resolve", failing)
    await two_companies(stand, receiver, 3)
    await stand.pass_minutes(10)
    assert len(await stand.open_rows()) == 1, "the other company's"
    assert stand.watch.stats.faults >= 1
    monkeypatch.setattr(stand.watch._scopes, "resolve", resolve)
    await stand.pass_minutes(10)
    assert len(await stand.open_rows()) == 4


async def test_a_companys_many_rules_do_not_keep_another_from_its_own(
    stand: Stand, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = stand.actor.company_id
    for number in range(60):
        await stand.rule(name=f"r{number}", **AWAY, **receiver.hook)
    await stand.found_company("two")
    await stand.rule(**AWAY, **receiver.hook)
    small, order = stand.actor.company_id, []
    resolve = stand.watch._scopes.resolve

    async def noted(rule: Any) -> Any:
        order.append(rule.company_id)
        return await resolve(rule)

    monkeypatch.setattr(stand.watch._scopes, "resolve", noted)
    await stand.settle()
    assert order.index(small) <= 1
    assert order.count(large) == 60


async def test_refusals_of_a_companys_terminals_leave_room_for_anothers(
    stand: Stand, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo.rules.watch._MOST_REFUSED", 20)
    await two_companies(stand, receiver, 40)
    await stand.settle()
    terminals = sorted(stand.registry.terminals(), key=lambda each: each.uid)  # the large company's come first
    entry = RefusalEntry("wrong_pin", "203.0.113.7", stand.now, stand.now, 1)
    assert not REASONS[entry.reason].is_ordinary
    stand.watch.on_refusals([ToldRefusal(each, entry) for each in terminals])
    assert stand.watch.stats.untold_refusals == 30, "the other company's is told"
    await stand.settle()
    stand.watch.on_refusals([ToldRefusal(each, entry) for each in terminals])
    assert stand.watch.stats.untold_refusals == 60, "what was told makes room"
