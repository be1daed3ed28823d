"""Starts what has the nodes that terminals connect to retain the same messages."""

from __future__ import annotations

import logging
from asyncio import timeout

from terrazzo.domain.registry import Registry
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.hooks import ending_retained_leftovers
from terrazzo.embedded.retained_log import RetainedLog
from terrazzo.loop_pauses import in_turns
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.lifetime import Lifetime
from terrazzo_broker.broker import Broker

_log = logging.getLogger(__name__)

_LAST_S = 1.5  # for what wills have retained


def start_retained(retained: RetainedLog, lifetime: Lifetime) -> None:
    """Starts putting changes into the log, before there is a broker: what wills have retained goes there, too."""
    sending = lifetime.tasks.spawn("retained messages to the log", retained.work, OnFailure.RESTART)
    lifetime.push_async_callback(sending.stop)
    lifetime.push_async_callback(_send_last, retained)


async def attach_retained(
    retained: RetainedLog, lifetime: Lifetime, bus: EmbeddedBus, broker: Broker, *, ends_of: Registry | None = None
) -> None:
    """Has a broker retain what all do, from the return on. ``ends_of``: it ends what is of terminals that are not in
    the registry any more; None: another node does."""
    retained.attach(broker, may_do_without=ends_of is not None)
    bus.holders.append(retained)
    bus.retained_ends = _leave if ends_of is None else retained.end_below
    following = lifetime.tasks.spawn("retained messages of all nodes", retained.follow, OnFailure.RESTART)
    lifetime.push_async_callback(following.stop)
    await retained.loaded.wait()
    if ends_of is not None:
        await in_turns(ending_retained_leftovers(broker, ends_of, retained.end_below))


def _leave(owner: str, prefix: str) -> None:
    """The leader ends it, for all."""


async def _send_last(retained: RetainedLog) -> None:
    try:
        async with timeout(_LAST_S):
            await retained.idle()
    except TimeoutError:
        _log.warning("not all of what was to be retained is in the log")
