"""What people have done in the demo's week, once its history is there: statistics, commands, remarks, a service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from terrazzo.commands.pusher import ObjectRequest
from terrazzo.database.port import Conditions
from terrazzo.demo.fleet import HOUR_US, STEP_S, last_told
from terrazzo.demo.records import ensure, is_untouched, objects_of
from terrazzo.demo.scripts import CALCULATES, STATISTICS
from terrazzo.demo.site import COMPANY, OBJECTS, TERMINALS, DemoTerminal
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.events.events import ACKNOWLEDGED, CLEARED, EventRecords
from terrazzo.metadata.entities import Entities
from terrazzo.ports.store import TimeSeriesStore

_LOOK_S = 0.25
_PATIENCE_S = 300.0
_LEFT_OPEN = 4  # events, the newest ones
_SERVICE = "Filters and belts checked 检查滤网与皮带"
_COMMANDS = (
    ("Chiller 1", "Setpoint", "6.5"),
    ("Chiller 2", "Diag", ""),
    ("Compressor 1", "Setpoint", "7.2"),
    ("Bottling line 1", "Speed", "11500"),
    ("Main supply", "Limit", "480"),
    ("Boiler house feeder", "Diag", ""),  # waits for a terminal that doesn't get in
)
_REMARKS = (
    "Back to normal 已恢复正常",
    "The strainer was clogged, cleaned 滤网堵塞，已清洗",
    "A bottle had fallen over, removed 倒瓶已清理",
)


class CommandGiver(Protocol):
    """The pusher, as far as the demo needs it."""

    async def publish(self, actor: Actor, requests: Sequence[ObjectRequest]) -> object:
        """Journals commands and sends them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoWeek:
    """Waits for the history, then makes what follows from it; what is there already stays as it is."""

    entities: Entities
    store: TimeSeriesStore
    pusher: CommandGiver
    events: EventRecords
    started_us: int

    async def work(self) -> bool:
        """Returns when all is there, and whether something was missing; after a restart it goes on with what is."""
        found = await self.entities.services.page(SYSTEM, page_size=1, conditions=_named(_SERVICE))
        if found.rows:
            return False
        await self._history()
        operator = await self._operator()
        actor = Actor(user_id=1, username="demo", company_id=operator.company_id, role=Role.ADMIN)
        objects = await self._objects(actor)
        await self._statistics(actor, objects)
        await self._commands(operator, objects)
        await self._remarks(operator)
        done = {"name": _SERVICE, "object_id": objects[OBJECTS[0].name], "category": "日常巡检", "source": "object"}
        await self.entities.services.create(
            operator, {**done, "staff_name": "Chen Yu 陈宇"}
        )  # last: says that all is there
        return True

    async def _history(self) -> None:
        """Waits until each terminal has reported since the start, or all that it will; not for ever, if one can't."""
        waiting = [terminal for terminal in TERMINALS if not terminal.is_misset]
        for _ in range(round(_PATIENCE_S / _LOOK_S)):
            waiting = [terminal for terminal in waiting if not await self._has_told_all(terminal)]
            if not waiting:
                return
            await asyncio.sleep(_LOOK_S)

    async def _has_told_all(self, terminal: DemoTerminal) -> bool:
        told = await last_told(self.store, terminal.uid)
        ends_us = self.started_us
        if terminal.silent_h:
            ends_us -= terminal.silent_h * HOUR_US + STEP_S * 1_000_000
        return told is not None and told.time_us >= ends_us

    async def _operator(self) -> Actor:
        row = await self.entities.users.by_name("demo-operator")
        assert row is not None
        company = row["permission_company_id"]
        return Actor(user_id=row["id"], username="demo-operator", company_id=company, role=Role.OPERATOR)

    async def _objects(self, actor: Actor) -> dict[str, int]:
        names = [each.name for each in OBJECTS]
        found = await self.entities.objects.page(
            actor, page_size=1_000, conditions=Conditions(within=[("name", names)])
        )
        return {row["name"]: row["id"] for row in found.rows}

    async def _statistics(self, actor: Actor, objects: dict[str, int]) -> None:
        entities = self.entities
        for repository, scripts in ((entities.statistics, STATISTICS), (entities.calculates, CALCULATES)):
            for kind, (name, rows) in scripts.items():
                given = {"name": name, "object_list": objects_of(kind, objects), "script": rows}
                script = await ensure(repository, actor, given)
                if is_untouched(script):
                    await repository.set_active(actor, script["id"], True)

    async def _commands(self, operator: Actor, objects: dict[str, int]) -> None:
        """Each once, however often the platform starts: its key says so."""
        for number, (name, command, value) in enumerate(_COMMANDS, 1):
            object_id = next(number for each, number in objects.items() if each.rpartition(" ")[0] == name)
            key = f"{COMPANY} {number}"
            await self.pusher.publish(operator, [ObjectRequest(object_id, command, value, idempotency_key=key)])

    async def _remarks(self, operator: Actor) -> None:
        """What needed a person was dealt with, but for the newest, of which somebody takes care of the older half."""
        found = await self.events.page(operator, page_size=1_000, conditions=_raised(), order_by=("created", False))
        rows = found.rows
        for number, row in enumerate(rows[:-_LEFT_OPEN]):
            await self.events.move(operator, row["id"], CLEARED, comment=_REMARKS[number % len(_REMARKS)])
        for row in rows[-_LEFT_OPEN : -_LEFT_OPEN // 2]:
            await self.events.move(operator, row["id"], ACKNOWLEDGED, comment="On my way 马上到")


def _named(name: str) -> Conditions:
    return Conditions(all_of=[("name", "=", name)])


def _raised() -> Conditions:
    return Conditions(all_of=[("state", "=", "raised")])
