"""The composition: every part of a running platform is made, wired, started and stopped here, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.access.key_file import load_key
from terrazzo.access.throttle import Throttle
from terrazzo.access.tokens import Tokens, load_token_key
from terrazzo.access.users import FirstAdmin, UserLogin, ensure_admin
from terrazzo.analysis.analysis import Analysis
from terrazzo.analysis.late import LateMarks
from terrazzo.api.http import build_apps
from terrazzo.api.live import open_session
from terrazzo.api.server import HttpServer
from terrazzo.api.services import ReadinessCheck, Services
from terrazzo.api.tcp import TcpServer
from terrazzo.audit.log import AuditLog
from terrazzo.bridge import Bridge
from terrazzo.bridge_metrics import bridge_metrics
from terrazzo.campaigns.board import Board
from terrazzo.campaigns.conductor import Campaigns
from terrazzo.campaigns.links import KEY_BYTES, KEY_FILE, LINK_GRACE_S, SignedLinks
from terrazzo.commands.dispatcher import Commands
from terrazzo.commands.journal import Journal
from terrazzo.commands.pusher import Pusher
from terrazzo.config import Config, ConfigError
from terrazzo.config_bridge import BridgeSection, bridge_settings
from terrazzo.config_broker import broker_settings, check_is_served
from terrazzo.config_messenger import EmailSection
from terrazzo.embedded_bridges import EmbeddedBridges, load_broker_id
from terrazzo.embedded_bus import EmbeddedBus
from terrazzo.errors import Unavailable
from terrazzo.files.folder import FileFolder
from terrazzo.files.library import FileLibrary, parse_types
from terrazzo.happenings.events import EventBook
from terrazzo.happenings.labels import LabelBook
from terrazzo.ingest.answers import StoredAnswers
from terrazzo.ingest.intake import Intake
from terrazzo.ingest.report import Seals
from terrazzo.listeners import bound, listen_mqtt
from terrazzo.live.happenings import HappeningSource
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.pump import Pump
from terrazzo.live.sources import CommandSource, RecordSource, TerminalSource
from terrazzo.mapping.collected import CollectedFeed
from terrazzo.mapping.ledger import Ledger
from terrazzo.mapping.outbox import Outbox
from terrazzo.mapping.shaper import Shaper
from terrazzo.messenger.assembly import build_projects
from terrazzo.messenger.channels import WebhookChannel
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.messenger import Messenger
from terrazzo.metadata.changes import ChangesLost, ChangeWatcher
from terrazzo.metadata.database import Database
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.metadata.secrets import Secrets
from terrazzo.objects.changes import FlagWatch
from terrazzo.objects.flags import FlagBook
from terrazzo.part_metrics import part_metrics
from terrazzo.platform_hooks import PlatformHooks
from terrazzo.repeating import Work, start_repeating
from terrazzo.replay.journal import Journal as ReplayJournal
from terrazzo.replay.live import Live
from terrazzo.replay.replays import Replays
from terrazzo.replay.run import Parts
from terrazzo.rules.ledger import NoticeLedger
from terrazzo.rules.teller import Teller
from terrazzo.store import TimeSeriesStore
from terrazzo.terminals.activation import Activations
from terrazzo.terminals.auto_times import AutoTimes
from terrazzo.terminals.login import Login
from terrazzo.terminals.presence import PresenceBook
from terrazzo.terminals.registry import Registry
from terrazzo.times import now_us
from terrazzo_adapters.messenger import Guard, GuardedHttp, MailServer, SmtpMailer
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_broker.broker import Broker
from terrazzo_broker.listeners.certificates import CertificateError
from terrazzo_broker.persistence import DiskStorage
from terrazzo_broker.storage import StorageError

_log = logging.getLogger(__name__)

_POLL_S = 0.5  # between looks at what other processes changed: a second at most until it is in force
_RETENTION_S = 3_600.0
_ANALYSIS_S = 1.0  # between looks for periods that are over
_DRAIN_S = 3.0  # to commit what was taken
_GOODBYE_S = 1.5  # to close connections, and to commit their wills; all in all within 10 s
_GC_AFTER = 100_000  # objects between collections: a batch's thousands of records end by themselves
_DAY_US = 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is kept in the database."""

    database: Database
    registry: Registry
    entities: Entities
    tokens: Tokens
    audit: AuditLog
    changes: ChangeWatcher
    first_admin: FirstAdmin | None


