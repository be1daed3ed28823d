"""One simulated world: a platform (the real one, assembled as ever), its clients, and what befalls them.

Real are the broker, the ingest, the mapping, the commands, and everything around them; models are the network, the disk
under the broker's storage and the time series store, the threads and the clock.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import json
import logging
import random
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import aiosqlite
from sim_client import Client
from sim_disk import LoopQueue, SimDisk, SimStateDatabase
from sim_ledger import Outcome, Promises, broken
from sim_loop import Deadlock, SimClock, SimLoop
from sim_network import Link
from sim_schedule import TERMINALS, Step
from sim_store import SimStore, StoreImage

from migrated import first_start, seed
from own_platform import Platform, Ports, config_in
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import OperationError
from terrazzo.runtime.control_socket import ControlSocket
from terrazzo.runtime.loop_watch import LoopWatch
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_broker.persistence import disk_storage

_ROWS = [
    ["N", "", "", "STA", "$AdapterID-1.n", ""],
    ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.t", "x", "x > 80"],
]
_SETTLE_S, _SETTLES = 5.0, 24
_MQTT_PORT = 1883


@dataclass(frozen=True, slots=True)
class Result:
    """How a run went. ``trace``: a number that is another one where anything went another way."""

    broken: list[str]
    trace: int
    messages: int
    crashes: int


class World:
    """One run of a schedule."""

    def __init__(self, run_seed: str, steps: Sequence[Step], folder: Path) -> None:
        self.clock = SimClock()
        self.chance = random.Random(f"network {run_seed}")
        self.disk = SimDisk(random.Random(f"disk {run_seed}"))
        self.store = StoreImage()
        self.promises = Promises()
        self.folder = folder
        self.platform: Platform | None = None
        self.loop: SimLoop | None = None
        self.crashes = 0
        self.messages = 0
        self.trace = 0
        self._steps = list(steps)
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._numbers = 0
        self._links = 0
        self._is_over = False
        self._down_s = 0.0
        self._port = _MQTT_PORT
        self._submitting: set[asyncio.Task[None]] = set()
        self._is_watching = False
        self.clients = {name: self._terminal(name) for name in TERMINALS}
        self.clients["watcher"] = Client("watcher", self, self, (("g/#", 2),))
        self.open_links: list[Link] = []
        self._dead: list[Any] = []  # kept until the end: what collects them would run what a crash cuts off

    def _terminal(self, name: str) -> Client:
        will = lambda k: (f"g/{name}/a", json.dumps({"w": k}).encode())  # noqa: E731
        return Client(name, self, self, ((f"p2p/{name}", 1),), will)

    # Ledger: the promises, and a trace of them

    def on_sent(self, client: Client, sent: Any) -> None:
        """Counts, and hands on."""
        self._note("sent", client.name, sent.payload)
        self.promises.on_sent(client, sent)

    def on_acknowledged(self, client: Client, sent: Any) -> None:
        """Counts, and hands on."""
        self._note("acknowledged", client.name, sent.payload)
        self.promises.on_acknowledged(client, sent)

    def on_connected(self, client: Client, *, is_present: bool) -> None:
        """Counts, and hands on."""
        self._note("connected", client.name, is_present)
        self.promises.on_connected(client, is_present=is_present)

    def on_subscribed(self, client: Client) -> None:
        """Hands on."""
        self.promises.on_subscribed(client)

    def on_left(self, client: Client) -> None:
        """Hands on."""
        self.promises.on_left(client)

    def on_got(self, client: Client, got: Any) -> None:
        """Counts, and hands on."""
        self._note("got", client.name, got.payload)
        self.promises.on_got(client, got)

    def _note(self, *what: object) -> None:
        self.messages += 1
        self.trace = crc32(f"{self.clock.now_s:.6f} {what}".encode(), self.trace)

    # Timers that go on over the platform's lives

    @property
    def now_s(self) -> float:
        """Seconds."""
        return self.clock.now_s

    def later(self, delay_s: float, work: Callable[[], None]) -> None:
        """Does it so many seconds from now, whatever the platform does."""
        self._count += 1
        due_s = self.clock.now_s + max(delay_s, 0.0)
        heapq.heappush(self._timers, (due_s, self._count, work))
        if self.loop is not None and not self.loop.is_dead:
            self.loop.call_at(due_s, self._fire)

    def _fire(self) -> None:
        loop = self.loop
        while self._timers and self._timers[0][0] <= self.clock.now_s + 1e-6:
            heapq.heappop(self._timers)[2]()
            if loop is not self.loop or loop is None or loop.is_dead:
                return

    def connect(self, client: Client) -> Link | None:
        """A connection to the platform, if it listens."""
        factory = None if self.loop is None or self.loop.is_dead else self.loop.servers.get(self._port)
        if factory is None or self.platform is None:
            return None
        self._links += 1
        link = Link(self, random.Random(f"{client.name} {self._links}"), client)
        assert self.loop is not None
        link.connect(self.loop, factory)
        self.open_links.append(link)
        return link

    # Lives of the platform

    def run(self) -> Result:
        """Until the schedule is over, all is healed, and nothing is under way any more."""
        at_s = 5.0
        for step in self._steps:
            at_s += step.after_s
            self.later(at_s, partial(self._happen, step))
        self.later(at_s + 10, self._heal)
        for client in self.clients.values():
            self.later(0.1, client.connect)
        while not self._is_over:
            self._live()
        return self._judge()

    def _live(self) -> None:
        """One life of the process."""
        self.clock.now_s += self._down_s
        self._down_s = 0.0
        with in_this_world(self):
            loop = self.loop = SimLoop(self.clock, self.disk.work_s)
            asyncio.set_event_loop(loop)
            for due_s, _, _ in self._timers:
                loop.call_at(due_s, self._fire)
            loop.call_soon(lambda: None)
            life = loop.create_task(self._serve())
            life.add_done_callback(lambda _: loop.stop())
            try:
                loop.run_forever()
                if life.done() and not life.cancelled() and life.exception() is not None:
                    self.promises.lost_sessions.append(f"the platform ended: {life.exception()!r}")
                    self._is_over = True
            except Deadlock:
                self.promises.lost_sessions.append("the world stands still")
                self._is_over = True
            finally:
                self._end(loop)

    async def _serve(self) -> None:
        assert self.loop is not None
        self._stopping = self.loop.create_future()
        platform = Platform(
            config_in(self.folder, limits={"login_failures": 0}),
            Ports(
                clock=self.clock.wall_us,
                open_store=self._open_store,
                new_supervisor=lambda on_stop: Supervisor(on_stop=on_stop, clock=self.clock.monotonic),
            ),
        )
        addresses = await platform.start()
        self._port = addresses.mqtt_port
        self.platform = platform
        await self._stopping
        self.platform = None
        await platform.stop()

    async def _open_store(self, _config: Any, _tasks: Any) -> Any:
        return SimStore(self.store, self.disk)

    def _end(self, loop: SimLoop) -> None:
        """What is left of a process that has ended."""
        self._dead.append((loop, asyncio.all_tasks(loop), self.platform))
        loop.die()
        self.platform = None
        self.disk.crash()
        links, self.open_links = self.open_links, []
        for link in links:
            if link.is_open:
                link.cut()
        self._submitting.clear()
        asyncio.set_event_loop(None)

    def crash(self, down_s: float) -> None:
        """The machine is off for so many seconds."""
        if self.loop is not None and not self.loop.is_dead:
            self.crashes += 1
            open_ones = [sent for client in self.clients.values() for sent in client.under_way]
            self.promises.in_doubt |= {sent.payload for sent in open_ones if not sent.is_received}
            self._down_s = down_s
            self.loop.is_dead = True
            self.loop.stop()

    # What happens

    def _happen(self, step: Step) -> None:
        client = self.clients[step.who]
        self.promises.disturbances += step.kind not in ("report", "burst", "alarm", "retain", "command")
        if step.kind in ("report", "alarm", "burst"):
            for number in range(int(step.value) if step.kind == "burst" else 1):
                qos = int(step.value) if step.kind == "report" else 1 + number % 2
                self._report(client, qos, is_hot=step.kind == "alarm")
        elif step.kind == "retain":
            self._numbers += 1
            client.publish(f"g/{step.who}/i", json.dumps({"k": self._numbers}).encode(), 1, retain=True)
        elif step.kind == "command":
            self._command(step.who)
        elif step.kind == "crash":
            self.crash(step.value)
        elif step.kind == "restart":
            if self.platform is not None and not self._stopping.done():
                self._stopping.set_result(None)
        else:
            self._disturb(client, step)

    def _disturb(self, client: Client, step: Step) -> None:
        link = client.link
        if step.kind == "cut" and link is not None:
            link.cut()
        elif step.kind == "takeover":
            client.take_over()
        elif step.kind == "stall" and link is not None:
            link.stall(1)
            self.later(step.value, lambda: link.stall(-1))
        elif step.kind == "leave":
            client.leave()
            self.later(step.value, client.come_back)
        elif step.kind == "slow disk":
            self.disk.is_slow = True
            self.later(step.value, lambda: setattr(self.disk, "is_slow", False))
        elif step.kind == "full disk":
            self.disk.is_full = True
            self.later(step.value, lambda: setattr(self.disk, "is_full", False))
        elif step.kind == "clock":
            self.clock.offset_s += step.value
            self.promises.clock_went_back |= step.value < 0

    def _report(self, client: Client, qos: int, *, is_hot: bool) -> None:
        self._numbers += 1
        value = 100 + self._numbers if is_hot else 1
        client.publish(f"g/{client.name}/r", json.dumps({"n": self._numbers, "t": value}).encode(), qos)

    def _command(self, uid: str) -> None:
        if self.platform is None or self.loop is None:
            return
        self._numbers += 1
        task = self.loop.create_task(self._submit(self.platform, uid, str(self._numbers)))
        self._submitting.add(task)
        task.add_done_callback(self._submitting.discard)

    async def _submit(self, platform: Platform, uid: str, value: str) -> None:
        try:
            await platform.messaging.commands.submit(_OPERATOR, uid, "SET", value)
        except OperationError:
            return
        if not self.disk_is_gone(platform):
            self._note("journaled", uid, value)
            self.promises.commands.append((uid, value))

    def disk_is_gone(self, platform: Platform) -> bool:
        """Whether a platform is one that has crashed."""
        return self.platform is not platform

    # The end

    def _heal(self) -> None:
        self.disk.is_slow = self.disk.is_full = False
        for client in self.clients.values():
            client.come_back()
        self._settle(_SETTLES, None)

    def _settle(self, left: int, before: int | None) -> None:
        """Looks every few seconds whether everything has come to rest."""
        is_quiet = self.platform is not None and all(client.is_quiet for client in self.clients.values())
        if (is_quiet and before == self.messages) or not left:
            return self._ask_retained()
        return self.later(_SETTLE_S, lambda: self._settle(left - 1, self.messages))

    def _ask_retained(self) -> None:
        """A client that was never here before hears what is retained."""
        self.clients["fresh"] = fresh = Client("fresh", self, self, (("g/#", 1),), is_clean=True)
        fresh.connect()
        self.later(3.0, self._finish)

    def _finish(self) -> None:
        self._is_over = True
        if self.platform is not None and not self._stopping.done():
            self._stopping.set_result(None)
        else:
            self.crash(0)

    def _judge(self) -> Result:
        outcome = Outcome(
            grids={name: self.store.bodies(name) for name in self.store.series if name.startswith("g/")},
            mosaic=self.store.bodies(f"m/{_template().object_id}"),
            events=self._events(),
            commands=self._commands(),
            retained={got.topic: got.payload for got in self.clients["fresh"].got if got.retain}
            if "fresh" in self.clients
            else {},
        )
        faults = [] if self.loop is None else [f"in the platform: {fault}" for fault in self.loop.faults]
        return Result(broken(self.promises, outcome) + faults, self.trace, self.messages, self.crashes)

    def _read(self, statement: str) -> list[Any]:
        connection = sqlite3.connect(self.folder / "terrazzo.db")
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def _events(self) -> list[int]:
        return [int(value) for (value,) in self._read("SELECT extension_value FROM event ORDER BY id")]

    def _commands(self) -> dict[str, dict[str, Any]]:
        rows = self._read("SELECT value, state, terminal_id FROM command")
        return {value: {"state": state, "terminal_id": uid} for value, state, uid in rows}


_OPERATOR = Actor(user_id=1, username="root", company_id=2, role=Role.ADMIN)
_ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)


@contextmanager
def in_this_world(world: Any) -> Iterator[None]:
    """Meanwhile time, threads, the broker's disk and SQLite's threads are the world's."""
    chance = random.Random(f"names {world.crashes}")
    connect = aiosqlite.Connection.__init__

    def new_connection(self: Any, *given: Any, **more: Any) -> None:
        connect(self, *given, **more)
        self._tx = LoopQueue(asyncio.get_running_loop(), world.disk)  # type: ignore[arg-type]
        self._thread = mock.Mock()

    with ExitStack() as stack:
        enter = stack.enter_context
        enter(world.clock.installed())
        enter(mock.patch.object(aiosqlite.Connection, "__init__", new_connection))
        enter(mock.patch.object(aiosqlite.Connection, "__del__", _end_nothing))
        enter(mock.patch.object(disk_storage, "StateDatabase", partial(SimStateDatabase, world.disk)))
        enter(mock.patch("secrets.token_hex", lambda size=32: chance.randbytes(size).hex()))
        enter(mock.patch("secrets.token_urlsafe", lambda size=32: chance.randbytes(size).hex()))
        enter(mock.patch.object(LoopWatch, "start", _end_nothing))
        enter(mock.patch.object(LoopWatch, "stop", _end_nothing))
        enter(mock.patch.object(ControlSocket, "start", _nothing))
        enter(warnings.catch_warnings())
        yield


