"""``Run``: rounds of faults under load on one stand, and the evidence at their end."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import NamedTuple

from cluster.cluster_evidence import CommandRecord, Evidence, Taken
from cluster.cluster_faults import Fault
from cluster.cluster_load import Moments, Terminal, until
from cluster.cluster_reading import read_evidence
from cluster.cluster_stand import Member, Stand
from migrated import PASSWORD
from terrazzo_adapters.jetstream import Connection, JetStreamLog, JetStreamSettings

SCRIPT = [
    ["T", "", "", "STA", "$AdapterID-1.T", ""],
    ["RUN", "", "", "STA", "$AdapterID-1.RUN", ""],
    ["HOT", "", "", "EVNT", "$AdapterID-1.T", "", "x > 80"],
]
_WHOLE_S = 300.0  # within which all is there again after a fault; a busy machine takes long to start processes
_COMMAND_S = 0.7
_LOOK_S = 1.0
_BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


class Round(NamedTuple):
    """What a round was and how long things took. ``gap_s``: the longest time that a terminal had no PUBACK, with the
    fault in it; ``whole_s``: from the fault's end until everything was there."""

    kind: str
    where: str
    held_s: float
    gap_s: float
    whole_s: float


class Run:
    """A load on a stand, from ``prepare`` to ``finish``."""

    def __init__(self, stand: Stand, random: Random, *, terminals: int, per_second: float) -> None:
        self.stand = stand
        self.random = random
        self.terminals: list[Terminal] = []
        self.objects: dict[str, str] = {}  # by terminal
        self.given: dict[str, str] = {}
        self.commands: dict[str, CommandRecord] = {}
        self.taken: dict[str, Taken] = {}
        self.refused = 0  # actions that weren't served
        self._uids = [f"t-{number}" for number in range(terminals)]
        self._per_second = per_second
        self._moments = Moments()
        self._config = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._giving: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Makes terminals, objects, mappings; starts the load."""
        stand = self.stand
        await self._until_whole()
        leader = await stand.leader()
        assert leader is not None
        stand.token = (await stand.call(leader, "login", username="admin", password=PASSWORD))["token"]
        self._config = (await stand.call(leader, "create_terminal_config", name="c", **_BY))["uid"]
        mapping = (await stand.call(leader, "create_mapping", name="m", script=SCRIPT, **_BY))["uid"]
        for uid in self._uids:
            await stand.call(leader, "create_terminal", **self.terminal_fields(uid))
            made = await stand.call(leader, "create_object", name=uid, mapping_id=mapping, terminal_list=[uid])
            self.objects[uid] = str(made["id"])
        labels = [["RUN", "on", "on", "1", ""]]
        retainer = await stand.call(
            leader, "create_retainer", name="r", object_list=list(self.objects.values()), script=labels
        )
        await stand.call(leader, "start_retainer", uid=retainer["uid"])
        ports = [links[0].port for name, links in stand.links.items() if name.endswith(" terminals")]
        for index, uid in enumerate(self._uids):
            turned = ports[index % len(ports) :] + ports[: index % len(ports)]
            terminal = Terminal(uid, turned, self._moments, per_second=self._per_second, taken=self.taken)
            self.terminals.append(terminal)
            self._spawn(terminal.run())
        self._giving = self._spawn(self._give_commands())
        self._spawn(self._look_at_commands())
        await self.progress(5)

    def terminal_fields(self, uid: str) -> dict[str, object]:
        """What a terminal is created with."""
        login = {"username": f"u-{uid}", "pin": f"pin-{uid}", "mode": "pwd"}
        rights = {"type": "Adapter-II", "access": "all", "topic": "all"}
        return {"uid": uid, "name": uid, "config_id": self._config, **login, **rights, **_BY}

    async def round(self, fault: Fault, *, hold_s: float) -> Round:
        """One fault, and the way back."""
        await self._spread()
        where, undo = await fault.begin(self.stand, self.random)
        clock = asyncio.get_running_loop().time
        began_s = clock()
        for terminal in self.terminals:
            terminal.longest_s, terminal.acknowledged_s = 0.0, max(terminal.acknowledged_s, began_s - 0.1)
        await asyncio.sleep(hold_s)  # how long it holds is the point of the round, not a wait for something
        await undo()
        ended_s = clock()
        await self.progress(1)
        await self._until_whole()
        whole_s = clock() - ended_s
        await self.progress(10)
        return Round(fault.kind, where, hold_s, max(each.longest_s for each in self.terminals), whole_s)

    async def _spread(self) -> None:
        """Has terminals at each front: they stay where the last fault has driven them, and a fault of a front that
        nobody is connected to shows nothing."""
        fronts = len(self.stand.fronts)
        for those in self._by_port().values():
            for terminal in those[-(-len(self.terminals) // fronts) :]:
                terminal.move()
        ports = {links[0].port for name, links in self.stand.links.items() if name.endswith(" terminals")}
        await until(lambda: set(self._by_port()) == ports, "terminals are at each front", timeout_s=_WHOLE_S)

    def _by_port(self) -> dict[int, list[Terminal]]:
        found: dict[int, list[Terminal]] = {}
        for terminal in self.terminals:
            if terminal.port:
                found.setdefault(terminal.port, []).append(terminal)
        return found

    async def progress(self, count: int) -> None:
        """Returns when each terminal has had so many more PUBACKs."""
        before = {each.uid: each.acknowledged for each in self.terminals}
        await until(
            lambda: all(each.acknowledged >= before[each.uid] + count for each in self.terminals),
            "each terminal is served",
            timeout_s=_WHOLE_S,
        )

    async def finish(self) -> Evidence:
        """Ends the load, has everything written, ends the nodes, and reads what they have."""
        stand = self.stand
        if self._giving is not None:
            self._giving.cancel()
        for terminal in self.terminals:
            terminal.end()
        await until(lambda: all(each.is_done for each in self.terminals), "all is acknowledged", timeout_s=_WHOLE_S)
        with suppress(AssertionError):  # what isn't is found by the checker
            await until(self._are_delivered, "each command is delivered", timeout_s=_WHOLE_S)
        await self._until_stored()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name, rows in (await self._journal()).items():
            if name in self.commands:
                self.commands[name].rows = rows
        for member in [*stand.fronts.values(), *stand.nodes.values()]:
            if (status := await member.stop()) != 0:
                stand.crashes.append(f"{member.name} ended with {status} when it was asked to: {member.log_tail()}")
        published = {each.uid: each.published for each in self.terminals}
        evidence = await read_evidence(stand, published, self.objects)
        evidence.given, evidence.commands, evidence.taken = self.given, self.commands, self.taken
        return evidence

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def _until_whole(self) -> None:
        clock = asyncio.get_running_loop().time
        began_s = clock()
        while what := await self.stand.unwhole():
            if clock() - began_s > _WHOLE_S:
                tails = {name: member.log_tail() for name, member in self.stand.members.items()}
                raise AssertionError(f"not within {_WHOLE_S:.0f} s: {what}\n" + "\n".join(map(str, tails.items())))
            await asyncio.sleep(0.1)

    async def _until_stored(self) -> None:
        """Until the leader has stored what fronts have taken, and the others what it has."""
        connection = Connection(JetStreamSettings(url=self.stand.servers[0].url, name="cluster"))
        await connection.open()
        try:
            taken = JetStreamLog(connection, kind="in")
            await self._until_all(lambda leader: self._has_stored(leader, taken), "the leader stores what fronts took")
        finally:
            await connection.close()
        await self._until_all(self._have_followed, "those that stand by have what the leader has")

    async def _until_all(self, condition: Callable[[Member], Awaitable[bool]], what: str) -> None:
        clock = asyncio.get_running_loop().time
        began_s = clock()
        while (leader := await self.stand.leader()) is None or not await condition(leader):
            if clock() - began_s > _WHOLE_S:
                raise AssertionError(f"not within {_WHOLE_S:.0f} s: {what}")
            await asyncio.sleep(0.2)

    async def _has_stored(self, leader: Member, taken: JetStreamLog) -> bool:
        return await self.stand.figure(leader, "terrazzo_fronts_sequence") >= (await taken.state()).last

    async def _have_followed(self, leader: Member) -> bool:
        own = await self.stand.figure(leader, "terrazzo_cluster_sequence")
        others = [
            await self.stand.figure(each, "terrazzo_cluster_sequence")
            for each in self.stand.nodes.values()
            if each is not leader
        ]
        return own > 0 and all(each >= own for each in others)

    # Commands

    async def _give_commands(self) -> None:
        for number in itertools.count():
            await asyncio.sleep(_COMMAND_S)
            leader = await self.stand.leader()
            if leader is None:
                continue
            uid, value = self.random.choice(self._uids), f"k-{number}"
            try:
                await self.stand.call(leader, "publish_terminal_command", terminal_id=uid, command="Set", value=value)
            except Exception:  # noqa: BLE001 - refused or unknown, whatever the reason: nothing was promised
                self.refused += 1
            else:
                self.given[value] = uid

    async def _look_at_commands(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            leader = await self.stand.leader()
            if leader is None:
                continue
            try:
                found = await self.stand.call(leader, "get_command_list", page_size=60)
            except Exception:  # noqa: BLE001 - as above
                self.refused += 1
                continue
            moment = self._moments.next()
            for each in found["data"]:
                record = self.commands.setdefault(each["value"], CommandRecord(each["terminal_id"]))
                if not record.states or record.states[-1][1] != each["state"]:
                    record.states.append((moment, each["state"]))

    def _are_delivered(self) -> bool:
        return all(
            value in self.commands and self.commands[value].states[-1][1] == "delivered" for value in self.given
        ) and all(each.states[-1][1] == "delivered" for each in self.commands.values())

    async def _journal(self) -> dict[str, int]:
        """How often each command is in the journal."""
        leader = await self.stand.leader()
        assert leader is not None
        counts: Counter[str] = Counter()
        index, pages = 1, 1
        while index <= pages:
            page = await self.stand.call(leader, "get_command_list", page_size=500, page_index=index)
            counts.update(each["value"] for each in page["data"])
            index, pages = index + 1, page["total_pages"]
        return counts
