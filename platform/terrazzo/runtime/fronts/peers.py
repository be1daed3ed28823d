"""Starts what lets clients at several nodes hear each other."""

from __future__ import annotations

import logging

from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.peers import Peers
from terrazzo.ports.stream import Calls
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.peer_frame import peer_calls
from terrazzo.runtime.lifetime import Lifetime
from terrazzo_broker.broker import Broker

_log = logging.getLogger(__name__)

_LAST_S = 1.5  # for what wills say, and what was published last


def start_peers(peers: Peers, calls: Calls, lifetime: Lifetime, *, name: str, lease_s: float) -> None:
    """Starts it, before there is a broker: what the broker says while it closes is still told."""
    tasks = lifetime.tasks
    serving = tasks.spawn(
        "what other nodes tell", lambda: calls.serve(peer_calls(name), peers.answer), OnFailure.RESTART
    )
    lifetime.push_async_callback(serving.stop)
    telling = tasks.spawn("what other nodes are told", peers.work, OnFailure.RESTART)
    lifetime.push_async_callback(telling.stop)
    lifetime.push_async_callback(_tell_last, peers)
    looking = tasks.repeat("which other nodes are there", lease_s / 3, peers.look, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)


def attach_peers(peers: Peers, bus: EmbeddedBus, broker: Broker) -> None:
    """Has the broker's clients and those at other nodes hear each other from now on."""
    peers.attach(broker)
    bus.holders.append(peers)


async def _tell_last(peers: Peers) -> None:
    if not await peers.tell_last(_LAST_S):
        _log.warning("clients at other nodes don't hear all of what was published here last")
