"""Commands of several requests go into the journal together, and what is wrong with one of them is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from support import new_tasks
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.commands.submissions import MAX_OPEN, MAX_TOGETHER, MOST_WAITING
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import BadParameter, Conflict, Throttled
from terrazzo.ports import at_work
from waiting import until


def actor(company_id: int) -> Actor:
    return Actor(user_id=company_id, username=f"u{company_id}", company_id=company_id, role=Role.OPERATOR)


class Journal:
    """Notes which commands (by their values) each transaction had; refuses those that say ``bad``."""

    def __init__(self) -> None:
        self.transactions: list[list[str]] = []
        self.gate = asyncio.Event()
        self.on_add: Callable[[], Any] = lambda: None

    async def open_commands(self) -> list[Any]:
        return []

    async def apply(self, _changes: Sequence[Any]) -> None:
        """Keeps none."""

    async def add_requests(
        self, given: Sequence[tuple[Actor, Sequence[dict[str, Any]]]], **_: Any
    ) -> list[list[tuple[dict[str, Any], bool]]]:
        await self._add([each for _, some in given for each in some])
        return [[(row, True) for row in some] for _, some in given]

    async def _add(self, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        self.on_add()
        self.transactions.append([each["value"] for each in given])
        await self.gate.wait()
        if any(each["value"] == "bad" for each in given):
            raise BadParameter("value", "the database can't take it")
        return list(given)


class Stand:
    """A dispatcher without a terminal that listens, whose journal waits until ``go``."""

    def __init__(self) -> None:
        self.journal = Journal()
        registry = Registry()
        for number, company in ((1, 1), (2, 1), (3, 2)):
            uid = f"t{number}"
            registry.put_terminal(
                Terminal(
                    id=number, uid=uid, name=uid, company_id=company, type="Other", mode="pwd", username=uid, pin="p"
                )
            )
        self.bus: Any = SimpleNamespace(send=lambda *_, **__: False, seen=lambda _: (False, None))
        journal: Any = self.journal
        configurations: Any = None
        self.commands = CommandDispatcher(
            journal, registry=registry, bus=self.bus, configurations=configurations, tasks=new_tasks()
        )

    def give(self, value: Any, terminal_id: str = "t1", *, key: str | None = None) -> asyncio.Task[Any]:
        company = 2 if terminal_id == "t3" else 1
        return asyncio.create_task(
            self.commands.submit(actor(company), terminal_id, "SP", value, idempotency_key=key), name=str(value)
        )

    async def go(self, *given: asyncio.Task[Any]) -> list[Any]:
        for _ in range(10):
            await asyncio.sleep(0)  # each has come as far as it can
        self.journal.gate.set()
        return await asyncio.gather(*given, return_exceptions=True)


async def test_what_comes_during_a_transaction_shares_the_next_one() -> None:
    stand = Stand()
    rows = await stand.go(*(stand.give(n, f"t{1 + n % 2}") for n in range(6)))
    assert stand.journal.transactions == [["0"], ["1", "2", "3", "4", "5"]]
    assert [row["value"] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    assert stand.commands.stats.steps["queued"] == 6


async def test_other_companies_have_transactions_of_their_own_in_the_order_given() -> None:
    stand = Stand()
    given = [stand.give(0), stand.give(1), stand.give(2, key="k"), stand.give(3), stand.give(4, "t3"), stand.give(5)]
    await stand.go(*given)
    assert stand.journal.transactions == [["0"], ["1", "2", "3", "5"], ["4"]]


async def test_companies_take_turns_however_much_one_has_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.commands.submissions.MAX_TOGETHER", 1)
    stand = Stand()
    theirs = [stand.give(n) for n in range(100)]
    for _ in range(3):
        await asyncio.sleep(0)  # they wait before the other company asks
    await stand.go(*theirs, stand.give("mine", "t3"))
    assert stand.journal.transactions.index(["mine"]) == 2
    assert [each for each in stand.journal.transactions if each != ["mine"]] == [[str(n)] for n in range(100)]
    assert not len(stand.commands.submissions)


async def test_what_waits_of_a_company_is_bounded() -> None:
    stand = Stand()
    theirs = [stand.give(n, f"t{1 + n % 2}") for n in range(MOST_WAITING + 3)]
    found = await stand.go(*theirs, stand.give("mine", "t3"))
    assert [type(each) for each in found] == [dict] * (MOST_WAITING + 1) + [Throttled] * 2 + [dict]
    assert stand.commands.submissions.refused == 2
    assert not len(stand.commands.submissions)


async def test_who_holds_the_loop_is_known_by_operation_and_company() -> None:
    stand = Stand()
    seen: list[str] = []
    stand.journal.on_add = lambda: seen.append(f"{at_work.operation()} {at_work.company_id()}")
    await stand.go(stand.give(0), stand.give(1, "t3"))
    assert seen == ["commands 1", "commands 2"]
    loop = asyncio.get_running_loop()
    left = [work for work in at_work.under_way() if work.task is not None and work.task.get_loop() is loop]
    assert not left, "each is over with its commands"


async def test_a_command_that_the_database_refuses_fails_alone() -> None:
    stand = Stand()
    found = await stand.go(*(stand.give(value) for value in (0, 1, "bad", 3, 4)))
    assert isinstance(found[2], BadParameter)
    assert [row["value"] for n, row in enumerate(found) if n != 2] == ["0", "1", "3", "4"]
    assert stand.commands.stats.steps["queued"] == 4
    assert not len(stand.commands.submissions)


async def test_a_terminal_with_too_many_open_refuses_only_what_is_too_much() -> None:
    stand = Stand()
    stand.journal.gate.set()
    for first in range(0, MAX_OPEN - 1, 333):
        await asyncio.gather(*(stand.give(n) for n in range(first, first + 333)))
    found = await stand.go(stand.give("a"), stand.give("b"), stand.give("c", "t2"))
    assert [type(each) for each in found] == [dict, Conflict, dict]


async def test_a_transaction_is_bounded() -> None:
    stand = Stand()
    await stand.go(*(stand.give(n) for n in range(2 + MAX_TOGETHER)))
    assert [len(each) for each in stand.journal.transactions] == [1, MAX_TOGETHER, 1]


@pytest.mark.parametrize("value", [0, "bad"])
async def test_one_alone_is_as_before(value: Any) -> None:
    stand = Stand()
    [found] = await stand.go(stand.give(value))
    assert isinstance(found, BadParameter if value == "bad" else dict)
    assert len(stand.journal.transactions) == 1


async def test_who_is_there_and_could_not_be_sent_a_command_is_tried_before_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("terrazzo.commands.dispatcher._SWEEP_S", 0.01)
    monkeypatch.setattr("terrazzo.commands.dispatcher._LOOKED_AT", 1)
    stand, tried = Stand(), list[str]()
    stand.journal.gate.set()

    def send(uid: str, _payload: bytes, **_: Any) -> bool:
        tried.append(uid)
        return uid == "t1" and tried.count("t1") > 5  # its queue was full

    stand.bus.send, stand.bus.seen = send, lambda uid: (uid == "t1", None)
    await stand.commands.start()
    await asyncio.gather(stand.give(0), stand.give(1, "t2"), stand.give(2, "t3"))
    try:
        await until(lambda: stand.commands.stats.steps["sent"] == 1, "it was sent")
        await until(lambda: {"t2", "t3"} <= set(tried[3:]), "all are tried again, one after the other")
    finally:
        await stand.commands.stop()
    last = len(tried) - tried[::-1].index("t1")
    assert tried[:last].count("t2") <= 6, "once in each sweep at the most, as t1"
