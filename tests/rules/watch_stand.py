"""Rules about terminals with real parts in one process, and a clock that a test moves: nothing waits for time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rule_stand import Receiver

from migrated import seed
from own_platform import new_caller, new_mailer
from support import new_tasks
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.commands.journal import CommandJournal
from terrazzo.commands.pusher import Pusher
from terrazzo.config.messenger import MessengerSection
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.messages import MESSAGE, RULE_CONDITION
from terrazzo.database.tables.registry import AUDIT, COMMAND, TERMINAL_TAG
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.happened import Happened
from terrazzo.domain.registry import Registry
from terrazzo.messenger.channels import WebhookChannel
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.messenger import Messenger
from terrazzo.messenger.project_factory import build_projects
from terrazzo.metadata.company_limits import CompanyLimits
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.rules.commander import RuleCommander
from terrazzo.rules.names import SubjectNames
from terrazzo.rules.notice_store import NoticeStore
from terrazzo.rules.notifier import RuleNotifier
from terrazzo.rules.watch import ConditionWatch
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.times import now_us
from terrazzo_broker.hooks import Client
from waiting import until

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)
BEGIN_US = 1_800_000_000_000_000
MINUTE_US = 60_000_000


class Stand:
    """One company with rules; a platform away is its parts stopped, back is new ones on the same database."""

    def __init__(self, database: Database, entities: Entities, registry: Registry, zone: tzinfo) -> None:
        self.now = BEGIN_US
        self.database = database
        self.entities = entities
        self.registry = registry
        self.zone = zone
        self.actor = ROOT
        self.config = ""
        self.tasks = new_tasks()
        self.most_of_company = 100_000
        self.own = CompanyLimits()
        self.messages_per_hour = 1_000
        self.commands_of_company = 10_000
        self.section = MessengerSection(allow_private=("127.0.0.0/8",))
        self.clients: dict[str, Client] = {}
        self.presence = PresenceRegister()
        self._due: dict[str, int | None] = {}  # when each part works next, if nothing happens before

    def clock(self) -> int:
        return self.now

    async def found_company(self, name: str = "one") -> None:
        """A company with an administrator and a configuration, and the project that commands are sent in.

        What is made and done from now on is its own.
        """
        company = await self.entities.companies.create(ROOT, {"name": name})
        await self.entities.projects.ensure_default()
        values = {"username": f"admin-{name}", "password": "a long password", "role": "admin"}
        user = await self.entities.users.create(ROOT, {**values, "permission_company_id": company["id"]})
        self.actor = Actor(user_id=user["id"], username=f"admin-{name}", company_id=company["id"], role=Role.ADMIN)
        self.config = (await self.entities.configurations.create(self.actor, {"name": "c"}))["uid"]

    # The platform

    async def begin(self) -> None:
        """A platform starts: nobody is connected."""
        self.clients, self.presence = {}, PresenceRegister()
        caller = new_caller(self.section)
        self.messenger = Messenger(
            MessageJournal(self.database, zone=UTC),
            build_projects(self.section, mailer_of=new_mailer, caller=caller),
            tasks=self.tasks,
            webhooks=WebhookChannel(caller, self.entities.rules.webhook, timeout_s=10, clock=now_us),
            clock=self.clock,
        )
        await self.messenger.start()
        self.notifier = RuleNotifier(
            NoticeStore(self.database, clock=self.clock),
            self.messenger,
            SubjectNames(self.entities.objects, self.registry),
            tasks=self.tasks,
            zone=self.zone,
            messages_per_hour=self.messages_per_hour,
            clock=self.clock,
        )
        await self.notifier.load(self.entities.rules)
        self.watch = ConditionWatch(
            self.notifier.active_rules,
            self.database,
            self.registry,
            self.presence,  # type: ignore[arg-type] - it is asked for presences alone
            on_notices=self._on_notices,
            tasks=_NoTasks(),
            most_of_company=lambda company_id: self.own.limit(company_id, "rule_conditions", self.most_of_company),
            clock=self.clock,
        )
        self.dispatcher = CommandDispatcher(
            CommandJournal(self.database),
            registry=self.registry,
            bus=_NobodyThere(),  # type: ignore[arg-type]
            configurations=self.entities.configurations,
            tasks=_NoTasks(),
            clock=self.clock,
        )
        self.commander = RuleCommander(
            self.notifier.active_rules,
            self.database,
            Pusher(self.dispatcher, self.entities, self.registry),
            tasks=_NoTasks(),
            zone=self.zone,
            of_company=self.own.of("rule_commands_per_hour", self.commands_of_company),
            on_notices=self._on_notices,
            clock=self.clock,
        )
        self.entities.rules.changes.listen(self.watch.on_rule)
        self.entities.terminals.changes.listen(self.watch.on_terminal_record)
        self.entities.objects.changes.listen(self.watch.on_object)
        self.entities.group_maps.changes.listen(self.watch.on_group)
        self.registry.terminal_changes.listen(self.watch.on_terminal)
        self.watch.follow(self.presence.changes)
        self.entities.rules.changes.listen(self.commander.on_rule)
        await self.commander.start(await self.watch.start())
        await self.settle()

    async def end(self) -> None:
        """The platform ends, as by a kill: nobody notes anything."""
        await self.messenger.stop()

    async def stop(self) -> None:
        """The platform ends in order."""
        await self.watch.stop()
        await self.end()

    # Time

    async def pass_minutes(self, minutes: float) -> None:
        """Time passes, and everything happens when it is due; the heart beats, and is written at the end."""
        end_us = self.now + int(minutes * MINUTE_US)
        await self.settle()
        while self.now < end_us:
            next_us = min((each for each in self._due.values() if each is not None), default=end_us)
            self.now = min(max(next_us, self.now + 1), end_us)
            self.watch._ran_us = self.now
            await self._work_due()
        await self.settle()
        await self.watch._beat()

    async def settle(self) -> None:
        """All that is due now is done, after whatever the test did."""
        self._due = dict.fromkeys(("watch", "commander", "notifier"), self.now)
        await self._work_due()

    async def _work_due(self) -> None:
        """Each part works when it said that it would, and when it is told of notices, as in a platform."""
        parts = {"watch": self.watch.work, "commander": self.commander.work, "notifier": self.notifier.tell}
        for name, work in parts.items():
            due_us = self._due[name]
            if due_us is not None and due_us <= self.now:
                self._due[name] = await work()

    def _on_notices(self) -> None:
        self._due |= {"commander": self.now, "notifier": self.now}

    # Records

    async def terminals(self, count: int, *, tag: str = "", letter: str = "t", **values: Any) -> list[str]:
        """So many terminals that have been here before; their uids."""
        uids = [f"{letter}{number:04}" for number in range(1, count + 1)]
        given = {"type": "A", "mode": "pwd", "username": "u", "pin": "p", "config_id": self.config, **values}
        first = await self.entities.terminals.create(self.actor, {"uid": uids[0], "name": f"Pump {uids[0]}", **given})
        table = TERMINAL.table
        async with self.database.writing() as connection:
            row = dict((await connection.execute(sa.select(table).where(table.c.id == first["id"]))).mappings().one())
            row |= {"activated": BEGIN_US - 1}
            del row["id"]
            more = [{**row, "uid": uid, "name": f"Pump {uid}"} for uid in uids[1:]]
            await connection.execute(table.update().values(activated=BEGIN_US - 1))
            if more:
                await connection.execute(table.insert(), more)
            if tag:
                ids = (await connection.execute(sa.select(table.c.id))).scalars()
                await connection.execute(TERMINAL_TAG.insert(), [{"terminal_id": each, "tag": tag} for each in ids])
        loaded = await load_registry(self.database, self.entities.terminals.secrets)
        for terminal in loaded.terminals():
            self.registry.put_terminal(terminal)
        return uids

    async def tank(self, *uids: str, name: str = "Tank") -> int:
        """An object of these terminals with a control table of one command; its id."""
        rows = [
            ["HEAT", "Heat", "", "OBJ", "$AdapterID-1.heat", "1"],
            ["STOP", "Stop", "", "OBJ", "$AdapterID-1.h", ""],
        ]
        control = await self.entities.controls.create(self.actor, {"name": "c", "script": rows})
        values = {"name": name, "terminal_list": list(uids), "control_id": control["uid"]}
        return int((await self.entities.objects.create(self.actor, values))["id"])

    async def happen(self, object_id: int, code: str = "COLD", kind: str = "event", record_id: int = 1) -> None:
        """An event rises, or a label opens or closes."""
        row = {"id": record_id, "company_id": self.actor.company_id, "object_id": object_id, "code": code, "value": "3"}
        row |= {"label_en": "Cold", "label_cn": "", "created": self.now, "opened_at": self.now, "close_at": self.now}
        async with self.database.writing() as connection:
            await self.notifier.on_effects(connection, [Happened(kind, row)])

    async def commands(self) -> list[dict[str, Any]]:
        """The journal of commands, oldest first."""
        async with self.database.reading() as connection:
            found = await connection.execute(sa.select(COMMAND).order_by(COMMAND.c.id))
            return [dict(row) for row in found.mappings()]

    async def audited(self, action: str) -> list[dict[str, Any]]:
        """Entries of the audit log, oldest first."""
        async with self.database.reading() as connection:
            query = sa.select(AUDIT).where(AUDIT.c.action == action).order_by(AUDIT.c.id)
            return [dict(row) for row in (await connection.execute(query)).mappings()]

    async def rule(self, **fields: Any) -> str:
        """A rule that is started; its uid."""
        row = await self.entities.rules.create(self.actor, {"name": "r", "window_s": 60, **fields})
        await self.entities.rules.set_active(self.actor, row["uid"], True)
        return str(row["uid"])

    # Terminals

    def connect(self, *uids: str, address: str = "203.0.113.7") -> None:
        for uid in uids:
            client = Client(uid, f"u-{uid}", 4, address, 40_000, "tcp", self.now, 60, last_packet_us=self.now)
            self.clients[uid] = client
            self.presence.on_connected(client)

    def disconnect(self, *uids: str) -> None:
        for uid in uids:
            self.presence.on_disconnected(self.clients[uid], "keep-alive timeout")

    def hear(self, *uids: str) -> None:
        """A packet of each, which is no report."""
        for uid in uids:
            self.clients[uid].last_packet_us = self.now

    def report(self, *uids: str) -> None:
        """A report of each, by whichever connection."""
        for uid in uids:
            self.presence.trace(uid).last_telemetry_us = self.now

    # What was told

    async def told(self, receiver: Receiver, count: int) -> list[dict[str, Any]]:
        """The webhooks about terminals and objects, when all that is journaled has been sent: exactly so many."""
        await self.told_plainly(receiver, count)
        assert all(hook["summary"] for hook in receiver.hooks)
        return receiver.hooks

    async def told_plainly(self, receiver: Receiver, count: int) -> None:
        """As ``told``, of any kind."""
        await until(lambda: len(receiver.hooks) >= count, f"{count} webhooks, not {len(receiver.hooks)}")
        async with self.database.reading() as connection:
            journaled = (await connection.execute(sa.select(sa.func.count()).select_from(MESSAGE))).scalar_one()
        await until(lambda: len(receiver.hooks) >= journaled, f"{journaled} messages are sent")
        assert len(receiver.hooks) == count
        assert receiver.faults == []

    async def open_rows(self) -> list[tuple[str, int]]:
        """Kind and subject of what the database has open."""
        columns = RULE_CONDITION.c
        async with self.database.reading() as connection:
            query = sa.select(columns.kind, columns.subject_id).order_by(columns.subject_id, columns.kind)
            return [(row.kind, row.subject_id) for row in await connection.execute(query)]


class _NobodyThere:
    """A bus: commands wait in the journal."""

    def send(self, uid: str, payload: bytes, **_: Any) -> bool:
        return False

    def seen(self, uid: str) -> tuple[bool, int | None]:
        return False, None


class _NoTask:
    is_running = True

    async def wait(self) -> None:
        """At once."""

    async def stop(self) -> None:
        """Nothing runs."""


class _NoTasks:
    """Runs nothing: the test does."""

    def spawn(self, name: str, work: Callable[[], Any], on_failure: Any, **_: Any) -> _NoTask:
        return _NoTask()

    def repeat(self, name: str, interval_s: float, work: Callable[[], Any], on_failure: Any, **_: Any) -> _NoTask:
        return _NoTask()


@asynccontextmanager
async def watched_company(folder: Path, *, zone: tzinfo = UTC) -> AsyncIterator[Stand]:
    """A company without terminals and rules on a platform that has begun."""
    database = await Database.open("", data_dir=seed(folder))
    try:
        registry = Registry()
        entities = Entities.open(database, registry, Secrets.open(folder))
        stand = Stand(database, entities, registry, zone)
        await stand.found_company()
        await stand.begin()
        yield stand
        await stand.end()
    finally:
        await database.close()
