"""The gateway: the services that operations use, the HTTP, WebSocket and TCP servers, readiness checks, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
from prometheus_client.registry import Collector

from terrazzo.access.credentials import Credentials
from terrazzo.access.wall_links import WallLinks
from terrazzo.api.kernel.replica.seams import ClusterPart, LeadingNode
from terrazzo.api.kernel.services import BrokerAsking, MapTiles, MqttPorts, ReadinessCheck, Services
from terrazzo.api.operations.live import open_session
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.server import HttpServer
from terrazzo.api.transports.tcp import TcpServer
from terrazzo.api.transports.tls import TlsParts
from terrazzo.backup.status import BackupStatus
from terrazzo.campaigns.runner import CampaignRunner
from terrazzo.commands.pusher import Pusher
from terrazzo.config.sections import Config
from terrazzo.errors import Unavailable
from terrazzo.events.definitions import EventDefinitions
from terrazzo.events.handovers import Handovers
from terrazzo.events.object_log import ObjectLog
from terrazzo.files.library import FileLibrary
from terrazzo.listeners import Listeners
from terrazzo.mapping.replay.runner import ReplayRunner
from terrazzo.memory_shares import MemoryShares
from terrazzo.messenger.messenger import Messenger
from terrazzo.metadata.name_search import NameSearch
from terrazzo.metadata.repositories.terminal_batches import TerminalBatches
from terrazzo.objects.variable_definitions import VariableDefinitions
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.ports.tracing import Tracing
from terrazzo.reasons import say
from terrazzo.rules.command_store import RuleCommandRecords
from terrazzo.runtime.assembly.backup_metrics import BACKUPS
from terrazzo.runtime.assembly.bridge_metrics import bridge_metrics
from terrazzo.runtime.assembly.certificates import Tls
from terrazzo.runtime.assembly.collectors import BuildCollector, LabelledCollector, StatsCollector
from terrazzo.runtime.assembly.host_metrics import HostCollector
from terrazzo.runtime.assembly.logins import Logins
from terrazzo.runtime.assembly.memory_metrics import MemoryCollector, ProcessMemoryCollector, SeriesCollector
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.mqtt_listeners import bound, listen_mqtt
from terrazzo.runtime.assembly.objects import Objects
from terrazzo.runtime.assembly.part_metrics import answer_metrics, kept_metrics, part_metrics
from terrazzo.runtime.assembly.rules import Rules
from terrazzo.runtime.assembly.screen_metric_names import API_KEYS, WALL_LINKS
from terrazzo.runtime.assembly.task_metrics import ListenerCollector, TaskCollector
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.assembly.terminals import Terminals
from terrazzo.runtime.assembly.views import Views
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.loop_watch import LoopWatch
from terrazzo.runtime.supervisor import Supervisor
from terrazzo.terminals.former_data import FormerDataStats
from terrazzo.terminals.search import TerminalSearch
from terrazzo.work_process import WorkProcess
from terrazzo_broker.peer_address import TrustedProxies


class ListenAddresses(msgspec.Struct, frozen=True):
    """The addresses at which the platform listens, as URLs."""

    http: str
    websocket: str  # empty where it is off
    tcp: str  # empty where it is off
    mqtt: list[str]  # those that are on, the plain one first
    mqtt_port: int  # of the plain one; 0 where it is off


class GatewayParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that the gateway is made of; all exist before clients may connect."""

    store: TimeSeriesStore
    metadata: Metadata
    logins: Logins
    files: FileLibrary
    messenger: Messenger
    objects: Objects
    messaging: TerminalMessaging
    views: Views
    campaigns: CampaignRunner
    rules: Rules
    terminals: Terminals
    replays: ReplayRunner
    tasks: Supervisor
    former: FormerDataStats
    watch: LoopWatch
    backups: BackupStatus
    memory: MemoryShares
    export_process: WorkProcess
    tls: Tls
    tracing: Tracing | None
    collectors: Sequence[Collector] = ()
    leading: LeadingNode | None = None


