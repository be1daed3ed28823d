"""Messages of several companies: each has its turn, and receivers of one that hang keep no other's waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from messenger_rig import Clock

from migrated import seed
from support import new_tasks
from terrazzo.config.messenger import MessengerProjectSection
from terrazzo.database.database import Database
from terrazzo.database.tables.messages import MESSAGE
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.message_draft import WEBHOOKS, MessageDraft
from terrazzo.errors import Throttled
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.message import Message, Receipt
from terrazzo.messenger.messenger import Messenger
from terrazzo.messenger.projects import Project, Projects
from terrazzo.messenger.rate import MINUTE_US, RateWindow
from terrazzo.ports import at_work
from terrazzo.ports.providers import Attachment, SendOutcome
from waiting import until

LARGE, SMALL = 1, 2
SHARED, OWN = 5, 6


class Receivers:
    """A channel whose receivers of some companies hang until they are let go."""

    resend_unknown = False

    def __init__(self) -> None:
        self.hang: set[int] = set()
        self.go = asyncio.Event()
        self.sent: list[int] = []  # companies, in the order in which attempts began
        self.most = 0  # attempts of the large company at the same time
        self.noted: set[tuple[int, int]] = set()
        self._now = 0

    async def send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        self.sent.append(message.company_id)
        self.noted.add((message.company_id, at_work.company_id()))
        if message.company_id in self.hang:
            self._now += 1
            self.most = max(self.most, self._now)
            await self.go.wait()
            self._now -= 1
        return Receipt(outcome=SendOutcome.SENT)


def draft(company_id: int, project_id: int) -> MessageDraft:
    channel = "webhook" if project_id == WEBHOOKS else "sms"
    return MessageDraft(
        company_id=company_id, project_id=project_id, channel=channel, recipients=("1",), content={"msgdata": "x"}
    )


def actor(company_id: int) -> Actor:
    return Actor(user_id=1, username="u", company_id=company_id, role=Role.ADMIN)


class Stand:
    """A messenger with webhooks, a project of all companies and one of the large company's."""

    def __init__(self, database: Database, clock: Clock, *, per_minute: int, queued: int) -> None:
        self.database, self.clock, self.receivers = database, clock, Receivers()
        projects = [
            MessengerProjectSection(id=SHARED, name="shared", per_minute=per_minute),
            MessengerProjectSection(id=OWN, name="own", per_minute=0, company_id=LARGE),
        ]
        self.messenger = Messenger(
            MessageJournal(database, zone=UTC),
            Projects(Project(each, {"sms": self.receivers}) for each in projects),
            tasks=new_tasks(),
            webhooks=self.receivers,
            queued_messages=queued,
            clock=clock,
        )

    async def put(self, company_id: int, count: int, project_id: int = SHARED, *, wakes: bool = True) -> None:
        """As rules do it."""
        async with self.database.writing() as connection:
            await self.messenger.put(connection, [draft(company_id, project_id)] * count)
        if wakes:
            self.messenger.wake()

    async def submit(self, company_id: int) -> Sequence[Any]:
        return await self.messenger.submit(actor(company_id), draft(company_id, SHARED))


@asynccontextmanager
async def standing(
    folder: Path, *, per_minute: int = 0, queued: int = 1_000, starts: bool = True
) -> AsyncIterator[Stand]:
    database = await Database.open("", data_dir=seed(folder))
    stand = Stand(database, Clock(), per_minute=per_minute, queued=queued)
    try:
        if starts:
            await stand.messenger.start()
        yield stand
        stand.receivers.go.set()
    finally:
        await stand.messenger.stop()
        await database.close()


@pytest.mark.parametrize(("project_id", "most"), [(WEBHOOKS, 4), (SHARED, 3)])
async def test_receivers_of_a_company_that_hang_do_not_delay_anothers(
    tmp_path: Path, each_database: str, project_id: int, most: int
) -> None:
    async with standing(tmp_path) as stand:
        stand.receivers.hang = {LARGE}
        await stand.put(LARGE, 40, project_id)
        await until(lambda: stand.receivers.sent == [LARGE] * most, f"{most} of the large company's are under way")
        for count in (1, 2, 3):
            await stand.put(SMALL, 1, project_id)
            await until(lambda count=count: stand.receivers.sent.count(SMALL) == count, "the small company's is sent")
        assert stand.receivers.most == most
        stand.receivers.go.set()
        await until(lambda: stand.receivers.sent.count(LARGE) == 40, "the others follow")
        assert stand.receivers.noted == {(LARGE, LARGE), (SMALL, SMALL)}


