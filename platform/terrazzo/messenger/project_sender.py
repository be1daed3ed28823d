"""Sends one project's messages: companies in turn, of each in the order in which they are due, at the project's rate.

A few are sent at the same time. Where several companies send, one has a part of these at most: its receivers that
hang keep nobody else's messages waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

import msgspec

from terrazzo.database.port import Row
from terrazzo.domain.message_draft import WEBHOOKS
from terrazzo.errors import Unavailable
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.message import (
    GIVEN_UP,
    INTERNAL,
    INTERRUPTED,
    NO_CHANNEL,
    NOT_SENT,
    Message,
    MessageChannel,
    MessageState,
    Receipt,
)
from terrazzo.messenger.rate import RateWindow
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.providers import Attachment, SendOutcome
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_MOST_SERVED = 10_000  # companies of which it is known when they had their last turns
_NAP_S = 30.0  # at most, so that a clock that was set is noticed
_GRACE_S = 2.0
_DATABASE_AWAY = Retry(first_s=0.5, most_s=5.0)

BETWEEN_ATTEMPTS = Retry(first_s=5.0, most_s=900.0, factor=4.0)
"""Of one message, after each attempt that may be repeated: 5 s, 20 s, 80 s, ... at most 15 minutes."""

_ENDS = {
    SendOutcome.SENT: MessageState.SENT,
    SendOutcome.FAILED: MessageState.FAILED,
    SendOutcome.UNKNOWN: MessageState.UNKNOWN,
}


class SenderShares(msgspec.Struct, frozen=True):
    """How many messages are sent at the same time, and how many of one company: one that hangs doesn't hold up all."""

    at_once: int
    of_company: int


OF_WEBHOOKS = SenderShares(16, 4)
OF_ALL_COMPANIES = SenderShares(4, 3)
"""Of a project that all companies share: all reach the same provider, who may not take many at a time."""

OF_ONE_COMPANY = SenderShares(4, 4)


class SenderStats(msgspec.Struct):
    """Counters for ``/metrics``, of all projects together."""

    attempts: int = 0
    sent: int = 0
    failed: int = 0
    unknown: int = 0
    retries: int = 0
    refused: int = 0  # by the rate limit, or because too many wait


class _SendAttempt(msgspec.Struct):
    """An attempt under way: the claimed message, and its ``receipt`` once there is one."""

    message: Message
    attachments: tuple[Attachment, ...]
    receipt: Receipt | None = None


