"""One project's way out: messages in the order in which they are due, at the project's rate, a few at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from terrazzo.database.port import Row
from terrazzo.errors import Unavailable
from terrazzo.messenger.backoff import pause_us
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.message import Channel, Message, MessageState, Receipt
from terrazzo.messenger.rate import RateWindow
from terrazzo.ports.providers import Attachment, Outcome
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

AT_ONCE = 4  # messages of one project: one that hangs doesn't hold up all
_NAP_S = 30.0  # at most, so that a clock that was set is noticed
_GRACE_S = 2.0
_RETRY_S = 0.5  # while the database is away

_ENDS = {Outcome.SENT: MessageState.SENT, Outcome.FAILED: MessageState.FAILED, Outcome.UNKNOWN: MessageState.UNKNOWN}


class SenderStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    attempts: int = 0
    sent: int = 0
    failed: int = 0
    unknown: int = 0
    retries: int = 0
    refused: int = 0  # by the rate limit, or because too many wait


class ProjectSender:
    """Sends the messages of one project.

    Args:
        on_done: told of each attempt: the row as it is then, and what came of it.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        project_id: int,
        channels: Mapping[str, Channel],
        *,
        journal: MessageJournal,
        window: RateWindow,
        attempts: int,
        stats: SenderStats,
        on_done: Callable[[Row], None],
        clock: Callable[[], int],
    ) -> None:
        self.project_id = project_id
        self.window = window
        self._channels = channels
        self._journal = journal
        self._attempts = attempts
        self._stats = stats
        self._on_done = on_done
        self._clock = clock
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._warnings = SparseLog(_log)
        self._tasks: list[asyncio.Task[None]] = []
        self._busy: set[asyncio.Task[None]] = set()  # those that are sending
        self._is_stopping = False

    def start(self) -> None:
        """Begins to send."""
        name = f"messenger {self.project_id}"
        self._tasks = [asyncio.create_task(self._run(), name=f"{name}.{number}") for number in range(AT_ONCE)]

    async def stop(self) -> None:
        """Ends; what is being sent has a moment to be done, after which its end is unknown, as the journal says."""
        self._is_stopping = True
        for task in self._tasks:
            if task not in self._busy:
                task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_GRACE_S)
            for task in late:
                task.cancel()
            await asyncio.wait(self._tasks)

    def wake(self) -> None:
        """There may be something to send."""
        self._wake.set()

    async def settle(self, message: Message, receipt: Receipt) -> None:
        """Journals what came of an attempt: its end, or when the next one is."""
        now = self._clock()
        state, next_us, receipt = self._judge(message, receipt, now)
        row = await self._journal.finish(message, receipt, state, next_us=next_us, now=now)
        self._count(state)
        self._on_done(row)

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while not self._is_stopping:
            async with self._turn:
                message, attachments = await self._next()
                self._busy.add(task)
            try:
                await self._attempt(message, attachments)
            finally:
                self._busy.discard(task)

    async def _next(self) -> tuple[Message, tuple[Attachment, ...]]:
        """The next message, once it is due and the rate allows it."""
        while True:
            self._wake.clear()
            try:
                now = self._clock()
                due_us = await self._journal.next_due_us(self.project_id)
                at_us = None if due_us is None else max(due_us, self.window.free_us(now))
                if at_us is not None and at_us <= now:
                    claimed = await self._journal.claim(self.project_id, now)
                    if claimed is not None:
                        self.window.take(now)
                        return claimed
            except Unavailable as error:
                self._warnings.warning("messages of project %s wait: %s", self.project_id, error)
                await asyncio.sleep(_RETRY_S)
                continue
            await self._nap(_NAP_S if at_us is None else (at_us - now) / 1e6)

    async def _nap(self, nap_s: float) -> None:
        try:
            async with asyncio.timeout(min(max(nap_s, 0.001), _NAP_S)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _attempt(self, message: Message, attachments: tuple[Attachment, ...]) -> None:
        self._stats.attempts += 1
        receipt = await self._send(message, attachments)
        await self._insist(lambda: self.settle(message, receipt))

    async def _send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        channel = self._channels.get(message.channel)
        if channel is None:
            reason = f"the configuration has no {message.channel} in project {message.project_id}"
            return Receipt(outcome=Outcome.FAILED, reason=reason)
        try:
            return await channel.send(message, attachments)
        except Exception:  # noqa: BLE001 - nobody can say how far it got
            _log.exception("message %s: the attempt failed", message.uid)
            reason = "internal error during the attempt; the log has it"
            return Receipt(outcome=Outcome.UNKNOWN, reason=reason, pending=message.pending)

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """The outcome is known here alone: it is written however long the database is away."""
        while True:
            try:
                return await write()
            except Unavailable as error:
                self._warnings.warning("outcomes of project %s wait: %s", self.project_id, error)
                await asyncio.sleep(_RETRY_S)

    def _judge(self, message: Message, receipt: Receipt, now: int) -> tuple[MessageState, int, Receipt]:
        channel = self._channels.get(message.channel)
        is_safe = receipt.outcome is Outcome.LATER or (
            receipt.outcome is Outcome.UNKNOWN and channel is not None and channel.resend_unknown
        )
        if not is_safe:
            return _ENDS[receipt.outcome], now, receipt
        next_us = now + pause_us(message.attempts)
        if message.attempts < self._attempts and next_us < message.expires_us:
            return MessageState.QUEUED, next_us, receipt
        state = MessageState.UNKNOWN if receipt.outcome is Outcome.UNKNOWN else MessageState.FAILED
        reason = f"given up after {message.attempts} attempts: {receipt.reason}"
        return state, now, msgspec.structs.replace(receipt, reason=reason)

    def _count(self, state: MessageState) -> None:
        match state:
            case MessageState.SENT:
                self._stats.sent += 1
            case MessageState.FAILED:
                self._stats.failed += 1
            case MessageState.UNKNOWN:
                self._stats.unknown += 1
            case _:
                self._stats.retries += 1
