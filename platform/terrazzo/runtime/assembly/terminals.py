"""Makes and starts what terminals connect to: their login, the broker, bridges to other brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from terrazzo.config.broker import broker_settings
from terrazzo.config.sections import Config
from terrazzo.diagnostics.journal import RefusalJournal
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.embedded.bridges import EmbeddedBridges, load_broker_id
from terrazzo.embedded.broker_tasks import BrokerTasks
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.client_trust import ClientTrust
from terrazzo.embedded.hooks import PlatformHooks, end_leftovers
from terrazzo.embedded.shared_logins import SharedLogins
from terrazzo.errors import Unavailable
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.metadata.company_limits import CompanyLimits
from terrazzo.metadata.registration import TerminalRegistration, new_pin
from terrazzo.ports.bridge import Bridge
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.descriptors import spare_of
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.terminals.activation import Activations
from terrazzo.terminals.auto_times import AutoTimes
from terrazzo.terminals.login import TerminalLogin
from terrazzo.terminals.provisioning import Provisioning
from terrazzo.terminals.remote_access import RemoteAccess
from terrazzo.terminals.series_use import LOOK_S as SERIES_LOOK_S
from terrazzo.terminals.series_use import SeriesUse
from terrazzo.terminals.unknown import UnknownTerminals
from terrazzo_broker.broker import Broker
from terrazzo_broker.persistence import DiskStorage
from terrazzo_broker.settings import OwnerLimits
from terrazzo_broker.storage import Storage, StorageError

_DRAIN_S = 3.0  # to commit what was taken
_GOODBYE_S = 1.5  # to close connections, and to commit their wills; all in all within 10 s


class SharedSessions(Protocol):
    """What clients of this node's broker share with those of other nodes."""

    logins: SharedLogins

    def storage(self, folder: DiskStorage) -> Storage:
        """That of the broker, which has a folder of its own as well."""


class Terminals(msgspec.Struct, frozen=True):
    """The broker and what decides on logins."""

    broker: Broker
    login: TerminalLogin
    provisioning: Provisioning
    unknown: UnknownTerminals
    activations: Activations
    bridges: Sequence[Bridge]
    remote_access: RemoteAccess


async def start_terminals(
    config: Config,
    lifetime: Lifetime,
    *,
    metadata: Metadata,
    limiter: LoginLimiter,
    messaging: TerminalMessaging,
    bridges_of: Callable[[EmbeddedBridges], Sequence[Bridge]],
    shared: SharedSessions | None = None,
) -> Terminals:
    """Makes and starts the broker and all around it, except the broker's listeners.

    ``shared``: of several nodes that terminals connect to.

    Raises:
        ConfigError, Unavailable: a bridge can't be made; the broker's folder can't be used.
    """
    parts: dict[str, Any] = {
        "registry": metadata.registry,
        "ingest": messaging.ingest,
        "presence": messaging.presence,
        "seals": messaging.seals,
        "bus": messaging.bus,
    }
    local = EmbeddedBridges(load_broker_id(config.data_dir), **parts)
    bridges = bridges_of(local)
    activations = Activations(metadata.entities.terminals, lifetime.tasks)
    provisioning = new_provisioning(config, metadata.registry, metadata.registration, messaging.bus)
    login = open_login(config, lifetime, metadata.registry, limiter, provisioning)
    await start_refusals(lifetime, messaging.refusals, login)
    unknown = UnknownTerminals(metadata.registry)
    login.unknown.listen(unknown.note)
    login.refused.listen(unknown.note_refused)
    parts |= {"hears_sys": _hearers_of_sys(config), "provisioning": provisioning}
    parts["shared"] = None if shared is None else shared.logins
    hooks = PlatformHooks(login=login, bridges=local, activations=activations, on_ready=messaging.on_ready, **parts)
    broker = _open_broker(config, lifetime, hooks, messaging.refusals, shared)
    messaging.bus.attach(broker)
    local.attach(broker)
    end_leftovers(broker, metadata.registry)
    await start_trust(config, lifetime, broker, metadata.registry)
    access = RemoteAccess(metadata.registry, login, activations=activations, on_refused=messaging.refusals.on_refusal)
    terminals = Terminals(broker, login, provisioning, unknown, activations, bridges, access)
    _follow_companies(bridges, metadata.registry)
    follow_broker_limits(broker, metadata.quotas.own)
    _follow_series(messaging.series_use, broker, local, lifetime)
    await _start(terminals, messaging, metadata, lifetime)
    return terminals


async def start_trust(config: Config, lifetime: Lifetime, broker: Broker, registry: Registry) -> None:
    """Trusts the authorities of companies in TLS, where that is wanted."""
    if not config.mqtt.has_tls or not config.mqtt.tls_company_authorities:
        return
    own = Path(config.mqtt.tls_client_ca) if config.mqtt.tls_client_ca else None
    trust = ClientTrust(broker, registry, lifetime.tasks, client_ca=own)
    lifetime.push_async_callback(trust.stop)
    await trust.start()


def _follow_companies(bridges: Sequence[Bridge], registry: Registry) -> None:
    """Has a bridge connected while its company is open."""

    def on_company(company_id: int, is_available: bool) -> None:
        for bridge in bridges:
            if bridge.company_id == company_id:
                bridge.set_open(is_available)

    for bridge in bridges:
        bridge.set_open(registry.is_company_available(bridge.company_id))
    registry.company_changes.listen(on_company)


