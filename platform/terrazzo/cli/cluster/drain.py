"""``terrazzo cluster drain``: takes a node or front out of service without a terminal being refused for long."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from terrazzo.cli.cluster.reading import ClusterStatus, NodeStatus, clustered, open_log, read_status
from terrazzo.cli.options import ConfigOption, DataOption, JsonOption
from terrazzo.cli.shown import print_json, say
from terrazzo.config.sections import Config, ConfigError

if TYPE_CHECKING:
    from terrazzo.ports.stream import Calls

_ASK_S = 5.0
_AGAIN_S = 0.5
_MOST_LAG = 1_000  # frames that a node may be behind: it reads them before it serves
_MOST_AGE_S = 3.0  # of the record of a node that is to lead


class Drained(msgspec.Struct, frozen=True):
    """What has become of a node or front. ``clients``: terminals that are still connected to a front."""

    node: str
    state: str  # empty | drains | ended | stands by
    leader: str = ""
    clients: int = 0
    took_s: float = 0.0


def drain(
    node: Annotated[str, typer.Argument(help="The cluster.node of a front, or of a node.")],
    timeout: Annotated[float, typer.Option(help="Seconds to wait until it is done.", min=1, max=86_400)] = 120.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Have a front's terminals go to others, or the leader end and another node lead; exit with 1 if it isn't done."""
    done = asyncio.run(_drain(clustered(config, data), node, timeout))
    if as_json:
        print_json(msgspec.to_builtins(done))
    else:
        say(_said(done))
    if done.state == "drains":
        raise typer.Exit(1)


def _said(done: Drained) -> str:
    if done.state == "empty":
        return f"The front {done.node} is empty after {done.took_s:.1f} s: it can be ended."
    if done.state == "drains":
        return f"{done.node} is not done after {done.took_s:.0f} s; {done.clients:,} terminals are still connected."
    if done.state == "stands by":
        return f"The node {done.node} stands by: it can be ended."
    return f"The node {done.node} has ended, and {done.leader} leads after {done.took_s:.1f} s."


async def _drain(config: Config, name: str, timeout_s: float) -> Drained:
    found = await read_status(config)
    states = {front.node: front.state for front in found.fronts}
    states |= {each.node: each.state for each in found.nodes}  # as for forget, nodes first
    if name not in states:
        raise ConfigError(f"node: no node {name!r}; there are {', '.join(states) or 'none'}")
    if states[name] in ("away", "ended"):
        raise ConfigError(f"node: {name!r} {'has ended' if states[name] == 'ended' else 'is away'}: it serves nobody")
    if states[name] == "follows":
        return Drained(name, "stands by", found.leader)
    began_s = time.monotonic()
    work = _drain_front if states[name] != "leads" else _hand_over
    stream = await open_log(config)
    try:
        return await work(_Asked(config, stream.calls, found, name, began_s, began_s + timeout_s))
    finally:
        await stream.close()


class _Asked(msgspec.Struct, frozen=True):
    """What is asked of whom. Times are of the clock of ``time.monotonic``."""

    config: Config
    calls: Calls
    found: ClusterStatus
    name: str
    began_s: float
    ends_s: float

    def done(self, state: str, *, leader: str = "", clients: int = 0) -> Drained:
        return Drained(self.name, state, leader, clients, round(time.monotonic() - self.began_s, 1))


async def _drain_front(asked: _Asked) -> Drained:
    """Asks again and again, until nobody is connected any more."""
    from terrazzo.ports.stream import LogUnavailable
    from terrazzo.replication.front_events import DrainRequest, FrontAnswer

    if not any(each.state == "serves" and each.node != asked.name for each in asked.found.fronts):
        raise ConfigError(f"node: no other front serves: the terminals of {asked.name!r} would be refused")
    body, clients = msgspec.msgpack.encode(DrainRequest()), 0
    while time.monotonic() < asked.ends_s:
        try:
            answer = msgspec.msgpack.decode(await asked.calls.ask(asked.name, body, timeout_s=_ASK_S), type=FrontAnswer)
        except LogUnavailable:  # asked again
            await asyncio.sleep(_AGAIN_S)
            continue
        if answer.is_done:
            return asked.done("empty")
        clients = answer.clients
        await asyncio.sleep(_AGAIN_S)
    return asked.done("drains", clients=clients)


async def _hand_over(asked: _Asked) -> Drained:
    """Asks the leader to end, and waits until the node that stands by nearest leads."""
    from terrazzo.ports.stream import LogUnavailable
    from terrazzo.replication.front_events import HandOver, HandOverAnswer, leader_calls

    successor = _successor(asked.found)
    body, target = msgspec.msgpack.encode(HandOver(successor.node)), leader_calls(asked.name)
    try:
        answer = msgspec.msgpack.decode(await asked.calls.ask(target, body, timeout_s=_ASK_S), type=HandOverAnswer)
    except LogUnavailable as error:
        raise ConfigError(f"node: {asked.name!r} doesn't answer: {error}") from None
    if not answer.is_begun:
        raise ConfigError(f"node: {asked.name!r} is of another version, and doesn't hand over: end it")
    while time.monotonic() < asked.ends_s:
        found = await read_status(asked.config)
        if found.epoch > asked.found.epoch and any(each.state == "leads" for each in found.nodes):
            return asked.done("ended", leader=found.leader)
        await asyncio.sleep(_AGAIN_S)
    return asked.done("drains")


def _successor(found: ClusterStatus) -> NodeStatus:
    """The node that has most of what the leader has.

    Raises:
        ConfigError: none has nearly all, or none is there.
    """
    standing_by = [each for each in found.nodes if each.state == "follows" and each.seen_s <= _MOST_AGE_S]
    nearest = min(standing_by, key=lambda each: each.lag, default=None)
    if nearest is None:
        raise ConfigError("node: no node stands by that could lead: nothing was done")
    if nearest.lag > _MOST_LAG:
        raise ConfigError(f"node: {nearest.node!r} is {nearest.lag:,} frames behind: nothing was done, try again later")
    return nearest