async def test_a_project_of_one_company_has_all_senders(tmp_path: Path) -> None:
    async with standing(tmp_path) as stand:
        stand.receivers.hang = {LARGE}
        await stand.put(LARGE, 9, OWN)
        await until(lambda: stand.receivers.most == 4, "four at the same time")


async def test_companies_take_turns_however_many_messages_one_has(tmp_path: Path, each_database: str) -> None:
    async with standing(tmp_path, starts=False) as stand:
        await stand.put(LARGE, 60, wakes=False)
        await stand.put(SMALL, 3, wakes=False)
        await stand.put(3, 1, wakes=False)
        await stand.messenger.start()
        await until(lambda: len(stand.receivers.sent) == 64, "all are sent")
        at = [number for number, company_id in enumerate(stand.receivers.sent) if company_id != LARGE]
        assert at[-1] <= 12, stand.receivers.sent[:20]


async def test_who_has_not_had_its_share_of_the_rate_waits_for_its_turn_and_is_not_refused(tmp_path: Path) -> None:
    async with standing(tmp_path, per_minute=4) as stand:
        await stand.put(LARGE, 20)
        await until(lambda: len(stand.receivers.sent) == 4, "as many as the rate allows")
        with pytest.raises(Throttled, match="4 messages a minute"):
            await stand.submit(LARGE)
        asking = asyncio.create_task(stand.submit(SMALL))
        waiting = stand.messenger.journal.waiting
        async with asyncio.timeout(15):
            while not await waiting(SHARED, SMALL):  # noqa: ASYNC110 - the database says so
                await asyncio.sleep(0.01)
        assert not asking.done()
        stand.clock.ahead_us += MINUTE_US
        stand.messenger.wake()
        (row,) = await asking
        assert row["state"] == "sent"
        assert stand.receivers.sent.index(SMALL) <= 5, "the next turn, or the one after it"


async def test_a_companys_messages_that_wait_leave_room_for_anothers(tmp_path: Path) -> None:
    async with standing(tmp_path, queued=5) as stand:
        stand.receivers.hang = {LARGE}
        await stand.put(LARGE, 8)  # three are under way
        await until(lambda: len(stand.receivers.sent) == 3, "some are under way")
        with pytest.raises(Throttled, match=r"5 messages wait already \(messenger\.queued_messages\)"):
            await stand.submit(LARGE)
        (row,) = await stand.submit(SMALL)
        assert row["state"] == "sent"


async def test_when_companies_are_due_is_asked_of_the_index_alone(tmp_path: Path) -> None:
    """However many messages one has, and however many there were."""
    from terrazzo.messenger.journal import _next_by_company

    async with standing(tmp_path, starts=False) as stand:
        await stand.put(LARGE, 30, wakes=False)
        await stand.put(7, 2, wakes=False)
        due = await stand.messenger.journal.next_due_us(SHARED)
        assert list(due) == [LARGE, 7]
        assert await stand.messenger.journal.next_due_us(WEBHOOKS) == {}
        query = str(_next_by_company(SHARED).compile(stand.database.engine, compile_kwargs={"literal_binds": True}))
        async with stand.database.reading() as connection:
            plan = [str(row[-1]) for row in await connection.execute(sa.text(f"EXPLAIN QUERY PLAN {query}"))]
            least = (await connection.execute(sa.select(sa.func.min(MESSAGE.c.next_us)))).scalar_one()
        assert due[LARGE] == least
        reads = [each for each in plan if "message" in each]
        assert len(reads) == 3
        assert all("SEARCH" in each and "INDEX ix_message_queued (project_id=?" in each for each in reads), plan


def test_even_shares_of_a_rate() -> None:
    window = RateWindow(4, [(3, LARGE), (1, LARGE), (2, LARGE)])
    assert window.free_us(5) == 5
    assert window.has_share(LARGE, 0)
    window.take(4, LARGE)
    assert window.free_us(5) == 1 + MINUTE_US
    assert not window.has_share(LARGE, 0), "alone it had all of it"
    assert window.has_share(SMALL, 1)
    assert not window.has_share(SMALL, 2), "what waits counts"
    for now_us in (5, 6):
        window.take(now_us, SMALL)
    assert not window.has_share(SMALL, 0)
    assert not window.has_share(LARGE, 0)
    for now_us in range(7, 11):
        window.take(now_us, SMALL)
    assert window.has_share(LARGE, 1), "the others' are over"
    assert RateWindow(1).has_share(LARGE, 0), "one a minute is some"
