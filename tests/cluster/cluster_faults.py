"""The faults of the rounds: what each does to a stand, and how it ends again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from cluster.cluster_links import Way
from cluster.cluster_stand import Member, Stand

Undo = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """``begin`` does it, and returns where it was done and what ends it."""

    kind: str
    begin: Callable[[Stand, Random], Awaitable[tuple[str, Undo]]]


async def _pick(stand: Stand, random: Random, whom: str) -> Member:
    leader = await stand.leader()
    if whom == "front":
        return random.choice(list(stand.fronts.values()))
    if whom == "leader" and leader is not None:
        return leader
    others = [each for each in stand.nodes.values() if each is not leader]
    return random.choice(others or list(stand.nodes.values()))


def kill(whom: str) -> Fault:
    async def begin(stand: Stand, random: Random) -> tuple[str, Undo]:
        member = await _pick(stand, random, whom)
        await member.kill()
        return member.name, member.start

    return Fault(f"kill {whom}", begin)


def stop(whom: str) -> Fault:
    async def begin(stand: Stand, random: Random) -> tuple[str, Undo]:
        member = await _pick(stand, random, whom)
        member.signal(signal.SIGSTOP)

        async def go_on() -> None:
            member.signal(signal.SIGCONT)

        return member.name, go_on

    return Fault(f"stop {whom}", begin)


def cut(whom: str, other: str) -> Fault:
    """A link of a front, the leader or one that stands by, to ``log``, ``database`` or ``terminals``."""

    async def begin(stand: Stand, random: Random) -> tuple[str, Undo]:
        name = f"{(await _pick(stand, random, whom)).name} {other}"
        return _cut(stand, random, name)

    return Fault(f"cut {whom} {other}", begin)


def _cut(stand: Stand, random: Random, name: str) -> tuple[str, Undo]:
    way, forgets = random.choice(list(Way)), random.random() < 0.5
    for link in stand.links[name]:
        link.cut(way)

    async def heal() -> None:
        for link in stand.links[name]:
            link.heal(forgets=forgets)

    return f"{name}, {way.value}{', reset' if forgets else ''}", heal


async def _isolate_server(stand: Stand, random: Random) -> tuple[str, Undo]:
    server = await stand.log_leader(random.choice(("CLUSTER_IN", "CLUSTER_OUT", "KV_cluster-cluster")))
    return _cut(stand, random, f"{server.name} log")


async def _kill_server(stand: Stand, random: Random) -> tuple[str, Undo]:
    server = await stand.log_leader(random.choice(("CLUSTER_IN", "CLUSTER_OUT", "KV_cluster-cluster")))
    await asyncio.to_thread(server.kill)

    async def start() -> None:
        server.start()
        await asyncio.to_thread(server.wait)

    return server.name, start


async def _stop_server(stand: Stand, random: Random) -> tuple[str, Undo]:
    server = await stand.log_leader(random.choice(("CLUSTER_IN", "CLUSTER_OUT", "KV_cluster-cluster")))
    server.signal(signal.SIGSTOP)

    async def go_on() -> None:
        server.signal(signal.SIGCONT)

    return server.name, go_on


async def _kill_database(stand: Stand, random: Random) -> tuple[str, Undo]:
    await asyncio.to_thread(stand.postgresql.kill)

    async def start() -> None:
        await asyncio.to_thread(stand.postgresql.start)

    return "", start


async def _stop_database(stand: Stand, random: Random) -> tuple[str, Undo]:
    await asyncio.to_thread(stand.postgresql.signal, signal.SIGSTOP)

    async def go_on() -> None:
        await asyncio.to_thread(stand.postgresql.signal, signal.SIGCONT)

    return "", go_on


FAULTS = [
    *(kill(whom) for whom in ("front", "leader", "standby")),
    *(stop(whom) for whom in ("front", "leader", "standby")),
    *(cut(whom, "log") for whom in ("front", "leader", "standby")),
    *(cut(whom, "database") for whom in ("front", "leader")),
    cut("front", "terminals"),
    Fault("kill log server", _kill_server),
    Fault("stop log server", _stop_server),
    Fault("cut log server", _isolate_server),
    Fault("kill database", _kill_database),
    Fault("stop database", _stop_database),
]