@dataclass(frozen=True, slots=True)
class Terminals:
    """The side that terminals see."""

    broker: Broker
    bus: EmbeddedBus
    intake: Intake
    shaper: Shaper
    commands: Commands
    login: Login
    bridges: list[Bridge]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the platform listens."""

    http: str
    websocket: str
    tcp: str  # empty where it is off
    mqtt: list[str]  # the plain one first
    mqtt_port: int


class Platform:
    """One platform in one process: ``start``, then ``stop``. What a start made is undone in reverse order."""

    def __init__(self, config: Config) -> None:
        check_is_served(config)
        self.config = config
        self.failed = asyncio.Event()  # a part can't go on; the process should end
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> Addresses:
        """Opens everything, and listens last.

        Raises:
            ConfigError, DatabaseUnusable, StoreUnavailable, OSError: what can't be opened, and why.
        """
        try:
            self.config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.store = await self._open_store()
            self.metadata = await self._open_metadata()
            self.files = await self._open_files()
            self.messenger = await self._open_messenger()
            self.terminals = await self._open_terminals()
            addresses = await self._listen()
            await self._start_campaigns(addresses)
        except BaseException:
            await self.stop()
            raise
        gc.collect()
        gc.freeze()  # what lives as long as the process need not be looked at again
        gc.set_threshold(_GC_AFTER, 20, 50)
        return addresses

    def before_stop(self, undo: Callable[[], Awaitable[object]]) -> None:
        """Has ``undo`` awaited at the beginning of the stop."""
        self._stack.push_async_callback(undo)

    async def stop(self) -> None:
        """Stops accepting, commits what was taken, acknowledges it, says goodbye, closes."""
        await self._stack.aclose()

    async def _open_store(self) -> TimeSeriesStore:
        section = self.config.store
        store: TimeSeriesStore
        if section.kind == "influxdb":
            from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore  # its libraries are heavy

            given = msgspec.structs.asdict(section)
            settings = InfluxSettings(**{name: given[name] for name in InfluxSettings.__dataclass_fields__})
            store = await InfluxStore.open(settings, spool=self.config.data_dir / "spool")
        else:
            store = await RocksStore.open(self.config.store_dir)
        self._stack.push_async_callback(store.close)
        if section.retention_days:
            self._run("retention", _RETENTION_S, lambda: _forget_old(store, section.retention_days))
        return store

    async def _open_metadata(self) -> Metadata:
        config, folder = self.config, self.config.data_dir
        database = await Database.open(config.database.url, data_dir=folder)
        self._stack.push_async_callback(database.close)
        changes = ChangeWatcher(database)
        await changes.start()
        secrets = Secrets.open(folder, key=config.database.secrets_key)
        registry = await load_registry(database, secrets)
        entities = Entities.open(database, registry, secrets, zone=config.zone)
        first_admin = await ensure_admin(entities, data_dir=folder, password=config.admin.password)
        await entities.projects.ensure_default()
        key = load_token_key(folder, key=config.auth.token_key)
        tokens = await Tokens.open(database, entities, key=key, token_hours=config.auth.token_hours)
        entities.follow(changes)
        tokens.follow(changes)
        self._run("changes", _POLL_S, lambda: self._poll(changes))
        audit, days = AuditLog(database, zone=config.zone), config.audit.retention_days
        if days:
            self._run("audit retention", _RETENTION_S, lambda: audit.forget_before(now_us() - days * _DAY_US))
        return Metadata(database, registry, entities, tokens, audit, changes, first_admin)

    async def _open_files(self) -> FileLibrary:
        config, metadata = self.config, self.metadata
        folder = FileFolder(config.data_dir / "files", most_bytes=config.limits.file_bytes)
        allowed = parse_types(config.files.types)
        files = FileLibrary(metadata.database, metadata.entities.uploads, folder, allowed=allowed)
        await files.remove_orphans()
        return files

    async def _open_messenger(self) -> Messenger:
        section, metadata = self.config.messenger, self.metadata
        caller = GuardedHttp(Guard(section.allow_private))
        rules = metadata.entities.rules
        messenger = Messenger(
            MessageJournal(metadata.database, zone=self.config.zone),
            build_projects(section, mailer_of=new_mailer, caller=caller),
            webhooks=WebhookChannel(caller, rules.webhook, timeout_s=section.webhook_timeout_s),
            queued_messages=section.queued_messages,
            attachment_bytes=section.attachment_bytes,
        )
        rules.vet_with(messenger.projects.find)
        await messenger.start()
        self._stack.push_async_callback(messenger.stop)
        return messenger

    async def _follow_rules(self, outbox: Outbox, ledger: Ledger) -> None:
        """Rules hear of events and labels in the transaction that writes them."""
        metadata, zone = self.metadata, self.config.zone
        notices = NoticeLedger(metadata.database)
        self.teller = Teller(notices, self.messenger, metadata.entities.objects, zone=zone)
        await self.teller.load(metadata.entities.rules)
        ledger.join(self.teller.on_effects)
        outbox.listen(self.teller.on_happened)
        self.teller.start()
        self._stack.push_async_callback(self.teller.stop)

    async def _open_terminals(self) -> Terminals:
        registry, presence, seals = self.metadata.registry, PresenceBook(), Seals()
        bus = EmbeddedBus(registry, presence, seals)
        shaper = await self._open_shaper()
        marks = LateMarks()
        self.analysis = await self._open_analysis(marks)
        ahead_s = self.config.limits.clock_ahead_s
        intake = Intake(self.store, bus, clock_ahead_s=ahead_s, shaper=shaper, marks=marks)
        self.links = self._new_links()
        commands = self._new_commands(bus)
        intake.listen_answers(commands.on_answer)
        self._feed_live(intake, presence, commands)
        self.campaigns = self._new_campaigns(intake, presence, commands)
        self._feed_happenings(shaper)
        self._follow_flags(shaper, intake, presence, bus)
        shared: dict[str, Any] = {"registry": registry, "intake": intake, "presence": presence, "seals": seals}
        local = EmbeddedBridges(load_broker_id(self.config.data_dir), bus=bus, **shared)
        bridges = self._new_bridges(local)
        activations = Activations(self.metadata.entities.terminals)
        login = self._open_login()
        hooks = PlatformHooks(
            login=login, bus=bus, bridges=local, activations=activations, on_ready=commands.on_ready, **shared
        )
        storage = DiskStorage(self.config.data_dir / "broker")
        try:
            broker = Broker(broker_settings(self.config), hooks, storage, may_receive=hooks.may_receive)
        except StorageError as error:
            raise Unavailable(str(error)) from error
        self._stack.push_async_callback(storage.close)  # the broker's close does it, if the start gets that far
        bus.attach(broker)
        local.attach(broker)
        terminals = Terminals(broker, bus, intake, shaper, commands, login, bridges)
        await self._start_terminals(terminals, activations)
        self.replays = self._open_replays(terminals)
        return terminals

    def _feed_live(self, intake: Intake, presence: PresenceBook, commands: Commands) -> None:
        """What the parts tell to whoever has subscribed, and the task that sends it."""
        registry, zone, limits = self.metadata.registry, self.config.zone, self.config.limits
        kept = LiveLimits(frames=limits.live_frames, bytes=limits.live_bytes, resume_s=limits.live_resume_s)
        self.live = LiveHub(registry, started_us=now_us(), limits=kept)
        pump = Pump(self.live)
        pump.start()
        self._stack.push_async_callback(pump.stop)
        terminals = TerminalSource(self.live, zone=zone)
        intake.listen(RecordSource(self.live, registry, zone=zone).on_records)
        presence.watch(terminals.on_presence)
        registry.watch(terminals.on_record)
        commands.listen(CommandSource(self.live, zone=zone).on_step, wanted=lambda: self.live.is_wanted)

    def _feed_happenings(self, shaper: Shaper) -> None:
        """Events and labels, and what people do about events."""
        source = HappeningSource(self.live, zone=self.config.zone)
        self.events = EventBook(self.metadata.database, zone=self.config.zone)
        shaper.outbox.listen(source.on_happened)
        self.events.listen(source.on_happened)

    def _follow_flags(self, shaper: Shaper, intake: Intake, presence: PresenceBook, bus: EmbeddedBus) -> None:
        """The flags of objects, and the task that tells what changed of them."""
        metadata, timeout_s = self.metadata, self.config.limits.boot_timeout_s
        self.flags = FlagBook(metadata.registry, bus, shaper.engine, boot_timeout_s=timeout_s)
        self.flag_watch = watch = FlagWatch(self.flags, self.live, metadata.registry, zone=self.config.zone)
        presence.watch(watch.on_presence)
        intake.listen(watch.on_records)
        shaper.outbox.listen(watch.on_happened)
        metadata.entities.objects.watch(watch.on_object)
        metadata.entities.mappings.watch(watch.on_mapping)
        watch.start()
        self._stack.push_async_callback(watch.stop)

    async def _open_shaper(self) -> Shaper:
        """What objects make of messages; what is committed reaches the database before the stop, if it answers."""
        ledger = Ledger(self.metadata.database)
        outbox = Outbox(ledger)
        await self._follow_rules(outbox, ledger)
        self._stack.push_async_callback(outbox.stop)
        shaper = await Shaper.open(self.store, self.metadata.entities, outbox)
        collected = CollectedFeed(self.metadata.database, self.metadata.entities, shaper)
        await collected.start()
        self._stack.push_async_callback(collected.stop)
        return shaper

    async def _open_analysis(self, marks: LateMarks) -> Analysis:
        """Statistics, calculations and balances, which work while the platform runs."""
        metadata, days = self.metadata, self.config.store.retention_days
        analysis = await Analysis.open(
            self.store,
            metadata.database,
            metadata.entities,
            marks=marks,
            zone=self.config.zone,
            retention_us=days * _DAY_US,
        )
        self._run("analysis", _ANALYSIS_S, analysis.work)
        return analysis

    def _new_links(self) -> SignedLinks:
        """Where terminals fetch stored files; a command may wait before the download begins."""
        config = self.config
        key = load_key(config.data_dir / KEY_FILE, size=KEY_BYTES)
        url = config.http.public_url or f"http://{config.http.host}:{config.http.port}"
        lifetime_s = config.command.expiry_s + LINK_GRACE_S
        return SignedLinks(self.files, key=key, base_url=url, lifetime_s=lifetime_s)

    async def _start_campaigns(self, addresses: Addresses) -> None:
        """Last, so that what terminals are told to fetch can be fetched."""
        if not self.config.http.public_url:
            self.links.base_url = addresses.http
        await self.campaigns.start()
        self._stack.push_async_callback(self.campaigns.stop)

    def _new_campaigns(self, intake: Intake, presence: PresenceBook, commands: Commands) -> Campaigns:
        metadata = self.metadata
        campaigns = Campaigns(
            metadata.entities.campaigns, Board(metadata.database), commands=commands, store=self.store
        )
        intake.listen(campaigns.on_records)
        presence.watch(campaigns.on_presence)
        commands.listen(campaigns.on_step, wanted=lambda: campaigns.is_wanted)
        self.links.listen(campaigns.on_download)
        return campaigns

    def _open_replays(self, parts: Terminals) -> Replays:
        """Replays of objects; those that an earlier run left begin anew."""
        database = self.metadata.database
        live = Live(parts.shaper, parts.intake, parts.bus)
        journal = ReplayJournal(database, zone=self.config.zone)
        replays = Replays(journal, Parts(self.store, database, live, self.analysis, now_us))
        replays.start()
        self._stack.push_async_callback(replays.stop)
        return replays

    def _new_commands(self, bus: EmbeddedBus) -> Commands:
        return Commands(
            Journal(self.metadata.database),
            registry=self.metadata.registry,
            bus=bus,
            configurations=self.metadata.entities.configurations,
            links=self.links,
            answers=StoredAnswers(self.store),
            expiry_s=self.config.command.expiry_s,
        )

    def _open_login(self) -> Login:
        limits = self.config.limits
        auto_times = AutoTimes(self.config.data_dir / "auto-logins", now_s=time.time())
        self._stack.callback(auto_times.close)
        failures = Throttle(limits.login_failures, limits.login_window_s)
        return Login(self.metadata.registry, failures=failures, auto_times=auto_times)

    def _new_bridges(self, local: EmbeddedBridges) -> list[Bridge]:
        folder = self.config.data_dir / "bridges"
        return [
            new_bridge(section, local, folder=folder, key=f"bridge[{number}]")
            for number, section in enumerate(self.config.bridge, 1)
        ]

    async def _start_terminals(self, parts: Terminals, activations: Activations) -> None:
        """Undone from the end: bridges hang up, reading stops, what was read is stored and acknowledged, connections
        close, and the wills that this sends are stored and spooled too."""
        intake, stack = parts.intake, self._stack
        activations.start()
        stack.push_async_callback(activations.stop)
        await parts.commands.start()
        stack.push_async_callback(parts.commands.stop)
        for bridge in parts.bridges:
            stack.push_async_callback(bridge.close)
            await bridge.start()
        intake.start()
        stack.push_async_callback(intake.stop, _GOODBYE_S)
        stack.push_async_callback(parts.broker.close, _GOODBYE_S)
        for bridge in parts.bridges:
            stack.push_async_callback(bridge.drain, _GOODBYE_S)
        stack.push_async_callback(intake.drain, _DRAIN_S)
        stack.callback(parts.bus.pause_intake, "stop")
        for bridge in parts.bridges:
            stack.push_async_callback(bridge.hang_up)

    async def _listen(self) -> Addresses:
        config = self.config
        services = self._services()
        apps = build_apps(services)
        limits: dict[str, Any] = {"limits": config.limits}
        http = HttpServer(apps.http, apps.doorkeeper, port_name="http", **limits)
        self._websocket = HttpServer(apps.websocket, apps.doorkeeper, port_name="websocket", **limits)
        self._tcp = TcpServer(apps.gateway, apps.doorkeeper, open_session=partial(open_session, services), **limits)
        self._stack.push_async_callback(http.stop)
        self._stack.push_async_callback(self._websocket.stop)
        self._stack.push_async_callback(self._tcp.stop)
        mqtt_port, mqtt = await listen_mqtt(self.terminals.broker, config.mqtt)
        websocket = config.websocket
        websocket_port = await bound("websocket.port", self._websocket.start, websocket.host, websocket.port)
        tcp = config.tcp
        tcp_port = await bound("tcp.port", self._tcp.start, tcp.host, tcp.port) if tcp.enabled else 0
        http_port = await bound("http.port", http.start, config.http.host, config.http.port)
        return Addresses(
            http=f"http://{config.http.host}:{http_port}",
            websocket=f"ws://{websocket.host}:{websocket_port}",
            tcp=f"tcp://{tcp.host}:{tcp_port}" if tcp.enabled else "",
            mqtt=mqtt,
            mqtt_port=mqtt_port,
        )

    def reload_certificates(self) -> None:
        """Reads the TLS files again, for connections still to come; files that can't be used change nothing."""
        try:
            self.terminals.broker.reload_certificates()
        except CertificateError as error:
            _log.error("mqtt.%s; the old certificate stays in use", error)
        else:
            _log.info("TLS files read again")

    def _services(self) -> Services:
        metadata, limits = self.metadata, self.config.limits
        return Services(
            entities=metadata.entities,
            registry=metadata.registry,
            store=self.store,
            bus=self.terminals.bus,
            broker=self.terminals.bus,
            commands=self.terminals.commands,
            campaigns=self.campaigns.board,
            firmware=self.links,
            pusher=Pusher(self.terminals.commands, metadata.entities, metadata.registry),
            object_flags=self.flags,
            files=self.files,
            events=self.events,
            messenger=self.messenger,
            labels=LabelBook(metadata.database, self.terminals.shaper, zone=self.config.zone),
            login=UserLogin(
                metadata.entities,
                metadata.tokens,
                metadata.audit,
                failures=limits.login_failures,
                window_s=limits.login_window_s,
            ),
            tokens=metadata.tokens,
            live=self.live,
            analysis=self.analysis,
            replays=self.replays,
            audit=metadata.audit,
            limits=limits,
            zone=self.config.zone,
            prefixes=msgspec.structs.asdict(self.config.api),
            readiness=self._readiness(),
            collectors=[
                *part_metrics(
                    broker=self.terminals.broker.stats,
                    intake=self.terminals.intake.stats,
                    commands=self.terminals.commands.stats,
                    login=self.terminals.login.stats,
                    engine=self.terminals.shaper.engine.stats,
                    outbox=self.terminals.shaper.outbox.stats,
                    campaigns=self.campaigns.stats,
                    messenger=self.messenger.stats,
                    rules=self.teller.stats,
                    analysis=self.analysis.stats,
                    live=self.live.stats,
                    flags=self.flag_watch.stats,
                ),
                *bridge_metrics(self.terminals.bridges),
            ],
        )

    def _readiness(self) -> Mapping[str, ReadinessCheck]:
        tcp = {"tcp": self._check_tcp} if self.config.tcp.enabled else {}
        return {
            **tcp,
            "mqtt": self._check_mqtt,
            "websocket": self._check_websocket,
            "ingest": self._check_ingest,
            "database": self.metadata.database.check,
            "store": self.store.check,
        }

    async def _check_mqtt(self) -> None:
        if not self.terminals.broker.is_listening:
            raise Unavailable("the broker does not listen")

    async def _check_websocket(self) -> None:
        if not self._websocket.is_listening:
            raise Unavailable("the WebSocket port does not listen")

    async def _check_tcp(self) -> None:
        if not self._tcp.is_listening:
            raise Unavailable("the TCP port does not listen")

    async def _check_ingest(self) -> None:
        if not self.terminals.intake.is_healthy:
            raise Unavailable("the store does not take what terminals report")

    def _run(self, name: str, interval_s: float, work: Work) -> None:
        """Repeats ``work`` until the stop; the platform stops when it fails."""
        self._stack.push_async_callback(start_repeating(name, interval_s, work, on_failure=self.failed.set))

    async def _poll(self, changes: ChangeWatcher) -> None:
        try:
            await changes.poll()
        except ChangesLost as error:
            _log.critical("%s", error)
            self.failed.set()


def new_bridge(section: BridgeSection, local: EmbeddedBridges, *, folder: Path, key: str) -> Bridge:
    """A bridge by its section of the configuration; ``folder`` is of all bridges.

    Raises:
        ConfigError: a TLS file can't be used; names the key, which starts with ``key``.
    """
    from terrazzo_adapters.bridge import BridgeSettings, MqttBridge, TopicRule  # paho takes a while to load

    given = bridge_settings(section, local.id)
    for way in ("outgoing", "incoming"):
        given[way] = tuple(TopicRule(**topic) for topic in given[way])
    try:
        return MqttBridge(BridgeSettings(**given), local, folder=folder / section.name)
    except ValueError as error:
        raise ConfigError(f"{key}.{error}") from None


def new_mailer(section: EmailSection) -> SmtpMailer:
    """A mail server by its section of the configuration."""
    given = {name: getattr(section, name) for name in MailServer.__dataclass_fields__}
    return SmtpMailer(MailServer(**given))


async def _forget_old(store: TimeSeriesStore, days: int) -> None:
    await store.drop_before(now_us() - days * _DAY_US)
