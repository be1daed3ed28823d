"""Answers that are stored but not in the command journal, because a crash came between the two."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence, Set
from typing import Protocol

from terrazzo.commands.journal import CommandJournal
from terrazzo.commands.queue import OpenCommand
from terrazzo.domain.answers import CommandAnswer

_AT_ONCE = 500
_PIECE_BYTES = 4 * 2**20
_UID = re.compile(r"[0-9a-f]{32}")


class Answers(Protocol):
    """Reads the stored answers of terminals (``terrazzo.domain.answers.StoredAnswers``)."""

    def since(self, time_us: int, terminals: Set[str]) -> AsyncIterator[CommandAnswer]:
        """Answers of these terminals that arrived at ``time_us`` (UTC) or later. Raises StoreUnavailable."""


async def missing_answers(
    journal: CommandJournal, answers: Answers, commands: Sequence[OpenCommand], *, since_us: int | None = None
) -> AsyncIterator[list[CommandAnswer]]:
    """The stored answers that the journal doesn't have, in lists of at most 500 and 4 MiB or one. Raises
    StoreUnavailable.

    Args:
        commands: those that had not ended at the start.
        since_us: UTC microseconds from which on some are known to be missing; None: what the journal says.
    """
    latest_us, silent = await journal.silent()
    since_us = latest_us if since_us is None else min(since_us, latest_us)
    waiting = {command.terminal_id for command in commands}
    first_us = min([since_us, *(command.queued_us for command in commands)])
    for start_us, terminals in ((first_us, waiting), (since_us, silent - waiting)):
        piece, size = list[CommandAnswer](), 0
        async for answer in answers.since(start_us, terminals):
            piece.append(answer)
            size += len(answer.body)
            if len(piece) == _AT_ONCE or size > _PIECE_BYTES:
                yield await _missing(journal, piece)
                piece, size = [], 0
        yield await _missing(journal, piece)


def uid_of(answer: CommandAnswer) -> str:
    """The uid of the command that an answer's Correlation Data names; empty where it is no uid of ours.

    Terminals may send any bytes, and no database holds a NUL in a text.
    """
    uid = answer.correlation.decode("ascii", "replace")
    return uid if _UID.fullmatch(uid) else ""


async def _missing(journal: CommandJournal, answers: Sequence[CommandAnswer]) -> list[CommandAnswer]:
    named = [(uid, answer) for answer in answers if (uid := uid_of(answer))]
    unanswered = await journal.unanswered([uid for uid, _ in named]) if named else set()
    return [answer for uid, answer in named if uid in unanswered]
