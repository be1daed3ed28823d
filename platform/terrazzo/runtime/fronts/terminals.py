"""Makes and starts what terminals connect to at a front: login, broker, ingest into the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import msgspec

from terrazzo.config.broker import broker_settings
from terrazzo.config.sections import Config
from terrazzo.diagnostics.journal import RefusalJournal
from terrazzo.diagnostics.refusal_file import FILE_NAME, RefusalFile
from terrazzo.domain.payload import PointLimits
from terrazzo.embedded.broker_tasks import BrokerTasks
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.front_hooks import FrontHooks, roll
from terrazzo.embedded.front_log import FrontLog, NoStore
from terrazzo.embedded.peers import Peers
from terrazzo.embedded.shared_logins import SharedLogins
from terrazzo.ingest.decoders import PayloadDecoders
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import Seals
from terrazzo.ports.store import StoreUnavailable
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.holders import Holders
from terrazzo.runtime.assembly.logins import open_terminal_limiter
from terrazzo.runtime.assembly.metadata import FrontMetadata
from terrazzo.runtime.assembly.terminals import (
    follow_broker_limits,
    new_provisioning,
    open_login,
    start_refusals,
    start_trust,
)
from terrazzo.runtime.descriptors import spare_of
from terrazzo.runtime.fronts.peers import attach_peers
from terrazzo.runtime.fronts.sessions import FrontSessions
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.terminals.activation import Activations
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_broker.broker import Broker
from terrazzo_broker.storage import Storage

_log = logging.getLogger(__name__)

_DRAIN_S = 3.0  # to have the log acknowledge what was taken
_GOODBYE_S = 1.5  # to close connections, and for what their wills say


class FrontTerminals(msgspec.Struct, frozen=True):
    """The broker of a front, and what is between it and the log."""

    broker: Broker
    ingest: IngestPipeline
    bus: EmbeddedBus
    presence: PresenceRegister
    refusals: RefusalJournal


async def start_front_terminals(
    config: Config,
    lifetime: Lifetime,
    *,
    metadata: FrontMetadata,
    log: FrontLog,
    holders: Holders,
    peers: Peers,
    sessions: FrontSessions,
    clock: Callable[[], int],
) -> FrontTerminals:
    """Makes and starts all of them, except the broker's listeners.

    Raises:
        OSError: a file in the data folder can't be used.
    """
    registry, tasks = metadata.registry, lifetime.tasks
    presence, seals = PresenceRegister(), Seals()
    bus = EmbeddedBus(registry, presence, seals)
    refusals = RefusalJournal(
        registry, RefusalFile(config.data_dir / FILE_NAME), most=config.limits.refusals, clock=clock
    )
    ingest = _new_ingest(config, lifetime, bus, log)
    activations = Activations(metadata.entities.terminals, tasks)
    provisioning = new_provisioning(config, registry, metadata.registration, bus)
    limiter = open_terminal_limiter(config, lifetime, registry)
    login = open_login(config, lifetime, registry, limiter, provisioning)
    await start_refusals(lifetime, refusals, login)
    hooks = FrontHooks(
        registry=registry,
        login=login,
        ingest=ingest,
        presence=presence,
        seals=seals,
        bus=bus,
        activations=activations,
        provisioning=provisioning,
        on_ready=lambda uid: None,
        log=log,
        shared=SharedLogins(holders, sessions.takeover),
    )
    broker = _new_broker(config, lifetime, hooks, refusals, sessions.storage)
    sessions.attach(broker, lifetime)
    bus.attach(broker)
    attach_peers(peers, bus, broker)
    await start_trust(config, lifetime, broker, registry)
    follow_broker_limits(broker, metadata.own_limits)
    log.call_roll = lambda: roll(presence, holders)
    activations.start()
    lifetime.push_async_callback(activations.stop)
    telling = tasks.spawn("events of this front", log.work, OnFailure.RESTART)
    lifetime.push_async_callback(telling.stop)
    lifetime.push_async_callback(_tell_last, log)
    ingest.start()
    lifetime.push_async_callback(ingest.stop, _GOODBYE_S)
    lifetime.push_async_callback(broker.close, _GOODBYE_S)
    lifetime.push_async_callback(ingest.drain, _DRAIN_S)
    lifetime.callback(bus.pause_intake, "stop")
    return FrontTerminals(broker, ingest, bus, presence, refusals)


async def _tell_last(log: FrontLog) -> None:
    """Has the leader told of the connections that the stop has ended."""
    try:
        async with asyncio.timeout(_GOODBYE_S):
            await log.flush()
    except (StoreUnavailable, TimeoutError) as error:
        _log.warning("the leader learns from this front's end alone who is not connected any more: %r", error)


def _new_ingest(config: Config, lifetime: Lifetime, bus: EmbeddedBus, log: FrontLog) -> IngestPipeline:
    limits = config.limits
    decoders = PayloadDecoders(config.ingest.decoders, cpu_ms=config.ingest.decoder_ms)
    lifetime.push_async_callback(decoders.close)
    return IngestPipeline(
        NoStore(),
        bus,
        tasks=lifetime.tasks,
        clock_ahead_s=limits.clock_ahead_s,
        points=PointLimits(name_chars=limits.point_name_chars, points=limits.points, text_chars=limits.variable_chars),
        terminal_series=limits.terminal_series,
        decoders=decoders,
        keeper=log,
    )


def _new_broker(
    config: Config, lifetime: Lifetime, hooks: FrontHooks, refusals: RefusalJournal, storage: Storage
) -> Broker:
    """One that keeps nothing itself: what is kept for whoever is away is in the log."""
    settings, connections = broker_settings(config), config.limits.connections
    return Broker(
        replace(
            settings,
            sockets=connections + spare_of(connections),
            sys_interval_s=0.0,
        ),
        hooks,
        storage,
        may_receive=hooks.may_receive,
        on_refused=refusals.on_refusal,
        tasks=BrokerTasks(lifetime.tasks),
    )
