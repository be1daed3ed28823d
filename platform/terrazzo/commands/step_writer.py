"""Steps of commands on their way into the journal: with the next commands, or soon after by themselves.

A disk takes a millisecond and more for a sync, and a database one transaction at a time: steps that were written on
their own at once would have the next command wait for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from terrazzo.commands.journal import CommandJournal
from terrazzo.commands.unwritten_answers import UnwrittenAnswers
from terrazzo.database.port import Row
from terrazzo.domain.command import CommandState, CommandStep
from terrazzo.errors import Unavailable
from terrazzo.listeners import Listeners

_log = logging.getLogger(__name__)

WAIT_S = 0.005  # of a step for commands that take it along
MAX_JOINED = 256  # steps that one request's commands take along
JOINED_BYTES = 256 * 1024  # of their answers
MAX_WRITTEN = 1_000  # steps of a transaction of their own
WRITTEN_BYTES = 4 * 2**20
MOST_WAITS = 20  # for commands, one after the other: who listens to steps hears of them then at the latest


class StepWriter:
    """Keeps steps until they are written, in their order; written twice, they change nothing.

    Args:
        journal: takes them.
        unwritten: is told of answers that are written.
        told: of each step that the journal has taken, with the command's record, while a listener wants it.
    """

    def __init__(self, journal: CommandJournal, unwritten: UnwrittenAnswers, told: Listeners[Row, CommandStep]) -> None:
        self._journal = journal
        self._unwritten = unwritten
        self._told = told
        self._changes: list[CommandStep] = []  # not yet written: bounded by commands and UnwrittenAnswers
        self._written: list[CommandStep] = []  # of which nobody was told yet
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._may_join = True

    def __len__(self) -> int:
        return len(self._changes)

    def note(self, change: CommandStep) -> None:
        """Keeps a step, to be written."""
        self._changes.append(change)
        self._changed.set()

    async def run(self) -> None:
        """The task that writes them."""
        while True:
            self._changed.clear()
            await self.flush()
            await self._changed.wait()
            await asyncio.sleep(WAIT_S)
            for _ in range(MOST_WAITS):
                if not self._writing.locked():
                    break
                async with self._writing:  # commands take some along, and the next ones what these add
                    pass
                await asyncio.sleep(WAIT_S)

    async def flush(self) -> None:
        """Writes all of them now, in pieces, between which others write.

        Raises:
            Unavailable: the database can't take them; they are kept.
        """
        async with self._writing:
            left = len(self._changes)
            while left:
                changes = self._piece(min(left, MAX_WRITTEN), WRITTEN_BYTES)
                await self._journal.apply(changes)
                self._on_written(changes)
                self._may_join = True
                left -= len(changes)
                await self._tell_written()
            await self._tell_written()

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[Sequence[CommandStep]]:
        """Steps for a transaction that the block makes: they are written when it ends without an error.

        None where they are being written already; none either after an error until they were written alone, so that
        what can't be written holds up no command.
        """
        if self._writing.locked() or not self._may_join or not self._changes:
            yield ()
            return
        async with self._writing:
            changes = self._piece(MAX_JOINED, JOINED_BYTES)
            self._may_join = False
            yield changes
            self._may_join = True
            self._on_written(changes)

    def _piece(self, most: int, most_bytes: int) -> list[CommandStep]:
        """The first steps, at most so many and with answers of about so many bytes; at least one."""
        size, changes = 0, self._changes[:most]
        for number, change in enumerate(changes):
            size += 0 if change.answer is None else len(change.answer)
            if size > most_bytes and number:
                return changes[:number]
        return changes

    async def _tell_written(self) -> None:
        told, self._written = self._written, []
        if told:
            await self._tell(told)

    def _on_written(self, changes: Sequence[CommandStep]) -> None:
        del self._changes[: len(changes)]
        self._unwritten.on_written(sum(change.state is CommandState.ANSWERED for change in changes))
        if self._told.are_wanted:
            self._written.extend(changes)

    async def _tell(self, changes: Sequence[CommandStep]) -> None:
        try:
            recorded = await self._journal.recorded(changes)
        except Unavailable as error:
            _log.warning("%d steps of commands are journaled, but nobody is told of them: %s", len(changes), error)
            return
        for row, change in recorded:
            self._told.tell(row, change)
