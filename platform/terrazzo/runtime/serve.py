"""The composition: which parts a running platform has, in the order in which they start, and on which adapters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from prometheus_client.registry import Collector

from terrazzo.backup.status import BackupStatus
from terrazzo.campaigns.runner import CampaignRunner
from terrazzo.config.backup import S3, BackupSection
from terrazzo.config.bridge import BridgeSection, bridge_settings
from terrazzo.config.broker import check_is_served
from terrazzo.config.messenger import EmailSection, MessengerSection
from terrazzo.config.sections import Config, ConfigError
from terrazzo.config.sso import SsoSection
from terrazzo.config.tracing import TracingSection
from terrazzo.crypto.key_file import remove_drafts
from terrazzo.database.fence import Fence
from terrazzo.embedded.bridges import EmbeddedBridges
from terrazzo.files.folder import FileFolder
from terrazzo.files.library import FileLibrary, parse_types
from terrazzo.ingest.limits import IngestLimits
from terrazzo.memory_shares import MIB, MemoryShares
from terrazzo.messenger.channels import WebhookChannel
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.messenger import Messenger
from terrazzo.messenger.project_factory import build_projects
from terrazzo.ports.backup_target import BackupTarget
from terrazzo.ports.bridge import Bridge
from terrazzo.ports.providers import HttpCaller, Mailer
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure, Tasks
from terrazzo.runtime.assembly.backups import backup_answerer, start_backups
from terrazzo.runtime.assembly.certificates import open_tls
from terrazzo.runtime.assembly.control import start_control
from terrazzo.runtime.assembly.former_data import start_former_data, start_series_retention
from terrazzo.runtime.assembly.gateway import GatewayParts, GatewayServers, ListenAddresses
from terrazzo.runtime.assembly.jobs import new_campaigns, open_export_process, start_replays
from terrazzo.runtime.assembly.logins import Logins, open_logins
from terrazzo.runtime.assembly.memory import share_memory
from terrazzo.runtime.assembly.metadata import open_metadata
from terrazzo.runtime.assembly.objects import open_objects
from terrazzo.runtime.assembly.rules import new_rules
from terrazzo.runtime.assembly.terminal_messaging import new_messaging
from terrazzo.runtime.assembly.terminals import Terminals, start_terminals
from terrazzo.runtime.assembly.views import start_views
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.certificate_watch import LOOK_S
from terrazzo.runtime.descriptors import prepare_descriptors
from terrazzo.runtime.extras import CLUSTER, S3_TARGET, TRACING
from terrazzo.runtime.fronts.leader import Fronts, attach_fronts, begin_fronts, start_fronts
from terrazzo.runtime.lifetime import Lifetime, NewSupervisor, new_supervisor
from terrazzo.runtime.loop_watch import LoopWatch
from terrazzo.runtime.memory_ceiling import memory_ceiling
from terrazzo.runtime.replica.leader import LeadersReads
from terrazzo.runtime.stream import Stream
from terrazzo.runtime.support_answers import start_recent_log, support_answerer
from terrazzo.runtime.timed_store import TimedStore
from terrazzo.runtime.tracing import SendingTracer, open_tracing
from terrazzo.times import DAY_US, now_us
from terrazzo_adapters.backup import FolderTarget
from terrazzo_adapters.messenger import Guard, GuardedHttp
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_broker.access.folder_modes import close_to_others

if TYPE_CHECKING:
    from terrazzo_adapters.bridge import BridgeSettings

__all__ = ["ListenAddresses", "Platform", "Ports", "new_bridge", "new_caller", "new_mailer"]

_RETENTION_S = 3_600.0
_RETAINED_PART = 4  # of the same, that retained messages may have beside it
_CLIENTS_PART = 16  # of what fronts' reports may have, the part that records of client ids may have beside it
_CLIENTS_LEAST = 16 << 20  # bytes: of 100,000 client ids; one has about 150


class Platform:
    """One platform in one process: ``start``, then ``stop``. What a start made is undone in reverse order."""

    def __init__(self, config: Config, ports: Ports | None = None) -> None:
        check_is_served(config)
        self.config = config  # from the start on with as many connections as there are descriptors for
        self._ports = ports or Ports()
        self._lifetime = Lifetime(self._ports.new_supervisor)
        self.tasks = self._lifetime.tasks
        self.watch = LoopWatch()
        self.failed = self._lifetime.failed

    async def start(self) -> ListenAddresses:
        """Opens everything, and listens last.

        Raises:
            ConfigError, DatabaseUnusable, StoreUnavailable, OSError: what can't be opened, and why.
        """
        self._recent_log = start_recent_log(self._lifetime)
        try:
            plan = prepare_descriptors(self.config.limits)
            self.config = self.config.with_connections(plan.connections, plan.of_apis)
            self.config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            close_to_others(self.config.data_dir)
            remove_drafts(self.config.data_dir)
            return await self._start_parts()
        except BaseException:  # what was started must not stay behind, whatever ended the start
            await self.stop()
            raise

    def before_stop(self, undo: Callable[[], Awaitable[object]]) -> None:
        """Has ``undo`` awaited at the beginning of the stop."""
        self._lifetime.push_async_callback(undo)

    async def stop(self) -> None:
        """Stops accepting, commits and acknowledges what was taken, closes connections, closes the parts."""
        await self._lifetime.aclose()

    def reload_certificates(self) -> None:
        """Reads the TLS files again, for connections still to come; files that can't be used change nothing."""
        self.parts.tls.watch.reload()

    async def _start_parts(self) -> ListenAddresses:
        """Makes and starts the parts in order; listeners of a part are added before it runs."""
        config, lifetime, clock = self.config, self._lifetime, self._ports.clock
        tracing = open_tracing(config.tracing, lifetime, new_tracer)
        self.store = store = await self._open_store()
        self.metadata = metadata = await open_metadata(config, lifetime, clock=clock, fence=self._ports.fence)
        former = await start_former_data(config, lifetime, store=store, metadata=metadata, clock=clock)
        start_series_retention(config, lifetime, store=store, metadata=metadata, clock=clock)
        files = await self._open_files()
        messenger = await self._open_messenger()
        objects = await open_objects(config, lifetime, store=store, metadata=metadata, messenger=messenger, clock=clock)
        self.messaging = messaging = new_messaging(
            config,
            lifetime,
            store=store,
            metadata=metadata,
            files=files,
            objects=objects,
            clock=clock,
            intake_limits=self._ports.intake_limits,
            tracing=tracing,
        )
        mapper = objects.mapper
        views = start_views(config, lifetime, metadata=metadata, mapper=mapper, messaging=messaging, clock=clock)
        campaigns = new_campaigns(lifetime, store=store, metadata=metadata, messaging=messaging, clock=clock)
        await campaigns.take_up()
        rules = new_rules(config, lifetime, metadata=metadata, objects=objects, messaging=messaging, clock=clock)
        caller = self._ports.new_caller(config.sso)
        logins = open_logins(config, lifetime, metadata=metadata, messenger=messenger, caller=caller, clock=clock)
        self.terminals = await self._start_terminals(logins)
        self.watch.who += [messaging.ingest.at_work, self.terminals.broker.at_work]
        replays = start_replays(
            config, lifetime, store=store, metadata=metadata, objects=objects, messaging=messaging, clock=clock
        )
        self.parts = parts = GatewayParts(
            store=store,
            metadata=metadata,
            logins=logins,
            files=files,
            messenger=messenger,
            objects=objects,
            messaging=messaging,
            views=views,
            campaigns=campaigns,
            rules=rules,
            terminals=self.terminals,
            replays=replays,
            tasks=self.tasks,
            former=former,
            watch=self.watch,
            backups=await self._start_backups(),
            memory=MemoryShares(memory_ceiling(config.limits.memory_mib)),
            export_process=open_export_process(lifetime),
            tls=open_tls(config, self.terminals.broker),
            tracing=tracing.requests,
            collectors=(*self._ports.collectors, *tracing.collectors),
            leading=None if self._ports.reads is None else self._ports.reads.leading(metadata.database),
        )
        return await self._listen(GatewayServers(config, parts, clock=clock), campaigns)

    async def _start_terminals(self, logins: Logins) -> Terminals:
        fronts = self._ports.fronts
        if fronts is not None:
            begin_fronts(fronts, self._lifetime)
        terminals = await start_terminals(
            self.config,
            self._lifetime,
            metadata=self.metadata,
            limiter=logins.of_terminals,
            messaging=self.messaging,
            bridges_of=self._new_bridges,
            shared=None if fronts is None else fronts.shared,
        )
        if fronts is not None:
            bus, registry = self.messaging.bus, self.metadata.registry
            await attach_fronts(fronts, self._lifetime, bus=bus, broker=terminals.broker, registry=registry)
        return terminals

    async def _listen(self, gateway: GatewayServers, campaigns: CampaignRunner) -> ListenAddresses:
        self.gateway = gateway
        asked = {
            "backup": backup_answerer(self._backups, self.config),
            "support": support_answerer(self._recent_log, self.tasks, lambda: self.gateway.services.collectors),
        }
        await start_control(self.config, self._lifetime, self.gateway.services, asked)
        share_memory(
            self.parts.memory,
            self._lifetime,
            ingest=self.messaging.ingest,
            live=self.parts.views.live,
            broker=self.terminals.broker,
            gateway=self.gateway,
            objects=self.parts.objects,
            bridges=self.terminals.bridges,
            store=self.store,
            metadata=self.metadata,
            commands=self.messaging.commands,
        )
        addresses = await self.gateway.listen(self._lifetime)
        if not self.config.http.public_url:
            self.messaging.links.base_url = addresses.http
        self._watch_certificates()
        self.watch.start()  # before that nobody is waiting
        self._lifetime.callback(self.watch.stop)
        await campaigns.start()  # last, so that what terminals are told to fetch can be fetched
        self._lifetime.push_async_callback(campaigns.stop)
        await self.parts.rules.start(self._lifetime)  # from now on terminals can be there
        if self._ports.fronts is not None:
            start_fronts(
                self._ports.fronts,
                self._lifetime,
                store=self.store,
                messaging=self.messaging,
                registry=self.metadata.registry,
            )
        if self._ports.reads is not None:
            self._ports.reads.start(self._lifetime, self.gateway.for_replicas)
        return addresses

    def _watch_certificates(self) -> None:
        watch = self.parts.tls.watch
        if watch:
            watch.begin()
            watching = self.tasks.repeat("certificates", LOOK_S, watch.look, OnFailure.RESTART)
            self._lifetime.push_async_callback(watching.stop)

    async def _open_store(self) -> TimeSeriesStore:
        store, clock = await self._ports.open_store(self.config, self.tasks), self._ports.clock
        self._lifetime.push_async_callback(store.close)
        days = self.config.store.retention_days
        if days:
            dropping = self.tasks.repeat(
                "retention",
                _RETENTION_S,
                lambda: store.drop_before(clock() - days * DAY_US),
                OnFailure.RESTART,
            )
            self._lifetime.push_async_callback(dropping.stop)
        return store

    async def _open_files(self) -> FileLibrary:
        config, metadata = self.config, self.metadata
        folder = FileFolder(config.data_dir / "files", most_bytes=config.limits.file_bytes)
        allowed = parse_types(config.files.types)
        uploads, quotas = metadata.entities.uploads, metadata.quotas
        files = FileLibrary(metadata.database, uploads, folder, allowed=allowed, quotas=quotas)
        await files.remove_orphans()
        return files

    async def _open_messenger(self) -> Messenger:
        section, metadata, ports = self.config.messenger, self.metadata, self._ports
        caller = ports.new_caller(section)
        rules = metadata.entities.rules
        messenger = Messenger(
            MessageJournal(metadata.database, zone=self.config.zone),
            build_projects(section, mailer_of=ports.new_mailer, caller=caller),
            tasks=self.tasks,
            webhooks=WebhookChannel(caller, rules.webhook, timeout_s=section.webhook_timeout_s, clock=ports.clock),
            queued_messages=section.queued_messages,
            attachment_bytes=section.attachment_bytes,
            clock=ports.clock,
        )
        rules.vet_with(messenger.projects.find)
        await messenger.start()
        self._lifetime.push_async_callback(messenger.stop)
        return messenger

    async def _start_backups(self) -> BackupStatus:
        self._backups = await start_backups(
            self.config,
            self._lifetime,
            database=self.metadata.database,
            store=self.store,
            broker=self.terminals.broker,
            bridges=self.terminals.bridges,
            open_target=lambda name: open_target(self.config.backup, name),
        )
        return self._backups.status

    def _new_bridges(self, local: EmbeddedBridges) -> Sequence[Bridge]:
        folder, packet_bytes = self.config.data_dir / "bridges", self.config.limits.mqtt_packet_bytes
        return [
            new_bridge(
                section, local, tasks=self.tasks, folder=folder, key=f"bridge[{number}]", packet_bytes=packet_bytes
            )
            for number, section in enumerate(self.config.bridge, 1)
        ]