class GatewayServers:
    """The gateway's HTTP, WebSocket and TCP servers; nothing listens before ``listen``.

    Attributes:
        services: what operations use.
        connection_limiter: counts and bounds the connections of all three.
        kept_answers: the bytes of answers that are made and not taken yet, by company.
        for_replicas: answers what nodes that stand by ask the leader.
    """

    def __init__(self, config: Config, parts: GatewayParts, *, clock: Callable[[], int]) -> None:
        self._config = config
        self._parts = parts
        self._clock = clock
        self.services = services = self._services()
        apps = build_apps(services)
        self.connection_limiter = apps.connection_limiter
        self.kept_answers = apps.gateway.kept_answers
        self.for_replicas = apps.for_replicas
        self._reading_time = apps.reading_time
        limits: dict[str, Any] = {"limits": config.limits}
        certificates = parts.tls.http
        web: dict[str, Any] = {"tls": TlsParts(certificates, parts.tasks) if certificates else None, **limits}
        self._http = HttpServer(apps.http, apps.connection_limiter, port_name="http", **web)
        self._websocket = HttpServer(apps.websocket, apps.connection_limiter, port_name="websocket", **web)
        self._tcp = TcpServer(
            apps.gateway, apps.connection_limiter, open_session=partial(open_session, services), **limits
        )

    async def listen(self, lifetime: Lifetime) -> ListenAddresses:
        """Opens all ports, the broker's first and HTTP's, which answers ``/readyz``, last.

        Raises:
            ConfigError: an address is taken, or a TLS file can't be used.
        """
        config = self._config
        for server in (self._http, self._websocket, self._tcp):
            lifetime.push_async_callback(server.stop)
        reading = self._reading_time
        looking = self._parts.tasks.repeat("time of requests", reading.interval_s, reading.look, OnFailure.RESTART)
        lifetime.push_async_callback(looking.stop)
        mqtt_port, mqtt = await listen_mqtt(self._parts.terminals.broker, config.mqtt)
        _note_ports(self.services.mqtt, mqtt)
        websocket, tcp, s = config.websocket, config.tcp, "s" if self._parts.tls.http else ""
        websocket_address = ""
        if websocket.port is not None:
            port = await bound("websocket.port", self._websocket.start, websocket.host, websocket.port)
            websocket_address = f"ws{s}://{websocket.host}:{port}"
        tcp_port = await bound("tcp.port", self._tcp.start, tcp.host, tcp.port) if tcp.enabled else 0
        http_port = await bound("http.port", self._http.start, config.http.host, config.http.port)
        return ListenAddresses(
            http=f"http{s}://{config.http.host}:{http_port}",
            websocket=websocket_address,
            tcp=f"tcp://{tcp.host}:{tcp_port}" if tcp.enabled else "",
            mqtt=mqtt,
            mqtt_port=mqtt_port,
        )

    def _terminal_search(self) -> TerminalSearch:
        metadata, messaging = self._parts.metadata, self._parts.messaging
        return TerminalSearch(
            metadata.entities.terminals,
            metadata.registry,
            messaging.presence,
            refused=messaging.refusals.refused_terminals,
            refused_at=messaging.refusals.last_address,
        )

    def _services(self) -> Services:
        parts, metadata, messaging, views = self._parts, self._parts.metadata, self._parts.messaging, self._parts.views
        return Services(
            entities=metadata.entities,
            registry=metadata.registry,
            former_terminals=metadata.former_terminals,
            registration=metadata.registration,
            claim_keys=metadata.entities.claim_keys,
            unknown_terminals=parts.terminals.unknown,
            terminal_search=self._terminal_search(),
            terminal_batches=TerminalBatches(metadata.entities.terminals),
            store=parts.store,
            bus=messaging.bus,
            broker=messaging.bus,
            commands=messaging.commands,
            configurations=messaging.configurations,
            campaigns=parts.campaigns.terminal_records,
            firmware=messaging.links,
            pusher=Pusher(messaging.commands, metadata.entities, metadata.registry),
            object_flags=views.flags,
            files=parts.files,
            events=views.events,
            report_reader=messaging.reader,
            event_definitions=EventDefinitions(metadata.entities.mappings),
            messenger=parts.messenger,
            labels=views.labels,
            login=parts.logins.users,
            password_resets=parts.logins.password_resets,
            second_factors=parts.logins.second_factors,
            single_sign_on=parts.logins.single_sign_on,
            lockouts=parts.logins.lockouts,
            refusals=parts.messaging.refusals,
            tokens=Credentials(metadata.tokens, metadata.api_keys),
            api_keys=metadata.api_keys,
            live=views.live,
            analysis=parts.objects.analysis,
            computing=parts.objects.analysis.computing,
            export_process=parts.export_process,
            replays=parts.replays,
            audit=metadata.audit,
            limits=self._config.limits,
            own_limits=metadata.quotas.own,
            zone=self._config.zone,
            version=build_info().version,
            session_s=self._config.auth.token_hours * 3_600,
            command_expiry_s=self._config.command.expiry_s,
            instance=metadata.tokens.instance,
            mapping_limits=parts.objects.mapper.engine.catalogue.limits,
            prefixes=msgspec.structs.asdict(self._config.api),
            readiness=self._readiness(),
            tasks=parts.tasks,
            proxies=TrustedProxies(self._config.http.trusted_proxies),
            allowed_origins=self._config.http.allowed_origins,
            metrics_token=self._config.metrics.token,
            memory=parts.memory,
            **self._of_screens(),
            **self._counted(),
        )

    def _of_screens(self) -> dict[str, Any]:
        """What screens show besides records."""
        metadata = self._parts.metadata
        return {
            "attention": self._parts.views.attention,
            "intake": self._parts.messaging.ingest.taken.intake,
            "traces": self._parts.views.traces,
            "presence_log": self._parts.messaging.presence_log,
            "handovers": Handovers(metadata.database, zone=self._config.zone, clock=self._clock),
            "object_log": ObjectLog(metadata.database, self._parts.messaging.presence_log),
            "out_of_service": metadata.out_of_service,
            "unfinished_imports": metadata.unfinished_imports,
            "rule_commands": RuleCommandRecords(metadata.database, zone=self._config.zone),
            "wall_links": WallLinks(metadata.database, metadata.tokens, metadata.audit, clock=self._clock),
            "search": NameSearch(metadata.database, metadata.registry, metadata.entities),
            "variable_definitions": VariableDefinitions(metadata.entities.mappings),
            "backups": self._parts.backups,
            "bridges": self._parts.terminals.bridges,
            "broker_asking": self._broker_asking(),
            "cluster": ClusterPart(leading=self._parts.leading),
            "map_tiles": MapTiles(self._config.http.map_tiles, self._config.http.map_attribution),
        }

    def _broker_asking(self) -> BrokerAsking | None:
        config = self._config
        if not config.broker.is_asked:
            return None
        askers = TrustedProxies(config.broker.auth_from)
        access = self._parts.terminals.remote_access
        return BrokerAsking(access=access, token=config.broker.auth_token, askers=askers)

    def _counted(self) -> dict[str, Any]:
        """What is counted, and who shows it in ``/metrics``."""
        series = Counter(digest=0, rows=0)
        text = "Series that InfluxQL read, by how: as a digest, or as rows because more was asked for"
        shown = LabelledCollector("terrazzo_influxql_series_total", "read", text, lambda: series)
        return {
            "influx_series": series,
            "collectors": [*self._collectors(), shown],
            "tracing": self._parts.tracing,
        }

    def _collectors(self) -> Sequence[Collector]:
        parts, messaging, objects = self._parts, self._parts.messaging, self._parts.objects
        limits = self._config.limits
        return [
            *part_metrics(
                store=parts.store.stats,
                former=parts.former,
                broker=parts.terminals.broker.stats,
                ingest=messaging.ingest.stats,
                commands=messaging.commands.stats,
                configurations=messaging.configurations.stats,
                login=parts.terminals.login.stats,
                remote_access=parts.terminals.remote_access.stats,
                refusals=messaging.refusals.stats,
                provisioning=parts.terminals.provisioning.stats,
                user_login=parts.logins.users.stats,
                password_resets=parts.logins.password_resets.stats,
                single_sign_on=parts.logins.single_sign_on.stats,
                engine=objects.mapper.engine.stats,
                effect_queue=objects.mapper.effect_queue.stats,
                campaigns=parts.campaigns.stats,
                messenger=parts.messenger.stats,
                rules=objects.notifier.stats,
                rule_watch=parts.rules.watch.stats,
                rule_commands=parts.rules.commander.stats,
                analysis=objects.analysis.stats,
                live=parts.views.live.stats,
                flags=parts.views.flag_watch.stats,
                quotas=parts.metadata.quotas.stats,
                event_quotas=parts.metadata.event_quotas.stats,
            ),
            *kept_metrics(
                event_expiry=parts.views.expiry,
                retention=parts.metadata.retention,
                decoders=messaging.reader.decoders.stats,
                attention=parts.views.attention.stats,
                presence_log=messaging.presence_log.stats,
                series_use=messaging.series_use.stats,
            ),
            StatsCollector(BACKUPS, lambda: parts.backups),
            StatsCollector(API_KEYS, lambda: parts.metadata.api_keys.stats),
            StatsCollector(WALL_LINKS, lambda: self.services.wall_links.stats),
            *answer_metrics(lambda: self.services, parts.metadata.database, messaging.commands.submissions),
            *bridge_metrics(parts.terminals.bridges),
            TaskCollector(parts.tasks.tasks),
            ListenerCollector(self._listeners()),
            parts.watch,
            MemoryCollector(parts.memory),
            ProcessMemoryCollector(parts.store.stats),
            SeriesCollector(messaging.series_use.largest),
            parts.tls.watch,
            BuildCollector(build_info()),
            HostCollector(self._config.data_dir, msgspec.structs.asdict(limits), self._clock),
            *parts.collectors,
        ]

    def _listeners(self) -> Sequence[Listeners[Any]]:
        metadata, messaging, effects = self._parts.metadata, self._parts.messaging, self._parts.objects.mapper
        return [
            messaging.ingest.records,
            messaging.ingest.answers,
            messaging.presence.changes,
            messaging.refusals.changes,
            self._parts.terminals.login.refused,
            self._parts.terminals.login.unknown,
            messaging.commands.steps,
            messaging.links.downloads,
            metadata.tokens.ended,
            metadata.registry.terminal_changes,
            metadata.registry.sharing_changes,
            metadata.registry.service_changes,
            *(repository.changes for repository in metadata.entities.every()),
            effects.wanted,
            effects.effect_queue.happened,
            effects.effect_queue.room,
            self._parts.views.events.changes,
            self._parts.views.live.feed_changes,
            self._parts.views.traces.packets,
            self._parts.views.traces.ended,
        ]

    def _readiness(self) -> Mapping[str, ReadinessCheck]:
        tcp = {"tcp": self._check_tcp} if self._config.tcp.enabled else {}
        websocket = {"websocket": self._check_websocket} if self._config.websocket.port is not None else {}
        return {
            **tcp,
            "mqtt": self._check_mqtt,
            **websocket,
            "ingest": self._check_ingest,
            "database": self._parts.metadata.database.check,
            "store": self._parts.store.check,
        }

    async def _check_mqtt(self) -> None:
        if not self._parts.terminals.broker.is_listening:
            raise Unavailable(say("broker_not_listening"))

    async def _check_websocket(self) -> None:
        if not self._websocket.is_listening:
            raise Unavailable(say("websocket_not_listening"))

    async def _check_tcp(self) -> None:
        if not self._tcp.is_listening:
            raise Unavailable(say("tcp_not_listening"))

    async def _check_ingest(self) -> None:
        if not self._parts.messaging.ingest.is_healthy:
            raise Unavailable(say("reports_not_taken"))


def _note_ports(ports: MqttPorts, addresses: Sequence[str]) -> None:
    found = {each.scheme: each.port for each in map(urlsplit, addresses)}
    ports.plain, ports.tls, ports.websocket = found.get("mqtt"), found.get("mqtts"), found.get("ws")
    ports.websocket_tls = found.get("wss")
