"""Requests' commands on their way into the journal: companies in turn, those of one in the order in which they came."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import msgspec

from terrazzo.commands.journal import CommandJournal
from terrazzo.commands.queue import CommandQueues
from terrazzo.commands.step_writer import StepWriter
from terrazzo.company_turns import CompanyTurns
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.errors import Conflict, OperationError
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.tracing import Span, current
from terrazzo.reasons import say

_log = logging.getLogger(__name__)

MAX_TOGETHER = 256  # commands of one transaction, where requests are journaled together
MAX_OPEN = 1_000  # commands of one terminal that have not ended; more are refused
MOST_WAITING = 1_000  # requests of one company; more are refused


class _Request(msgspec.Struct, kw_only=True, eq=False):
    """The commands of one request, on their way into the journal. ``rows``: their records, once they are there;
    ``span``: of the request, where it is traced."""

    actor: Actor
    values: Sequence[dict[str, Any]]
    span: Span | None = None
    rows: list[Row] | None = None


class Submissions:
    """Journals commands, a transaction at a time, so that the order of each terminal's queue is the journal's.

    Args:
        journal: takes them.
        steps: of other commands, some of which are written with them.
        queues: say how many commands of a terminal are open.
        enqueue: called with each record that is new, its payload and its request's span, in the journal's order.
    """

    def __init__(
        self,
        journal: CommandJournal,
        steps: StepWriter,
        queues: CommandQueues,
        enqueue: Callable[[Row, bytes, Span | None], None],
    ) -> None:
        self._journal = journal
        self._steps = steps
        self._queues = queues
        self._enqueue = enqueue
        self._turns = CompanyTurns("commands", at_once=1, waiting=MOST_WAITING)
        self._requests: dict[int, deque[_Request]] = {}  # not journaled yet, by company: as many as wait for a turn
        self._tasks: set[asyncio.Task[list[Row]]] = set()

    def __len__(self) -> int:
        """How many requests are on their way."""
        return sum(map(len, self._requests.values()))

    @property
    def refused(self) -> int:
        """How many requests were, as too many of their company waited."""
        return self._turns.refused

    async def submit(self, actor: Actor, values: Sequence[dict[str, Any]]) -> list[Row]:
        """The records of a request's commands, all of which are journaled and queued, or none.

        Raises:
            Conflict: too many commands are open, or a key was used for another command.
            Throttled: too many requests of the company wait.
            Unavailable: the database can't take them.
        """
        task = asyncio.create_task(self._take_over(actor, values), name="commands")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)  # a caller who gives up must not leave it journaled and never sent
        except asyncio.CancelledError:
            task.add_done_callback(_log_unheard)
            raise

    async def end(self) -> None:
        """Waits for those that are on their way."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _take_over(self, actor: Actor, values: Sequence[dict[str, Any]]) -> list[Row]:
        """Journals and queues a request's commands, together with those that came behind it meanwhile."""
        request = _Request(actor=actor, values=values, span=current.get())
        requests = self._requests.setdefault(actor.company_id, deque())
        requests.append(request)
        begun = at_work.begin(Work("commands", actor.company_id))
        try:
            async with self._turns.turn(actor.company_id):
                if request.rows is None:
                    await self._journal_requests(_together(requests), requests)
        finally:
            at_work.end(begun)
            if request.rows is None:  # it failed, as the first, or was refused its turn, as the last
                requests.remove(request)
            if not self._requests.get(actor.company_id):
                self._requests.pop(actor.company_id, None)
        assert request.rows is not None
        return request.rows

    async def _journal_requests(self, group: Sequence[_Request], requests: deque[_Request]) -> None:
        """Several in one transaction; where that fails or a terminal has too many open, the first of them alone."""
        depths = Counter(each["terminal_id"] for request in group for each in request.values)
        has_room = all(self._queues.depth(terminal_id) + count <= MAX_OPEN for terminal_id, count in depths.items())
        if len(group) > 1 and has_room:
            try:
                async with self._steps.joined() as steps:
                    given = [(request.actor, request.values) for request in group]
                    added = await self._journal.add_requests(given, steps=steps)
            except OperationError as error:  # of the database, or of what one of them says
                _log.info("the commands of %d requests are journaled one by one: %s", len(group), error)
            else:
                for request, rows in zip(group, added, strict=True):
                    requests.popleft()
                    self._queue(request, rows)
                return
        await self._journal_alone(group[0])
        requests.popleft()

    async def _journal_alone(self, request: _Request) -> None:
        for terminal_id, count in Counter(each["terminal_id"] for each in request.values).items():
            if self._queues.depth(terminal_id) + count > MAX_OPEN:
                raise Conflict(say("too_many_commands_waiting", most=MAX_OPEN, terminal=terminal_id))
        async with self._steps.joined() as steps:
            [added] = await self._journal.add_requests([(request.actor, request.values)], steps=steps)
        self._queue(request, added)

    def _queue(self, request: _Request, added: Sequence[tuple[Row, bool]]) -> None:
        for (row, is_new), each in zip(added, request.values, strict=True):
            if is_new:
                self._enqueue(row, each["payload"], request.span)
        request.rows = [row for row, _ in added]


def _together(requests: deque[_Request]) -> list[_Request]:
    """The first request of a company's, and those behind it that fit into its transaction."""
    group, commands = [requests[0]], len(requests[0].values)
    for request in islice(requests, 1, None):
        commands += len(request.values)
        if commands > MAX_TOGETHER:
            break
        group.append(request)
    return group


def _log_unheard(task: asyncio.Task[list[Row]]) -> None:
    """Logs the error of a submission whose caller was cancelled and can't be told."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("commands of a request that was given up are not submitted: %r", error)