def find_damaged_segments(config: Config, *, most_s: float) -> tuple[int, list[str]]:
    """How many segments of the embedded store were read within ``most_s``, and which can't be; nobody may have it open.

    Raises:
        StoreUnavailable: it can't be opened; says why.
    """
    from terrazzo_adapters.rocksdb.verify import verify_segments  # its libraries are heavy

    return verify_segments(config.store_dir, most_s=most_s)


async def open_store(config: Config, tasks: Tasks) -> TimeSeriesStore:
    """The store that the section ``store`` names, its queries timed.

    Raises:
        StoreUnavailable: it can't be opened; says why.
    """
    if config.store.kind == "embedded":
        section = config.store
        store = await RocksStore.open(
            config.store_dir,
            tasks=tasks,
            cache_bytes=section.cache_mib * MIB,
            seals=section.seal,
            least_free_bytes=section.seal_free_mib * MIB,
        )
        return TimedStore(store)
    from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore  # its libraries are heavy

    given = msgspec.structs.asdict(config.store)
    settings = InfluxSettings(**{name: given[name] for name in InfluxSettings.__dataclass_fields__})
    return TimedStore(await InfluxStore.open(settings, spool=config.data_dir / "spool", tasks=tasks))


async def open_stream(config: Config) -> Stream:
    """Connects to the log that the section ``stream`` names, and makes its streams where there are none.

    Raises:
        ConfigError: the client's library is not installed.
        LogUnusable: the servers or streams are not as they have to be; names the key.
        LogUnavailable: no server answers.
    """
    with CLUSTER.loading():
        from terrazzo_adapters import jetstream  # its library is heavy, and an extra
    given = msgspec.structs.asdict(config.stream)
    del given["kind"]
    most_bytes, most_in_bytes = (int(given.pop(key) * 2**30) for key in ("log_gib", "in_gib"))
    given |= {"most_bytes": most_bytes, "most_in_bytes": most_in_bytes}
    settings = jetstream.JetStreamSettings(name=config.cluster.name, **given)
    sync = await jetstream.check_servers(settings)
    connection = jetstream.Connection(settings)
    await connection.open()
    try:
        log, records = jetstream.JetStreamLog(connection), jetstream.JetStreamRecords(connection)
        await log.open()
        await records.open()
    except BaseException:
        await connection.close()
        raise
    reports = jetstream.JetStreamLog(connection, kind="in")
    clients_bytes = max(_CLIENTS_LEAST, most_in_bytes // _CLIENTS_PART)
    clients = jetstream.JetStreamRecords(connection, "clients", most_bytes=clients_bytes, room="stream.in_gib")
    retained_bytes = max(_CLIENTS_LEAST, most_in_bytes // _RETAINED_PART)
    retained = jetstream.JetStreamKeyed(connection, "retained", most_bytes=retained_bytes, room="stream.in_gib")
    sessions = jetstream.JetStreamKeyed(connection, "sessions", most_bytes=retained_bytes, room="stream.in_gib")
    queues = jetstream.JetStreamQueues(connection, "queues", most_bytes=retained_bytes, room="stream.in_gib")
    kept, calls = (reports, clients, retained, sessions, queues), jetstream.JetStreamCalls(connection)
    return Stream(log, records, *kept, calls, sync, connection.stats, connection.close)


def open_target(section: BackupSection, name: str) -> BackupTarget:
    """The place for backups with a name as in ``backup.target``: a folder, or ``s3://bucket/prefix``.

    Raises:
        ConfigError: what speaks S3 is not installed.
        TargetFailed: it can't be used.
    """
    if not name.startswith(S3):
        return FolderTarget(Path(name).expanduser())
    with S3_TARGET.loading():
        from terrazzo_adapters.backup.s3 import S3Target  # its library is heavy, and an extra
    bucket, _, prefix = name.removeprefix(S3).partition("/")
    return S3Target(bucket, prefix, endpoint=section.s3_endpoint, region=section.s3_region)


def new_tracer(section: TracingSection) -> SendingTracer:
    """What sends spans to the collector that the section ``tracing`` names.

    Raises:
        ConfigError: OpenTelemetry's SDK is not installed.
    """
    with TRACING.loading():
        from terrazzo_adapters.opentelemetry import OtelTracer, TracerSettings  # its libraries are heavy, and an extra
    given = msgspec.structs.asdict(section)
    del given["sample"]
    return OtelTracer(TracerSettings(version=build_info().version, **given))


def new_bridge(
    section: BridgeSection, local: EmbeddedBridges, *, tasks: Tasks, folder: Path, key: str, packet_bytes: int
) -> Bridge:
    """The bridge of a section of the configuration; ``folder`` is that of all bridges, ``packet_bytes`` the limit.

    Raises:
        ConfigError: a TLS file can't be used; names the key, which starts with ``key``.
    """
    from terrazzo_adapters.bridge import MqttBridge

    try:
        settings = _bridge_settings(section, broker_id=local.id, packet_bytes=packet_bytes)
        return MqttBridge(settings, local, tasks=tasks, folder=folder / section.name)
    except ValueError as error:
        raise ConfigError(f"{key}.{error}") from None


def _bridge_settings(section: BridgeSection, *, broker_id: str, packet_bytes: int) -> BridgeSettings:
    from terrazzo_adapters.bridge import BridgeSettings, TopicRule  # paho takes a while to load

    given = bridge_settings(section, broker_id) | {"packet_bytes": packet_bytes}
    for way in ("outgoing", "incoming"):
        given[way] = tuple(TopicRule(**topic) for topic in given[way])
    return BridgeSettings(**given)


def check_bridge(section: BridgeSection, *, key: str) -> None:
    """Reads the TLS files of a bridge, as its start does.

    Raises:
        ConfigError: one can't be used; names the key, which starts with ``key``.
    """
    from terrazzo_adapters.bridge import tls_context

    try:
        settings = _bridge_settings(section, broker_id="", packet_bytes=0)
        if settings.tls:
            tls_context(settings)
    except ValueError as error:
        raise ConfigError(f"{key}.{error}") from None


def new_mailer(section: EmailSection) -> Mailer:
    """The sender of mail by SMTP that a section of the configuration describes."""
    from terrazzo_adapters.messenger.smtp import MailServer, SmtpMailer  # most platforms send none

    given = {name: getattr(section, name) for name in MailServer.__struct_fields__}
    return SmtpMailer(MailServer(**given))


def new_caller(section: MessengerSection | SsoSection) -> HttpCaller:
    """The HTTP client for providers and webhooks, or for single sign-on.

    It refuses private addresses that the section does not allow.
    """
    return GuardedHttp(Guard(section.allow_private))


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """The platform's ways to the outside that no configuration key names; the defaults are those of ``terrazzo serve``.

    Attributes:
        clock: UTC microseconds.
        open_store: opens the time series store of a configuration; raises ``StoreUnavailable``.
        new_mailer: makes the sender of mail of a section.
        new_caller: makes the HTTP client for providers and webhooks, and that for single sign-on.
        new_supervisor: makes the supervisor of all long-lived tasks.
        intake_limits: when reading from terminals pauses, and how much one commit takes.
        fence: of a node among several, without which it doesn't write to the database.
        collectors: figures of what is around the platform, for ``/metrics``.
        fronts: what fronts have taken, which this platform stores.
        reads: what this platform answers for nodes that stand by and answer reads.
    """

    clock: Callable[[], int] = now_us
    open_store: Callable[[Config, Tasks], Awaitable[TimeSeriesStore]] = open_store
    new_mailer: Callable[[EmailSection], Mailer] = new_mailer
    new_caller: Callable[[MessengerSection | SsoSection], HttpCaller] = new_caller
    new_supervisor: NewSupervisor = new_supervisor
    intake_limits: IngestLimits = msgspec.field(default_factory=IngestLimits)
    fence: Fence | None = None
    collectors: Sequence[Collector] = ()
    fronts: Fronts | None = None
    reads: LeadersReads | None = None
