"""``Stand``: three servers of a log, PostgreSQL, nodes and fronts as processes on one machine, each link between two of
them a proxy that can be cut."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from cluster.cluster_links import Link
from nats_servers import NatsServer
from postgresql_server import PostgreSQL
from running import Platform
from terrazzo.client import Client

_ASK_S = 3.0
_WATCH_S = 0.2


class Program(Platform):
    """A node or front; nobody waits for it here."""

    def wait_ready(self, condition: Callable[[], bool], *, timeout_s: float = 0) -> None:
        """Returns at once."""


class Member:
    """A node or front by name, over all of its starts. ``is_meant_down``: somebody has ended or stopped it."""

    def __init__(self, folder: Path, environment: dict[str, str], *, is_front: bool) -> None:
        self.name = folder.name
        self.is_front = is_front
        self.is_meant_down = True
        self.ended = 0  # starts that ended by themselves, as another one leads or has declared it dead
        self._folder = folder
        self._environment = environment
        self._program: Program | None = None
        self._ports: tuple[int, ...] = ()

    @property
    def program(self) -> Program:
        assert self._program is not None  # started
        return self._program

    async def start(self) -> None:
        """Starts it; it may take its time to be ready."""
        program = await asyncio.to_thread(Program, self._folder, env=self._environment, ports=self._ports)
        self._program, self._ports = program, program.ports
        self.is_meant_down = False

    def signal(self, number: int) -> None:
        self.is_meant_down = number != signal.SIGCONT
        self.program.process.send_signal(number)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await asyncio.to_thread(self.program.kill)

    async def stop(self) -> int:
        """Ends it in order; its exit status."""
        self.is_meant_down = True
        return await asyncio.to_thread(self.program.stop, timeout_s=60)

    def ended_with(self) -> int | None:
        """The exit status of a start that has ended by itself."""
        return None if self.is_meant_down or self._program is None else self._program.process.poll()

    def log_tail(self) -> str:
        """The end of what all its starts have logged."""
        return self.program.log.read_text(errors="replace")[-3_000:]


class Stand:
    """Everything, started by ``start`` and ended by ``close``. ``crashes``: programs that ended with a status of which
    nobody is to be started again."""

    def __init__(
        self, folder: Path, postgresql: PostgreSQL, *, nodes: Sequence[str], fronts: Sequence[str], lease_s: float = 3.0
    ) -> None:
        self.folder = folder
        self.postgresql = postgresql
        self.servers = [NatsServer(folder / f"log{number}", number) for number in range(3)]
        self.links: dict[str, list[Link]] = {}  # by the two ends: "a log", "a database", "log0 log", "f1 terminals"
        self.nodes: dict[str, Member] = {}
        self.fronts: dict[str, Member] = {}
        self.crashes: list[str] = []
        self.database = ""
        self.token: str | None = None
        self._names = (tuple(nodes), tuple(fronts))
        self._lease_s = lease_s
        self._led = ""
        self._session: aiohttp.ClientSession | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def members(self) -> dict[str, Member]:
        return {**self.nodes, **self.fronts}

    async def start(self) -> None:
        """Starts all of it; nodes and fronts get ready by themselves."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_ASK_S))
        await self._start_log()
        self.database = await asyncio.to_thread(self.postgresql.migrated_database)
        nodes, fronts = self._names
        for name in (*nodes, *fronts):
            environment = await self._environment(name, is_front=name in fronts)
            member = Member(self.folder / name, environment, is_front=name in fronts)
            (self.fronts if name in fronts else self.nodes)[name] = member
            await member.start()
        for name, member in self.fronts.items():
            self.links[f"{name} terminals"] = [await Link(f"{name} terminals", member.program.mqtt).open()]
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Kills what is left."""
        if self._keeper is not None:
            self._keeper.cancel()
        for member in self.members.values():
            if member._program is not None:
                await member.kill()
        for server in self.servers:
            server.kill()
        for link in itertools.chain(*self.links.values()):
            await link.close()
        if self._session is not None:
            await self._session.close()

    # What is asked of it

    async def leader(self) -> Member | None:
        """The node that serves, even where a part of it isn't ready now. The one of before is asked first."""
        for member in sorted(self.nodes.values(), key=lambda each: each.name != self._led):
            if not member.is_meant_down and "cluster" not in (await self.parts(member) or {"cluster"}):
                self._led = member.name
                return member
        return None

    async def parts(self, member: Member) -> set[str] | None:
        """The parts of a node or front that its readiness is about; None while it doesn't answer."""
        found = await self.readiness(member)
        return None if found is None else set(json.loads(found)["parts"])

    async def readiness(self, member: Member) -> str | None:
        """What it says of its readiness, ready or not; None while it doesn't answer."""
        return await self._get(f"{member.program.url}/readyz", refused=True)

    async def unwhole(self) -> str:
        """What keeps it from being whole; empty if nothing does."""
        leader = await self.leader()
        if leader is None or not await self._is_ready(leader):
            return "nobody leads"
        for member in self.fronts.values():
            if not await self._is_ready(member):
                return f"{member.name} is not ready"
        for member in self.nodes.values():
            if await self._get(f"{member.program.url}/healthz") is None:
                return f"{member.name} does not answer"
        return ""

    async def figure(self, member: Member, name: str) -> float:
        """A figure of its metrics, -1 while it doesn't answer."""
        text = await self._get(f"{member.program.url}/metrics") or ""
        found = re.search(rf"^{name} ([0-9.e+]+)$", text, re.M)
        return float(found[1]) if found else -1.0

    async def call(self, member: Member, action: str, **fields: Any) -> Any:
        """The result of an action at a node.

        Raises:
            Exception: it was refused, or isn't known.
        """

        def ask() -> Any:
            with Client(member.program.url, token=self.token, timeout_s=_ASK_S) as client:
                return client.call(action, **fields)

        return await asyncio.to_thread(ask)

    async def log_leader(self, stream: str = "CLUSTER_IN") -> NatsServer:
        """The server that leads a stream; any of them while none does."""
        for server in self.servers:
            found = await self._get(f"{server.monitor_url}/jsz?accounts=true&streams=true")
            place = re.search(rf'"name": "{stream}".*?"leader": "(\w+)"', found or "", re.S)
            if place:
                return next(each for each in self.servers if each.name == place[1])
        return self.servers[0]

    async def _is_ready(self, member: Member) -> bool:
        return await self._get(f"{member.program.url}/readyz") is not None

    async def _get(self, url: str, *, refused: bool = False) -> str | None:
        """The answer's text; None without one, or with an error, unless ``refused``."""
        assert self._session is not None  # started
        try:
            async with self._session.get(url) as answer:
                return await answer.text() if answer.status == 200 or refused else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None

    # How it is put together

    async def _start_log(self) -> None:
        for server in self.servers:
            routes = self.links.setdefault(f"{server.name} log", [])
            ports = []
            for other in self.servers:
                if other is not server:
                    link = await Link(f"{server.name} to {other.name}", other.route_port).open()
                    routes.append(link)
                    self.links.setdefault(f"{other.name} log", []).append(link)
                    ports.append(link.port)
            inward = await Link(f"others to {server.name}", server.route_port).open()
            routes.append(inward)
            server.configure(self.servers, routes=ports, advertise=inward.port)
        for server in self.servers:
            server.start()
        for server in self.servers:
            await asyncio.to_thread(server.wait)

    async def _environment(self, name: str, *, is_front: bool) -> dict[str, str]:
        to_log = [await Link(f"{name} to {server.name}", server.port).open() for server in self.servers]
        host, port, path = _parts(self.database)
        to_database = await Link(f"{name} to the database", port).open()
        self.links[f"{name} log"], self.links[f"{name} database"] = to_log, [to_database]
        return {
            "TERRAZZO_DATABASE__URL": f"{host}:{to_database.port}/{path}",
            "TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32,
            "TERRAZZO_AUTH__TOKEN_KEY": "k" * 32,
            "TERRAZZO_STREAM__KIND": "jetstream",
            "TERRAZZO_STREAM__URL": ",".join(f"nats://127.0.0.1:{link.port}" for link in to_log),
            "TERRAZZO_STREAM__MONITOR_URL": ",".join(server.monitor_url for server in self.servers),
            "TERRAZZO_STREAM__LOG_GIB": "0.5",
            "TERRAZZO_STREAM__IN_GIB": "0.2",
            "TERRAZZO_CLUSTER__NAME": "cluster",
            "TERRAZZO_CLUSTER__NODE": name,
            "TERRAZZO_CLUSTER__LEASE_S": str(self._lease_s),
            **({"TERRAZZO_CLUSTER__ROLE": "front"} if is_front else {}),
        }

    async def _keep(self) -> None:
        """Starts again what has ended by itself, as a service manager does."""
        while True:
            for member in self.members.values():
                status = member.ended_with()
                if status is None:
                    continue
                if status == 1:
                    member.ended += 1
                else:
                    self.crashes.append(f"{member.name} ended with {status}: {member.log_tail()}")
                member.is_meant_down = True
                if len(self.crashes) < 10:
                    await member.start()
            await asyncio.sleep(_WATCH_S)


def _parts(url: str) -> tuple[str, int, str]:
    found = re.fullmatch(r"(.*):(\d+)/(\w+)", url)
    assert found is not None, url
    return found[1], int(found[2]), found[3]
