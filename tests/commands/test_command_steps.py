"""Steps are written with the next commands, soon by themselves where none come, and hold up no command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from terrazzo.commands.step_writer import JOINED_BYTES, MAX_JOINED, MAX_WRITTEN, WAIT_S, WRITTEN_BYTES, StepWriter
from terrazzo.commands.unwritten_answers import UnwrittenAnswers
from terrazzo.domain.command import CommandState, CommandStep
from terrazzo.errors import Unavailable
from terrazzo.listeners import Listeners
from terrazzo.reasons import say
from waiting import until


class Journal:
    """Notes what each transaction of steps alone had; fails while ``broken``."""

    def __init__(self) -> None:
        self.alone: list[list[str]] = []
        self.broken = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def apply(self, changes: Sequence[CommandStep]) -> None:
        await self.gate.wait()
        if self.broken:
            raise Unavailable(say("database_busy"))
        self.alone.append([change.uid for change in changes])

    async def recorded(self, changes: Sequence[CommandStep]) -> list[tuple[Any, CommandStep]]:
        return [({"uid": change.uid}, change) for change in changes]


class Stand:
    """A writer whose listener notes of which steps it is told."""

    def __init__(self) -> None:
        self.journal: Any = Journal()
        self.told: list[str] = []
        listeners: Any = Listeners("steps")
        listeners.listen(lambda row, change: self.told.append(change.uid))
        self.writer = StepWriter(self.journal, UnwrittenAnswers(), listeners)

    def note(self, *uids: str) -> None:
        for uid in uids:
            self.writer.note(CommandStep(uid=uid, state=CommandState.SENT, time_us=1))

    async def commands(self, error: Exception | None = None) -> list[str]:
        """A transaction of commands; the steps that it had."""
        async with self.writer.joined() as steps:
            if error is not None:
                raise error
            return [step.uid for step in steps]


async def test_commands_take_steps_along_once() -> None:
    stand = Stand()
    stand.note("a", "b")
    assert await stand.commands() == ["a", "b"]
    stand.note("c")
    assert await stand.commands() == ["c"]
    assert await stand.commands() == []
    assert len(stand.writer) == 0
    await stand.writer.flush()
    assert stand.journal.alone == []
    assert stand.told == ["a", "b", "c"], "not before the commands are answered"


async def test_steps_are_written_without_commands() -> None:
    stand = Stand()
    running = asyncio.create_task(stand.writer.run())
    stand.note("a")
    await until(lambda: stand.told == ["a"])
    stand.note("b")
    await until(lambda: stand.told == ["a", "b"])
    assert stand.journal.alone == [["a"], ["b"]]
    running.cancel()
    await asyncio.wait([running])


async def test_what_a_transaction_did_not_write_is_written_alone() -> None:
    stand = Stand()
    stand.note("a")
    with pytest.raises(Unavailable):
        await stand.commands(Unavailable(say("database_busy")))
    assert await stand.commands() == [], "what may be the cause holds up no other command"
    await stand.writer.flush()
    assert stand.journal.alone == [["a"]]
    stand.note("b")
    assert await stand.commands() == ["b"]


async def test_steps_that_cannot_be_written_hold_up_no_command() -> None:
    stand = Stand()
    stand.note("a")
    with pytest.raises(Unavailable):
        await stand.commands(Unavailable(say("database_busy")))
    stand.journal.broken = True
    with pytest.raises(Unavailable):
        await stand.writer.flush()
    assert await stand.commands() == []
    stand.journal.broken = False
    await stand.writer.flush()
    assert stand.journal.alone == [["a"]]


async def test_commands_do_not_wait_for_steps_under_way() -> None:
    stand = Stand()
    stand.journal.gate.clear()
    stand.note("a")
    writing = asyncio.create_task(stand.writer.flush())
    await until(lambda: stand.writer._writing.locked())
    stand.note("b")
    assert await stand.commands() == []
    stand.journal.gate.set()
    await writing
    assert await stand.commands() == ["b"]


async def test_of_many_steps_commands_take_some_along() -> None:
    stand = Stand()
    stand.note(*(str(number) for number in range(MAX_JOINED + 5)))
    assert len(await stand.commands()) == MAX_JOINED
    assert await stand.commands() == [str(number) for number in range(MAX_JOINED, MAX_JOINED + 5)]


async def test_steps_of_a_transaction_wait_for_the_commands_behind_it() -> None:
    stand = Stand()
    running = asyncio.create_task(stand.writer.run())
    for _ in range(5):
        await asyncio.sleep(0)  # it has found nothing to write
    stand.note("a")
    async with stand.writer.joined() as steps:
        assert [step.uid for step in steps] == ["a"]
        await asyncio.sleep(10 * WAIT_S)  # meanwhile the task comes to where it would write
        stand.note("b")
    assert await stand.commands() == ["b"]
    assert stand.journal.alone == []
    running.cancel()
    await asyncio.wait([running])


async def test_who_listens_is_told_beside_commands_without_end() -> None:
    stand = Stand()
    running = asyncio.create_task(stand.writer.run())

    async def give_commands() -> None:
        while True:
            async with stand.writer.joined():
                await asyncio.sleep(3 * WAIT_S)

    giving = [asyncio.create_task(give_commands()) for _ in range(2)]
    for number in range(200):
        stand.note(str(number))
        await asyncio.sleep(WAIT_S)
        if number == 20:  # from now on commands are always at it
            stand.told.clear()
    assert stand.told, "a second and more"
    for task in (running, *giving):
        task.cancel()
    await asyncio.wait([running, *giving])


async def test_many_steps_and_long_answers_are_written_in_pieces() -> None:
    stand = Stand()
    stand.note(*(f"{number}" for number in range(MAX_WRITTEN + 1)))
    for number in range(5):
        answer = "x" * (WRITTEN_BYTES // 2)
        stand.writer.note(CommandStep(uid=f"long {number}", state=CommandState.DELIVERED, time_us=1, answer=answer))
    await stand.writer.flush()
    assert [len(each) for each in stand.journal.alone] == [MAX_WRITTEN, 3, 2, 1]
    assert len(stand.told) == MAX_WRITTEN + 6
    for _ in range(3):
        answer = "x" * (JOINED_BYTES - 1)
        stand.writer.note(CommandStep(uid="long", state=CommandState.DELIVERED, time_us=1, answer=answer))
    assert len(await stand.commands()) == 1, "a request takes no megabytes along"