async def _nothing(_self: Any) -> None:
    """Does nothing."""


def _end_nothing(_: Any) -> None:
    """Does nothing."""


# The data folder that each run begins with


@dataclass(frozen=True, slots=True)
class Template:
    """A data folder with terminals and a mapped object."""

    folder: Path
    object_id: int


@cache
def _template() -> Template:
    kept = tempfile.TemporaryDirectory(prefix="terrazzo-simulation-")
    _kept.append(kept)
    folder = Path(kept.name) / "data"
    seed(folder, first_start)
    made: list[int] = []

    world = World("template", (), folder)
    world.clients.clear()

    async def fill() -> None:
        while world.platform is None:  # noqa: ASYNC110 - it starts in a task of its own
            await asyncio.sleep(0.1)
        made.append(await _fill(world.platform))
        world._is_over = True
        world._stopping.set_result(None)

    world.later(0.1, lambda: world.loop.create_task(fill()) and None)  # type: ignore[union-attr]
    while not world._is_over:
        world._live()
    shutil.rmtree(folder / "broker", ignore_errors=True)
    return Template(folder, made[0])


_kept: list[tempfile.TemporaryDirectory[str]] = []


async def _fill(platform: Platform) -> int:
    entities = platform.metadata.entities
    company = await entities.companies.create(_ROOT, {"name": "one"})
    assert company["id"] == _OPERATOR.company_id
    config = await entities.configurations.create(_OPERATOR, {"name": "c"})
    base = {"type": "Other", "mode": "pwd", "config_id": config["uid"]}
    for name in (*TERMINALS, "watcher", "fresh"):
        given = {"uid": name, "name": name, "username": f"u-{name}", "pin": f"pin-{name}"}
        given["topic"] = "all" if name in TERMINALS else "sub:g/#"
        await entities.terminals.create(_OPERATOR, base | given)
    mapping = await entities.mappings.create(_OPERATOR, {"name": "m", "script": json.dumps(_ROWS), "is_available": 1})
    item = await entities.objects.create(
        _OPERATOR, {"name": "o", "mapping_id": mapping["uid"], "terminal_list": ["s1"]}
    )
    return int(item["id"])


def run(run_seed: str, steps: Sequence[Step]) -> Result:
    """One run in a folder of its own."""
    template = _template()
    random.seed(run_seed)
    with tempfile.TemporaryDirectory(prefix="terrazzo-simulation-") as name, _in_silence():
        folder = Path(name) / "data"
        shutil.copytree(template.folder, folder)
        return World(run_seed, steps, folder).run()


@contextmanager
def _in_silence() -> Iterator[None]:
    """Meanwhile nothing is logged, and nobody hears of coroutines that a crash has cut off."""
    logging.disable(logging.CRITICAL)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield
            finally:
                with mock.patch.object(sys, "unraisablehook", _end_nothing):
                    gc.collect()
    finally:
        logging.disable(logging.NOTSET)
        if collecting:
            gc.enable()
