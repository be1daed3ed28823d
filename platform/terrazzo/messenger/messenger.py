"""The messenger: journals messages, has them sent by project, and answers with the outcome of the first attempt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.message_draft import WEBHOOKS, MessageDraft
from terrazzo.errors import BadParameter, Throttled
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.message import PLATFORM_ENDED, Message, MessageChannel, Receipt
from terrazzo.messenger.project_sender import (
    OF_ALL_COMPANIES,
    OF_ONE_COMPANY,
    OF_WEBHOOKS,
    ProjectSender,
    SenderShares,
    SenderStats,
)
from terrazzo.messenger.projects import Project, Projects
from terrazzo.messenger.rate import RateWindow
from terrazzo.ports.providers import SendOutcome
from terrazzo.ports.tasks import Tasks
from terrazzo.reasons import say
from terrazzo.times import now_us

_log = logging.getLogger(__name__)

WEBHOOK_ATTEMPTS, WEBHOOK_EXPIRY_S = 8, 6 * 3_600
ANSWER_S = 60.0  # how long a request waits for the first attempt
MAX_KEY = 128
_BUSY_S = 10.0  # to wait before asking again where too many wait


class Messenger:
    """Sends messages of all projects. ``start`` it before anything is submitted.

    Args:
        journal: the table ``message``.
        projects: as configured, with their channels.
        tasks: runs what sends.
        webhooks: the channel of rules' webhooks.
        queued_messages: how many messages of one company may wait in one project.
        attachment_bytes: how large the files of one message may be together.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        journal: MessageJournal,
        projects: Projects,
        *,
        tasks: Tasks,
        webhooks: MessageChannel | None = None,
        queued_messages: int = 10_000,
        attachment_bytes: int = 5 * 2**20,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.journal = journal
        self.projects = projects
        self.attachment_bytes = attachment_bytes
        self.stats = SenderStats()
        self._tasks = tasks
        self._webhooks = webhooks
        self._queued_messages = queued_messages
        self._clock = clock
        self._senders: dict[int, ProjectSender] = {}
        self._waiters: dict[int, asyncio.Future[Row]] = {}

    async def start(self) -> None:
        """Journals messages that an earlier run was sending as ``unknown``, and starts to send what waits."""
        for project in self.projects.all():
            section = project.section
            attempts = await self.journal.attempt_times(section.id, self._clock())
            window = RateWindow(section.per_minute, attempts)
            shares = OF_ONE_COMPANY if section.company_id else OF_ALL_COMPANIES
            self._senders[section.id] = self._sender(section.id, project.channels, window, section.attempts, shares)
        if self._webhooks is not None:
            channels = {"webhook": self._webhooks}
            self._senders[WEBHOOKS] = self._sender(WEBHOOKS, channels, RateWindow(0), WEBHOOK_ATTEMPTS, OF_WEBHOOKS)
        await self.journal.drop_orphans([*self._senders], self._clock())
        for message in await self.journal.interrupted():
            await self._recover(message)
        for sender in self._senders.values():
            sender.start()

    async def stop(self) -> None:
        """Stops all sending; attempts under way have two seconds to end."""
        await asyncio.gather(*(sender.stop() for sender in self._senders.values()))

    async def submit(self, actor: Actor, draft: MessageDraft) -> Sequence[Row]:
        """Journals a message, one for each recipient where the provider wants it so, and makes the first attempt.

        Returns:
            The rows as they are after it: sent, failed, unknown, or queued for another attempt.

        Raises:
            BadParameter: names the field.
            Throttled: the project's rate limit is reached, and the company had its share of it, or too many of the
                company's messages wait; nothing was journaled.
            Conflict: the idempotency key was used for another message.
        """
        key = draft.idempotency_key
        if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
            raise BadParameter("idempotency_key", say("expected_printable", most=MAX_KEY))
        project = self.projects.find(draft.company_id, draft.project_id, draft.channel)
        await self._check_room(project, draft.company_id)
        now, drafts = self._clock(), split(project, draft)
        expires_us = now + project.section.expiry_s * 1_000_000
        rows, is_new = await self.journal.submit(actor, drafts, expires_us=expires_us, now=now)
        return await self._first_attempts(draft.project_id, rows) if is_new else rows

    async def put(self, connection: AsyncConnection, drafts: Sequence[MessageDraft]) -> None:
        """Journals messages inside a transaction; call ``wake`` after its commit. The rate limit delays them only."""
        now = self._clock()
        for draft in drafts:
            project = self.projects.get(draft.project_id)
            expiry_s = draft.expiry_s or (project.section.expiry_s if project else WEBHOOK_EXPIRY_S)
            each = split(project, draft) if project else [draft]
            await self.journal.add(connection, each, expires_us=now + expiry_s * 1_000_000, now=now)

    def wake(self) -> None:
        """Has the senders look for messages that were ``put``."""
        for sender in self._senders.values():
            sender.wake()

    async def _first_attempts(self, project_id: int, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows after their first attempts; after ``ANSWER_S`` the rest as they were journaled."""
        loop = asyncio.get_running_loop()
        futures = {row["id"]: loop.create_future() for row in rows}
        self._waiters.update(futures)
        self._senders[project_id].wake()
        try:
            await asyncio.wait(futures.values(), timeout=ANSWER_S)
        finally:
            for number in futures:
                self._waiters.pop(number, None)
        return [futures[row["id"]].result() if futures[row["id"]].done() else row for row in rows]

    async def _check_room(self, project: Project, company_id: int) -> None:
        """Refuses what a company has no room for. Who has not had its share of the rate waits for its turn instead."""
        sender, now = self._senders[project.section.id], self._clock()
        waiting, free_us = await self.journal.waiting(project.section.id, company_id), sender.window.free_us(now)
        if free_us > now and not sender.window.has_share(company_id, waiting):
            self.stats.refused += 1
            limit = f"project {project.section.id} sends {project.section.per_minute} messages a minute at most"
            raise Throttled(say("messages_limit", limit=limit), (free_us - now) / 1e6)
        if waiting >= self._queued_messages:
            self.stats.refused += 1
            raise Throttled(say("too_many_messages_waiting", most=self._queued_messages), _BUSY_S)

    async def _recover(self, message: Message) -> None:
        sender = self._senders.get(message.project_id)
        if sender is None:  # its project is no longer configured
            sender = self._sender(message.project_id, {}, RateWindow(0), 1, OF_ONE_COMPANY)
        _log.warning("message %s: %s", message.uid, PLATFORM_ENDED)
        receipt = Receipt(outcome=SendOutcome.UNKNOWN, reason=PLATFORM_ENDED, pending=message.pending)
        await sender.settle(message, receipt)

    def _sender(
        self,
        number: int,
        channels: Mapping[str, MessageChannel],
        window: RateWindow,
        attempts: int,
        shares: SenderShares,
    ) -> ProjectSender:
        return ProjectSender(
            number,
            channels,
            journal=self.journal,
            tasks=self._tasks,
            window=window,
            shares=shares,
            attempts=attempts,
            stats=self.stats,
            on_done=self._on_done,
            clock=self._clock,
        )

    def _on_done(self, row: Row) -> None:
        waiter = self._waiters.get(row["id"])
        if waiter is not None and not waiter.done():
            waiter.set_result(row)


def split(project: Project, draft: MessageDraft) -> list[MessageDraft]:
    """A draft for each recipient where the provider takes one recipient a request; else the draft alone."""
    if not project.is_single(draft.channel):
        return [draft]
    return [msgspec.structs.replace(draft, recipients=(recipient,)) for recipient in draft.recipients]
