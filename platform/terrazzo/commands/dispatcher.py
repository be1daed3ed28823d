"""Commands to terminals: journaled first, sent when the terminal is there, in order, and followed to their end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from terrazzo.commands.journal import CommandJournal, check_page
from terrazzo.commands.missing_answers import Answers, missing_answers, uid_of
from terrazzo.commands.order import CommandOrders, FirmwareLinks
from terrazzo.commands.queue import CommandQueues, OpenCommand
from terrazzo.commands.step_writer import StepWriter
from terrazzo.commands.submissions import Submissions
from terrazzo.commands.traces import CommandTraces
from terrazzo.commands.unwritten_answers import UnwrittenAnswers
from terrazzo.database.port import Repository, Row, Rows
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.answers import CommandAnswer, answer_text
from terrazzo.domain.command import RECALLED_BY, TERMINAL_DELETED, CommandRequest, CommandState, CommandStep
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import NotPermitted, Unavailable
from terrazzo.listeners import Listeners
from terrazzo.loop_pauses import LoopPauses
from terrazzo.memory_shares import Kept
from terrazzo.ports.bus import DeliveryFate, MessageBus, TerminalsElsewhere
from terrazzo.ports.store import StoreUnavailable
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.ports.tracing import Span
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us

_log = logging.getLogger(__name__)

EXPIRY_S = 86_400
GRACE_S = 0.5  # after a reconnect, for answers that are on their way, before what may be known is sent again

_NO_COMPANY = -1
_SWEEP_S = 1.0
_AT_ONCE = 100  # commands that end together
_LOOKED_AT = 500  # terminals of a sweep, others in each: who comes is sent its commands at once in any case
_RETRY_S = 1.0


class CommandStats(msgspec.Struct):
    """Counters for ``/metrics``; ``steps`` counts commands by the state that they reached."""

    steps: dict[str, int] = msgspec.field(default_factory=lambda: {state.value: 0 for state in CommandState})
    answers_dropped: int = 0
    upgrades_refused: int = 0


class CommandDispatcher:
    """Submits commands, sends them one at a time for each terminal, and journals their steps.

    Call ``start`` before terminals can connect.

    ``steps`` tells of each step that the journal has taken, with the command's record, while a listener wants it.

    Args:
        journal: reads and writes the table ``command``.
        registry: the terminals.
        bus: publishes to terminals.
        tasks: runs what writes the journal, and what ends commands whose time is over.
        configurations: where ``AXUpgrade`` finds its files.
        links: makes download URLs for stored files; without, configurations name URLs only.
        answers: the stored answers of terminals, of before this start too.
        expiry_s: how long a command may wait for its terminal.
        upgrade_role: who may send ``AXUpgrade``.
        upgrade_details: whether it says what is known of the file.
        clock: UTC microseconds.
        traces: of commands.
    """

    def __init__(
        self,
        journal: CommandJournal,
        *,
        registry: Registry,
        bus: MessageBus,
        configurations: Repository,
        tasks: Tasks,
        links: FirmwareLinks | None = None,
        answers: Answers | None = None,
        expiry_s: float = EXPIRY_S,
        upgrade_role: Role = Role.ADMIN,
        upgrade_details: bool = False,
        clock: Callable[[], int] = now_us,
        traces: CommandTraces | None = None,
    ) -> None:
        self.stats = CommandStats()
        self._journal = journal
        self._registry = registry
        self._bus = bus
        self._answers = answers
        self._supervisor = tasks
        self._orders = CommandOrders(
            registry,
            configurations,
            expiry_us=int(expiry_s * 1e6),
            links=links,
            upgrade_role=upgrade_role,
            upgrade_details=upgrade_details,
        )
        self._clock = clock
        self._traces = traces
        self._queues = CommandQueues()
        self._refused: set[str] = set()  # terminals that are there and could not be sent their next command
        self.steps: Listeners[Row, CommandStep] = Listeners("steps of commands")
        self._unwritten = UnwrittenAnswers()
        self._steps = StepWriter(journal, self._unwritten, self.steps)
        self.submissions = Submissions(journal, self._steps, self._queues, self._enqueue)
        self._is_behind = answers is not None  # what was answered before this start isn't read yet
        self._tasks: list[Task] = []
        self._answer_log = SparseLog(_log)
        self._send_log = SparseLog(_log)
        self._refusal_log = SparseLog(_log)
        self.elsewhere: TerminalsElsewhere | None = None  # where terminals are connected to other nodes
        registry.terminal_changes.listen(self._on_record)

    async def start(self) -> None:
        """Loads the commands that have not ended, and the stored answers that the journal doesn't have.

        What may have been sent is sent again, unless its terminal has answered; while the store can't say, it waits.
        """
        commands = await self._journal.open_commands()
        for command in commands:
            self._put(command)
        self._queues.doubt()
        spawn, restart = self._supervisor.spawn, OnFailure.RESTART
        self._tasks = [
            spawn("command journal", self._steps.run, restart),
            self._supervisor.repeat("command expiry", _SWEEP_S, self._sweep, restart),
        ]
        try:
            await self._catch_up(commands)
        except StoreUnavailable as error:
            _log.warning("commands that were under way wait for the store, which has their answers: %s", error)
            self._tasks.append(spawn("answers to commands", partial(self._catch_up, commands), restart))

    async def stop(self) -> None:
        """Stops, and journals the steps that are not written yet."""
        await self.submissions.end()
        for task in self._tasks:
            await task.stop()
        self._tasks = []
        try:
            await self._steps.flush()
        except Unavailable as error:
            _log.warning("%d steps of commands could not be journaled: %s", len(self._steps), error)
        if self._traces is not None:
            self._traces.close()

    async def submit(
        self,
        actor: Actor,
        terminal_id: str,
        command: str,
        value: Any,
        *,
        object_id: int | None = None,
        point: str | None = None,
        idempotency_key: str | None = None,
    ) -> Row:
        """Journals one command; returns its record. Raises as ``submit_all``."""
        more: dict[str, Any] = {"object_id": object_id, "point": point, "idempotency_key": idempotency_key}
        return (
            await self.submit_all(
                actor, [CommandRequest(terminal_id=terminal_id, command=command, value=value, **more)]
            )
        )[0]

    async def submit_all(self, actor: Actor, orders: Sequence[CommandRequest]) -> list[Row]:
        """Journals commands, all of them or none, and sends each as soon as its terminal is there.

        Returns their records in the same order.

        Raises:
            NotFound: no such terminal in the actor's company.
            NotPermitted: ``AXUpgrade`` is not the actor's to send.
            BadParameter: names the command, the value, or what else is wrong.
            Conflict: too many commands are open, or a key was used for another command.
            Throttled: too many requests of the company wait for the journal.
            Unavailable: the database can't take them; nothing was sent.
        """
        now = self._clock()
        try:
            values = [await self._orders.values(actor, order, now_us=now) for order in orders]
        except NotPermitted as error:
            self.stats.upgrades_refused += 1
            self._refusal_log.warning("%s", error)
            raise
        return await self.submissions.submit(actor, values)

    def recall(self, terminal_id: str, uid: str, reason: str) -> bool:
        """Ends a command that has not been sent yet; False for any other: it may be with the terminal already."""
        change = self._queues.recall(terminal_id, uid, reason, self._clock())
        if change is not None:
            self._note(change)
            self._advance(terminal_id)
        return change is not None

    async def recall_all(self, actor: Actor, uids: Sequence[str]) -> set[str]:
        """Ends those of the actor's commands that have not been sent yet, as failed; returns their uids.

        Raises:
            NotFound: one of them is not of the actor's company; then all stay.
        """
        found = await self._journal.note_recall(actor, uids, self._clock())
        reason = RECALLED_BY.format(user=actor.username)
        return {uid for terminal_id, uid in found if self.recall(terminal_id, uid, reason)}

    async def page(
        self,
        actor: Actor,
        *,
        terminal_id: str | None = None,
        states: Sequence[str] = (),
        page_index: int = 1,
        page_size: int = 20,
    ) -> Rows:
        """Commands of the actor's company, newest first; ``payload`` and ``answer`` as JSON.

        Raises:
            BadParameter: an unknown state, a page out of range.
        """
        check_page(states=states, page_index=page_index, page_size=page_size)
        return await self._journal.page(
            actor, terminal_id=terminal_id, states=states, page_index=page_index, page_size=page_size
        )

    def on_ready(self, terminal_id: str) -> None:
        """A terminal has connected and subscribed to its commands: sends the next one.

        One that it may have received on its last connection waits ``GRACE_S``, in which the answer may come.
        """
        if self._queues.is_doubtful(terminal_id):
            asyncio.get_running_loop().call_later(GRACE_S, self._send_again, terminal_id)
        else:
            self._advance(terminal_id)

    def on_answer(self, answer: CommandAnswer) -> None:
        """``IngestPipeline.answers`` tells this: an answer is stored; its Correlation Data names the command."""
        uid = uid_of(answer)
        if not uid:
            return
        terminal = self._registry.terminal(answer.uid)
        company_id = _NO_COMPANY if terminal is None else terminal.company_id
        if not self._unwritten.take(answer.uid, uid, company_id, size=len(answer.body), now_us=self._clock()):
            self.stats.answers_dropped += 1
            why = "answers come faster than the database takes them; they stay in the grid"
            self._answer_log.warning("terminal %r: %s", answer.uid, why)
            return
        text = answer_text(answer.body, answer.text)
        self._queues.on_answer(answer.uid, uid)
        self._note(
            CommandStep(
                uid=uid, state=CommandState.ANSWERED, time_us=self._clock(), answer=text, terminal_id=answer.uid
            )
        )
        self._advance(answer.uid)

    async def _catch_up(self, commands: Sequence[OpenCommand]) -> None:
        """Journals stored answers that the journal lacks; ``commands``: those that had not ended at the start."""
        await self._journal_missing(commands)
        self._is_behind = False
        self._queues.trust_followers()
        pauses = LoopPauses()
        for terminal_id in self._queues.waiting():
            self._advance(terminal_id)
            await pauses.pause()

    async def _journal_missing(self, commands: Sequence[OpenCommand], since_us: int | None = None) -> None:
        if self._answers is None:
            return
        async for answers in missing_answers(self._journal, self._answers, commands, since_us=since_us):
            for answer in answers:
                self._unwritten.note_sent(answer.uid, uid_of(answer))  # the journal knows the command
                self.on_answer(answer)
            await self._steps.flush()

    async def _journal_left_out(self) -> None:
        """Journals the answers for which there were no bytes while others waited."""
        since_us, self._unwritten.short_us = self._unwritten.short_us, None
        try:
            await self._journal_missing(await self._journal.open_commands(), since_us)
        except (StoreUnavailable, Unavailable) as error:
            _log.warning("answers that were left out wait for the store and the database: %s", error)
            self._unwritten.short_us = since_us

    def _send_again(self, terminal_id: str) -> None:
        if self._is_behind:
            asyncio.get_running_loop().call_later(_RETRY_S, self._send_again, terminal_id)
            return
        self._queues.trust(terminal_id)
        self._advance(terminal_id)

    def _enqueue(self, row: Row, payload: bytes, span: Span | None) -> None:
        terminal_id = row["terminal_id"]
        if self._traces is not None:
            self._traces.begin(row, span, self._clock())
        self._put(
            OpenCommand(
                uid=row["uid"],
                terminal_id=terminal_id,
                company_id=row["company_id"],
                payload=payload,
                queued_us=row["queued_us"],
                expires_us=row["expires_us"],
            )
        )
        self.stats.steps[CommandState.QUEUED.value] += 1
        queued = CommandStep(uid=row["uid"], state=CommandState.QUEUED, time_us=row["queued_us"])
        if self.steps.are_wanted:
            self.steps.tell(row, queued)
        self._advance(terminal_id)

    def _put(self, command: OpenCommand) -> None:
        """Queues a command; one whose terminal is gone fails, though another has its uid by now."""
        terminal = self._registry.terminal(command.terminal_id)
        if terminal is not None and terminal.company_id == command.company_id:
            self._queues.put(command)
        else:
            failed = CommandState.FAILED
            self._note(CommandStep(uid=command.uid, state=failed, time_us=self._clock(), reason=TERMINAL_DELETED))

    def _advance(self, terminal_id: str) -> None:
        """Sends the next command of a terminal, if there is one and the terminal is there."""
        command = self._queues.next(terminal_id)
        if command is None or command.expires_us <= self._clock():
            return  # the sweep ends it
        self._unwritten.note_sent(terminal_id, command.uid)
        command.in_flight = True  # first, because its fate may be known before ``send`` returns
        if self.elsewhere is not None and self.elsewhere.holds(terminal_id):
            self._send_elsewhere(self.elsewhere, command)
        elif not self._send(command):
            command.in_flight = False
            if self._bus.seen(terminal_id)[0]:
                self._refused.add(terminal_id)
        elif command.in_flight:
            self._note(CommandStep(uid=command.uid, state=CommandState.SENT, time_us=self._clock()))

    def _send(self, command: OpenCommand) -> bool:
        traceparent = "" if self._traces is None else self._traces.traceparent_of(command.uid)
        try:
            return self._bus.send(
                command.terminal_id,
                command.payload,
                correlation=command.uid.encode(),
                on_fate=lambda fate: self._on_fate(command, fate),
                **({"traceparent": traceparent} if traceparent else {}),
            )
        except Exception as error:  # noqa: BLE001 - one terminal's fault is not the others'; the sweep tries again
            self._send_log.error("a command for %s can't be sent: %r", command.terminal_id, error, exc_info=True)
            return False

    def _send_elsewhere(self, elsewhere: TerminalsElsewhere, command: OpenCommand) -> None:
        """Has the node that holds the terminal send a command: it is sent when that node says so."""

        def on_sent(is_sent: bool) -> None:
            if not command.in_flight:
                return
            if is_sent:
                self._note(CommandStep(uid=command.uid, state=CommandState.SENT, time_us=self._clock()))
            else:
                command.in_flight = False  # it goes out when the terminal has subscribed next

        elsewhere.send(
            command.terminal_id,
            command.payload,
            correlation=command.uid.encode(),
            on_sent=on_sent,
            on_fate=lambda fate: self._on_fate(command, fate),
        )

    def on_late_fate(self, terminal_id: str, correlation: bytes, fate: DeliveryFate) -> None:
        """What became of a command that an earlier start has sent, or that was taken for lost, on another node."""
        command = self._queues.find_sent(terminal_id, correlation.decode("utf-8", "replace"))
        if command is not None and (fate is not DeliveryFate.LOST or command.in_flight):
            self._on_fate(command, fate)

    def _on_fate(self, command: OpenCommand, fate: DeliveryFate) -> None:
        self._note(self._queues.on_fate(command, fate, self._clock()))
        if fate is not DeliveryFate.LOST:  # what was lost goes out again with the terminal's next subscription
            self._advance(command.terminal_id)

    def _on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        if before is not None and after is None:
            for change in self._queues.fail(before.uid, TERMINAL_DELETED, self._clock()):
                self._note(change)

    def _note(self, change: CommandStep) -> None:
        self.stats.steps[change.state.value] += 1
        if self._traces is not None:
            self._traces.on_step(change)
        self._steps.note(change)

    async def _sweep(self) -> None:
        """Ends commands whose time is over, and sends what could not be sent, some at a time."""
        pauses = LoopPauses()
        while expired := self._queues.expire(self._clock(), _AT_ONCE):
            for terminal_id, change in expired:
                self._note(change)
                self._advance(terminal_id)
            await pauses.pause()
        if self._traces is not None:
            self._traces.sweep(self._clock())
        refused, self._refused = self._refused, set()
        for terminal_id in [*refused, *self._queues.some_waiting(_LOOKED_AT)]:
            self._advance(terminal_id)
            await pauses.pause()
        if self._unwritten.short_us is not None and not len(self._steps):
            await self._journal_left_out()

    def kept(self) -> Mapping[int, Kept]:
        """The answers that wait for the database, by company."""
        return self._unwritten.kept()