def _follow_series(use: SeriesUse, broker: Broker, bridges: EmbeddedBridges, lifetime: Lifetime) -> None:
    """Reads nothing from terminals of companies whose time series take as much of the disk as they may."""

    def on_full(companies: frozenset[int]) -> None:
        owners = {str(company_id) for company_id in companies}
        broker.hold_owners(owners)
        bridges.held.hold_owners(owners)

    use.changes.listen(on_full)
    use.look()
    lifetime.push_async_callback(use.save)
    counting = lifetime.tasks.repeat("sizes of time series", SERIES_LOOK_S, use.work, OnFailure.RESTART)
    lifetime.push_async_callback(counting.stop)
    watching = lifetime.tasks.repeat("disk of companies", SERIES_LOOK_S, use.watch, OnFailure.RESTART)
    lifetime.push_async_callback(watching.stop)


def follow_broker_limits(broker: Broker, own: CompanyLimits) -> None:
    """Has companies' terminals publish no faster, and keep no more in the broker, than their companies' records say."""
    configured = broker.settings.owner_limits

    def on_limits(company_id: int) -> None:
        most = {
            name: own.limit(company_id, name, limit, off=0 if name == "publish_per_second" else None).most
            for name, limit in configured._asdict().items()
        }
        limits = OwnerLimits(**most)
        broker.limit_owner(str(company_id), None if limits == configured else limits)

    for company_id in own.companies():
        on_limits(company_id)
    own.changes.listen(on_limits)


def _hearers_of_sys(config: Config) -> Callable[[int], bool]:
    """By the id of a company whether its terminals may have the broker's figures, which are about all companies."""
    allowed = {"off": (), "platform": (SYSTEM.company_id,), "granted": None}[config.mqtt.sys_topics]
    return lambda company_id: allowed is None or company_id in allowed


def new_provisioning(
    config: Config, registry: Registry, registration: TerminalRegistration, bus: EmbeddedBus
) -> Provisioning:
    """What gives unregistered terminals with a claim key their credentials."""
    provisioning = Provisioning(
        registry,
        registration,
        new_pin=new_pin,
        is_plain_allowed=config.mqtt.provision_plain,
        promise_s=config.limits.provision_s,
    )
    provisioning.attach(bus)
    return provisioning


def open_login(
    config: Config, lifetime: Lifetime, registry: Registry, limiter: LoginLimiter, provisioning: Provisioning
) -> TerminalLogin:
    """What decides on logins; raises ``OSError`` where its file can't be written."""
    auto_times = AutoTimes(config.data_dir / "auto-logins", now_ms=time.time_ns() // 1_000_000)
    lifetime.callback(auto_times.close)
    return TerminalLogin(registry, limiter=limiter, auto_times=auto_times, provisioning=provisioning)


async def start_refusals(lifetime: Lifetime, refusals: RefusalJournal, login: TerminalLogin) -> None:
    """Keeps why terminals were refused from now on."""
    await refusals.start(lifetime.tasks)
    lifetime.push_async_callback(refusals.stop)
    login.refused.listen(refusals.on_login_refused)


def _open_broker(
    config: Config,
    lifetime: Lifetime,
    hooks: PlatformHooks,
    refusals: RefusalJournal,
    shared: SharedSessions | None,
) -> Broker:
    folder = DiskStorage(config.data_dir / "broker")
    storage = folder if shared is None else shared.storage(folder)
    connections = config.limits.connections
    try:
        tasks = BrokerTasks(lifetime.tasks)
        broker = Broker(
            replace(broker_settings(config), sockets=connections + spare_of(connections)),
            hooks,
            storage,
            may_receive=hooks.may_receive,
            owners=hooks.former_owners(),
            on_refused=refusals.on_refusal,
            tasks=tasks,
        )
    except StorageError as error:
        raise Unavailable(str(error)) from error
    lifetime.push_async_callback(storage.close)  # the broker's close does it, if the start gets that far
    return broker


async def _start(terminals: Terminals, messaging: TerminalMessaging, metadata: Metadata, lifetime: Lifetime) -> None:
    """Starts the parts. The stop undoes this from the end: bridges disconnect, reading stops, what was read is stored
    and acknowledged, connections close, and the wills that this publishes are stored and bridged too."""
    terminals.activations.start()
    lifetime.push_async_callback(terminals.activations.stop)
    await messaging.commands.start()
    lifetime.push_async_callback(messaging.commands.stop)
    await messaging.configurations.start(metadata.entities.configurations.every())
    lifetime.push_async_callback(messaging.configurations.stop)
    for bridge in terminals.bridges:
        lifetime.push_async_callback(bridge.close)
        await bridge.start()
    messaging.ingest.start()
    lifetime.push_async_callback(messaging.ingest.stop, _GOODBYE_S)
    lifetime.push_async_callback(terminals.broker.close, _GOODBYE_S)
    for bridge in terminals.bridges:
        lifetime.push_async_callback(bridge.drain, _GOODBYE_S)
    lifetime.push_async_callback(messaging.ingest.drain, _DRAIN_S)
    messaging.presence_log.start(lifetime.tasks)
    lifetime.push_async_callback(messaging.presence_log.stop)
    lifetime.callback(messaging.bus.pause_intake, "stop")
    for bridge in terminals.bridges:
        lifetime.push_async_callback(bridge.hang_up)
