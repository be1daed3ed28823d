"""``Replica``: the APIs of a node that stands by, for reads; it ends by itself where it can't go on truthfully."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from prometheus_client.registry import Collector

from terrazzo.api.operations.live import open_session
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.server import HttpServer
from terrazzo.api.transports.tcp import TcpServer
from terrazzo.api.transports.tls import TlsParts
from terrazzo.config.sections import Config
from terrazzo.errors import Unavailable
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.follower import Follower
from terrazzo.runtime.assembly import metric_names as names
from terrazzo.runtime.assembly.certificates import http_certificates
from terrazzo.runtime.assembly.collectors import BuildCollector, StatsCollector
from terrazzo.runtime.assembly.memory import share_memory_of_reads
from terrazzo.runtime.assembly.metadata import open_replica_metadata
from terrazzo.runtime.assembly.mqtt_listeners import bound
from terrazzo.runtime.assembly.task_metrics import TaskCollector
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.replica.node import ReadsNode
from terrazzo.runtime.replica.services import new_services
from terrazzo.runtime.replica.store import ReadStore
from terrazzo.runtime.replica.views import start_replica_views
from terrazzo.times import now_us


class Replica:
    """One start of the APIs: ``open``, ``listen``, then ``close``. ``failed``: it has to be closed, and begun anew.

    Args:
        store: that the follower fills.
        say: what the node does, for ``/readyz``, which is about leading.
        collectors: the node's figures.
    """

    def __init__(
        self,
        config: Config,
        store: TimeSeriesStore,
        follower: Follower,
        node: ReadsNode,
        *,
        say: Callable[[], str],
        collectors: Sequence[Collector],
    ) -> None:
        self._config = config
        self._store = store
        self._follower = follower
        self._node = node
        self._say = say
        self._collectors = collectors
        self._lifetime = Lifetime()
        self.failed = self._lifetime.failed

    async def open(self) -> None:
        """Opens all but the ports.

        Raises:
            DatabaseUnusable, Unavailable, StoreUnavailable, OSError: what can't be opened, and why.
        """
        config, lifetime = self._config, self._lifetime
        metadata = await open_replica_metadata(config, lifetime, clock=now_us, follow=self._node.follow)
        await self._node.follow(metadata.changes)
        live = start_replica_views(config, lifetime, metadata.registry, self._follower, now_us)
        store = ReadStore(self._store)
        self._services = await new_services(
            config,
            lifetime,
            store=store,
            metadata=metadata,
            live=live,
            node=self._node,
            readiness={"cluster": self._check_leads},
            read_checks={"reads": self._check_age, "database": metadata.database.check, "store": store.check},
            collectors=[
                *self._collectors,
                StatsCollector(names.STORE, store.stats),
                StatsCollector(names.LIVE, lambda: live.stats),
                TaskCollector(lifetime.tasks.tasks),
                BuildCollector(build_info()),
            ],
            clock=now_us,
        )
        self._apps = build_apps(self._services)
        share_memory_of_reads(
            self._services.memory,
            lifetime,
            live=live,
            limiter=self._apps.connection_limiter,
            kept_answers=self._apps.gateway.kept_answers,
            remembered=self._services.remembered,
            store=store,
            entities=metadata.entities,
        )

    async def listen(self) -> None:
        """Opens the ports of HTTP, WebSocket and TCP, those that are on.

        Raises:
            ConfigError: an address is taken, or a TLS file can't be used.
        """
        config, apps, lifetime = self._config, self._apps, self._lifetime
        limits: dict[str, Any] = {"limits": config.limits}
        certificates = http_certificates(config.http)
        tls = TlsParts(certificates, lifetime.tasks) if certificates else None
        http = HttpServer(apps.http, apps.connection_limiter, port_name="http", tls=tls, **limits)
        websocket = HttpServer(apps.websocket, apps.connection_limiter, port_name="websocket", tls=tls, **limits)
        session = partial(open_session, self._services)
        tcp = TcpServer(apps.gateway, apps.connection_limiter, open_session=session, **limits)
        for server in (http, websocket, tcp):
            lifetime.push_async_callback(server.stop)
        self._repeat("time of requests", apps.reading_time.interval_s, apps.reading_time.look)
        if config.websocket.port is not None:
            await bound("websocket.port", websocket.start, config.websocket.host, config.websocket.port)
        if config.tcp.enabled:
            await bound("tcp.port", tcp.start, config.tcp.host, config.tcp.port)
        await bound("http.port", http.start, config.http.host, config.http.port)
        self._node.stats.serves = 1

    async def close(self) -> None:
        """Finishes what is under way, and closes everything."""
        self._node.stats.serves = 0
        await self._lifetime.aclose()

    def _repeat(self, name: str, interval_s: float, work: Callable[[], Awaitable[object]]) -> None:
        repeated = self._lifetime.tasks.repeat(name, interval_s, work, OnFailure.RESTART)
        self._lifetime.push_async_callback(repeated.stop)

    async def _check_leads(self) -> None:
        raise Unavailable(self._say())

    async def _check_age(self) -> None:
        """Raises ``Unavailable`` while what it answers is older than ``cluster.reads_age_s``."""
        age_s, most_s = self._node.age_s(), self._config.cluster.reads_age_s
        if age_s is None or age_s > most_s:
            age = "it was never at the log's end" if age_s is None else f"what it has may be {age_s:.1f} s old"
            raise Unavailable(f"{age} (cluster.reads_age_s: {most_s:g})")