class ProjectSender:
    """Sends the messages of one project.

    Args:
        project_id: of the project, or ``WEBHOOKS``.
        channels: the project's, by name.
        tasks: runs what sends.
        window: the project's rate limit.
        shares: how many are sent at the same time.
        attempts: how often a message is tried at most.
        on_done: called after each attempt with the message's row as it is then.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        project_id: int,
        channels: Mapping[str, MessageChannel],
        *,
        journal: MessageJournal,
        tasks: Tasks,
        window: RateWindow,
        shares: SenderShares,
        attempts: int,
        stats: SenderStats,
        on_done: Callable[[Row], None],
        clock: Callable[[], int],
    ) -> None:
        self.project_id = project_id
        self.window = window
        self._shares = shares
        self._channels = channels
        self._journal = journal
        self._supervisor = tasks
        self._attempts = attempts
        self._stats = stats
        self._on_done = on_done
        self._clock = clock
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._warnings = SparseLog(_log)
        self._tasks: dict[int, Task] = {}
        self._under_way: dict[int, _SendAttempt] = {}  # by the number of the task that makes it
        self._begun: set[int] = set()  # the tasks that have run before
        self._not_journaled: set[int] = set()  # messages whose end can't be; the next start finds them
        self._ended = asyncio.Event()  # an attempt has
        self._served: OrderedDict[int, None] = OrderedDict()  # companies, by when they had their last turns
        self._is_held_up = False  # a company has messages that are due, and as many under way as it may
        self._is_stopping = False

    def start(self) -> None:
        """Starts the tasks that send, one for each message that is sent at the same time."""
        project = "webhooks" if self.project_id == WEBHOOKS else str(self.project_id)
        self._tasks = {
            number: self._supervisor.spawn(
                f"messenger {project}.{number}", partial(self._run, number), OnFailure.RESTART
            )
            for number in range(1, self._shares.at_once + 1)
        }

    async def stop(self) -> None:
        """Stops; attempts under way have two seconds to end, after which the next start journals them as unknown."""
        self._is_stopping = True
        for number, task in self._tasks.items():
            if number not in self._under_way:
                await task.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                while self._under_way:
                    self._ended.clear()
                    await self._ended.wait()
        for task in self._tasks.values():
            await task.stop()

    def wake(self) -> None:
        """Has the tasks look for messages now."""
        self._wake.set()

    async def settle(self, message: Message, receipt: Receipt) -> None:
        """Journals the outcome of an attempt: the message's end, or when the next attempt is due."""
        now = self._clock()
        state, next_us, receipt = self._judge(message, receipt, now)
        row = await self._journal.finish(message, receipt, state, next_us=next_us, now=now)
        self._count(state)
        self._on_done(row)

    async def _run(self, number: int) -> None:
        """One of the tasks: sends message after message. After a restart, the failed attempt is journaled first."""
        if number in self._under_way:
            await self._end(number)
        elif number in self._begun:
            await self._put_back()
        self._begun.add(number)
        while not self._is_stopping:
            async with self._turn:
                self._under_way[number] = _SendAttempt(*await self._next())
            begun = at_work.begin(Work("message", self._under_way[number].message.company_id))
            try:
                await self._make(self._under_way[number])
                await self._end(number)
            finally:
                at_work.end(begun)

    async def _next(self) -> tuple[Message, tuple[Attachment, ...]]:
        """The next message of the company whose turn it is, once it is due and the rate allows it."""
        while True:
            self._wake.clear()
            now = self._clock()
            due = self._without_held_up(await self._journal.next_due_us(self.project_id))
            free_us = self.window.free_us(now)
            company_id = self._whose_turn(due, now) if free_us <= now else None
            if company_id is not None:
                claimed = await self._journal.claim(self.project_id, company_id, now)
                if claimed is not None:
                    self.window.take(now, company_id)
                    self._serve(company_id)
                    return claimed
            at_us = max(min(due.values(), default=now + int(_NAP_S * 1e6)), free_us)
            await self._nap((at_us - now) / 1e6)

    def _without_held_up(self, due: Mapping[int, int]) -> dict[int, int]:
        """When companies are due, without those that have as many attempts under way as they may."""
        under_way = Counter(each.message.company_id for each in self._under_way.values())
        free = {
            company_id: at_us for company_id, at_us in due.items() if under_way[company_id] < self._shares.of_company
        }
        self._is_held_up = len(free) < len(due)
        return free

    def _whose_turn(self, due: Mapping[int, int], now: int) -> int | None:
        """Of the companies that have a message that is due, the one that has waited longest for a turn."""
        ready = {company_id: at_us for company_id, at_us in due.items() if at_us <= now}
        new = [company_id for company_id in ready if company_id not in self._served]
        if new:
            return min(new, key=ready.__getitem__)
        return next((company_id for company_id in self._served if company_id in ready), None)

    def _serve(self, company_id: int) -> None:
        self._served[company_id] = None
        self._served.move_to_end(company_id)
        if len(self._served) > _MOST_SERVED:
            self._served.popitem(last=False)

    async def _nap(self, nap_s: float) -> None:
        try:
            async with asyncio.timeout(min(max(nap_s, 0.001), _NAP_S)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _make(self, attempt: _SendAttempt) -> None:
        self._stats.attempts += 1
        attempt.receipt = await self._send(attempt.message, attempt.attachments)

    async def _end(self, number: int) -> None:
        """Journals the outcome of the task's attempt; unknown where there is no receipt."""
        attempt = self._under_way[number]
        message = attempt.message
        receipt = attempt.receipt or Receipt(outcome=SendOutcome.UNKNOWN, reason=INTERRUPTED, pending=message.pending)
        try:
            await self._insist(lambda: self.settle(message, receipt))
        except Exception:
            self._not_journaled.add(message.id)
            self._forget(number)
            raise
        self._forget(number)

    def _forget(self, number: int) -> None:
        del self._under_way[number]
        self._ended.set()
        if self._is_held_up:
            self._wake.set()

    async def _put_back(self) -> None:
        """Queues messages again that a task had claimed when it failed before the attempt."""
        async with self._turn:
            known = self._not_journaled | {each.message.id for each in self._under_way.values()}
            for message in await self._journal.interrupted():
                if message.project_id == self.project_id and message.id not in known:
                    await self.settle(message, Receipt(outcome=SendOutcome.LATER, reason=NOT_SENT))

    async def _send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        channel = self._channels.get(message.channel)
        if channel is None:
            reason = NO_CHANNEL.format(channel=message.channel, project=message.project_id)
            return Receipt(outcome=SendOutcome.FAILED, reason=reason)
        try:
            return await channel.send(message, attachments)
        except Exception:  # noqa: BLE001 - nobody can say how far it got
            _log.exception("message %s: the attempt failed", message.uid)
            return Receipt(outcome=SendOutcome.UNKNOWN, reason=INTERNAL, pending=message.pending)

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """Repeats ``write`` until the database takes it: the outcome is known nowhere else."""
        attempts = Attempts(_DATABASE_AWAY)
        while True:
            try:
                return await write()
            except Unavailable as error:
                self._warnings.warning("outcomes of project %s wait: %s", self.project_id, error)
                await asyncio.sleep(attempts.failed() or 0.0)

    def _judge(self, message: Message, receipt: Receipt, now: int) -> tuple[MessageState, int, Receipt]:
        channel = self._channels.get(message.channel)
        is_safe = receipt.outcome is SendOutcome.LATER or (
            receipt.outcome is SendOutcome.UNKNOWN and channel is not None and channel.resend_unknown
        )
        if not is_safe:
            return _ENDS[receipt.outcome], now, receipt
        next_us = now + int((BETWEEN_ATTEMPTS.pause_s(message.attempts) or 0.0) * 1e6)
        if message.attempts < self._attempts and next_us < message.expires_us:
            return MessageState.QUEUED, next_us, receipt
        state = MessageState.UNKNOWN if receipt.outcome is SendOutcome.UNKNOWN else MessageState.FAILED
        reason = GIVEN_UP.format(attempts=message.attempts, reason=receipt.reason)
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
