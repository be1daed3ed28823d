"""The journal of messages in the database: each is written before it is sent, and its outcome afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.company_records import CompanyRecords
from terrazzo.database.database import Database
from terrazzo.database.field import flag, moment, number, storable_text, text
from terrazzo.database.named_lock import take_turn
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.messages import MESSAGE, MESSAGE_FILE
from terrazzo.domain.actor import Actor
from terrazzo.domain.message_draft import MessageDraft
from terrazzo.errors import Conflict
from terrazzo.messenger.message import NO_PROJECT, Message, MessageState, Receipt
from terrazzo.messenger.rate import MINUTE_US
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say

MOST_KEPT_BYTES = 65_536  # of ``request``, and of ``response``

_columns = MESSAGE.c
_FIELDS = (
    text("uid", 32),
    number("project_id"),
    number("object_id", default=None),
    number("rule_id", default=None),
    text("channel", 16),
    text("state", 16),
    text("svc_code", 64),
    number("attempts"),
    moment("created"),
    moment("ended_us"),
    number("created_by"),
    flag("is_available"),
)
_is_queued = _columns.state == sa.literal_column("'queued'")  # as the partial index has it
_JSON = ("recipients", "pending", "content", "request", "response")


_INSERT = MESSAGE.insert().returning(MESSAGE, sort_by_parameter_order=True)


class MessageJournal(CompanyRecords):
    """Reads and writes the table ``message``; rows have their JSON columns decoded."""

    def __init__(self, database: Database, *, zone: tzinfo) -> None:
        super().__init__(database, MESSAGE, _FIELDS, moment="created", zone=zone)

    # Before the attempt

    async def add(
        self, connection: AsyncConnection, drafts: Sequence[MessageDraft], *, expires_us: int, now: int
    ) -> list[Row]:
        """Journals messages inside a transaction; returns their rows. Times in UTC microseconds."""
        if not drafts:
            return []
        values = [_values(draft, expires_us=expires_us, now=now) for draft in drafts]
        rows: list[Row] = [_decoded(found) for found in (await connection.execute(_INSERT, values)).mappings()]
        files = [
            {"message_id": row["id"], "name": file.name, "media_type": file.media_type, "content": file.content}
            for row, draft in zip(rows, drafts, strict=True)
            for file in draft.attachments
        ]
        if files:
            await connection.execute(MESSAGE_FILE.insert(), files)
        return rows

    async def submit(
        self, actor: Actor, drafts: Sequence[MessageDraft], *, expires_us: int, now: int
    ) -> tuple[list[Row], bool]:
        """Journals what a user asks for, and in the audit log that it was asked.

        With an ``idempotency_key`` that was used before, returns what was journaled then, and False.

        Raises:
            Conflict: the key was used for something else.
        """
        first = drafts[0]
        async with self._database.writing() as connection:
            if first.idempotency_key is not None:
                await take_turn(connection, f"message {first.company_id} {first.idempotency_key}")
                query = sa.select(MESSAGE).where(
                    _columns.company_id == first.company_id, _columns.idempotency_key == first.idempotency_key
                )
                found = (await connection.execute(query.order_by(_columns.id))).mappings().all()
                if found:
                    return _same([_decoded(row) for row in found], drafts), False
            rows = await self.add(connection, drafts, expires_us=expires_us, now=now)
            await write_entries(connection, [_entry(actor, row) for row in rows], now)
            return rows, True

    async def waiting(self, project_id: int, company_id: int) -> int:
        """How many messages of a company have not ended that are a project's."""
        is_own = _columns.project_id == project_id, _columns.company_id == company_id
        query = sa.select(sa.func.count()).where(*is_own, _is_queued)
        async with self._database.reading() as connection:
            return int((await connection.execute(query)).scalar_one())

    async def attempt_times(self, project_id: int, now: int) -> list[tuple[int, int]]:
        """The times (UTC microseconds) of a project's attempts within the last 60 seconds, and whose each was."""
        query = sa.select(_columns.attempted_us, _columns.company_id).where(
            _columns.project_id == project_id, _columns.attempted_us > now - MINUTE_US
        )
        async with self._database.reading() as connection:
            return [(row.attempted_us, row.company_id) for row in await connection.execute(query)]

    async def next_due_us(self, project_id: int) -> dict[int, int]:
        """When the next message of a project is due, in UTC microseconds, by company; of those that have any."""
        async with self._database.reading() as connection:
            found = (await connection.execute(_next_by_company(project_id))).all()
        return {company_id: next_us for company_id, next_us in found if next_us is not None}

    async def claim(self, project_id: int, company_id: int, now: int) -> tuple[Message, tuple[Attachment, ...]] | None:
        """Takes a company's next message that is due and journals it as being sent; None where none is due."""
        is_own = _columns.project_id == project_id, _columns.company_id == company_id
        due = (
            sa.select(MESSAGE)
            .where(*is_own, _is_queued, _columns.next_us <= now)
            .order_by(_columns.next_us, _columns.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        async with self._database.writing() as connection:
            found = (await connection.execute(due)).mappings().first()
            if found is None:
                return None
            change = {"state": MessageState.SENDING.value, "attempts": found["attempts"] + 1, "attempted_us": now}
            await connection.execute(MESSAGE.update().where(_columns.id == found["id"]).values(**change))
            files = sa.select(MESSAGE_FILE).where(MESSAGE_FILE.c.message_id == found["id"]).order_by(MESSAGE_FILE.c.id)
            attachments = [
                Attachment(file["name"], file["media_type"], file["content"])
                for file in (await connection.execute(files)).mappings()
            ]
        return _message({**_decoded(found), **change}), tuple(attachments)

    # After it

    async def finish(self, message: Message, receipt: Receipt, state: MessageState, *, next_us: int, now: int) -> Row:
        """Journals the outcome of an attempt; returns the new row. The files of an ended message are deleted."""
        has_ended = state is not MessageState.QUEUED
        change: dict[str, Any] = {
            "state": state.value,
            "svc_code": storable_text(receipt.svc_code),
            "svc_msg": storable_text(receipt.svc_msg),
            "reason": storable_text(receipt.reason),
            "request": _encoded(receipt.request),
            "response": _encoded(receipt.response),
            "pending": _encoded(list(receipt.pending)),
            "next_us": next_us,
            "ended_us": now if has_ended else None,
        }
        async with self._database.writing() as connection:
            update = MESSAGE.update().where(_columns.id == message.id).values(**change).returning(MESSAGE)
            row = _decoded((await connection.execute(update)).mappings().one())
            if has_ended:
                await connection.execute(MESSAGE_FILE.delete().where(MESSAGE_FILE.c.message_id == message.id))
        return row

    async def drop_orphans(self, project_ids: Collection[int], now: int) -> int:
        """Fails messages that wait for projects that are no longer configured; returns how many there were."""
        change = {"state": MessageState.FAILED.value, "ended_us": now, "reason": NO_PROJECT}
        orphans = _columns.state == MessageState.QUEUED.value, sa.not_(one_of(_columns.project_id, project_ids))
        async with self._database.writing() as connection:
            return (await connection.execute(MESSAGE.update().where(*orphans).values(**change))).rowcount

    async def interrupted(self) -> list[Message]:
        """Messages that were being sent when an earlier run ended."""
        query = sa.select(MESSAGE).where(_columns.state == MessageState.SENDING.value).order_by(_columns.id)
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).mappings().all()
        return [_message(_decoded(row)) for row in found]

    async def _complete(self, connection: AsyncConnection, rows: list[dict[str, Any]]) -> list[Row]:
        return [_decoded(row) for row in rows]


def _next_by_company(project_id: int) -> sa.Select[tuple[int, int]]:
    """Company after company by the index, and the first of each: one with many costs no more than one with few."""

    def least(name: str, *conditions: Callable[[Any], sa.ColumnElement[bool]]) -> sa.Select[tuple[int]]:
        of = MESSAGE.alias().c
        is_queued = of.state == sa.literal_column("'queued'")
        return sa.select(sa.func.min(of[name])).where(
            of.project_id == project_id, is_queued, *(condition(of) for condition in conditions)
        )

    first = sa.select(least("company_id").scalar_subquery().label("company_id"))
    each = first.cte("companies", recursive=True)
    following = least("company_id", lambda of: of.company_id > each.c.company_id).scalar_subquery()
    each = each.union_all(sa.select(following).where(each.c.company_id.is_not(None)))
    due = least("next_us", lambda of: of.company_id == each.c.company_id).scalar_subquery()
    return sa.select(each.c.company_id, due).where(each.c.company_id.is_not(None))


def _values(draft: MessageDraft, *, expires_us: int, now: int) -> dict[str, Any]:
    recipients = _encoded(list(draft.recipients))
    return {
        "uid": secrets.token_hex(16),
        "company_id": draft.company_id,
        "project_id": draft.project_id,
        "object_id": draft.object_id,
        "rule_id": draft.rule_id,
        "channel": draft.channel,
        "recipients": recipients,
        "pending": recipients,
        "content": msgspec.json.encode(draft.content).decode(),
        "state": MessageState.QUEUED.value,
        "created": now,
        "next_us": now,
        "expires_us": expires_us,
        "created_by": draft.created_by,
        "idempotency_key": draft.idempotency_key,
    }


def _decoded(found: Mapping[Any, Any]) -> dict[str, Any]:
    row = dict(found)
    for name in _JSON:
        row[name] = msgspec.json.decode(row[name]) if row[name] else None
    return row


def _encoded(value: Any) -> str:
    """As JSON; what is too long is replaced by its beginning."""
    if value is None:
        return ""
    encoded = msgspec.json.encode(value)
    if len(encoded) <= MOST_KEPT_BYTES:
        return encoded.decode()
    return msgspec.json.encode(f"{encoded[:1_000].decode('utf-8', 'replace')}... ({len(encoded)} bytes)").decode()


def _message(row: Mapping[str, Any]) -> Message:
    return Message(
        **{
            **{name: row[name] for name in Message.__struct_fields__},
            "recipients": tuple(row["recipients"]),
            "pending": tuple(row["pending"] or ()),
        }
    )


def _same(found: list[Row], drafts: Sequence[MessageDraft]) -> list[Row]:
    """The messages journaled when a key was first used; Conflict where they differ from what is asked now."""
    before = [(row["channel"], row["project_id"], tuple(row["recipients"]), row["content"]) for row in found]
    asked = [(each.channel, each.project_id, each.recipients, dict(each.content)) for each in drafts]
    if before != msgspec.convert(msgspec.to_builtins(asked), type=list[tuple[str, int, tuple[str, ...], Any]]):
        raise Conflict(say("key_of_another_message"))
    return found


def _entry(actor: Actor, row: Row) -> AuditEntry:
    told = {name: row[name] for name in ("channel", "project_id", "object_id", "recipients") if row[name] is not None}
    return AuditEntry(
        actor=actor,
        company_id=row["company_id"],
        action="send",
        entity="message",
        record_id=row["id"],
        uid=row["uid"],
        after=told,
    )
