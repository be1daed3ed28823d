"""The HTTP port of a node that stands by, and of a front: ``/healthz``, ``/readyz`` and ``/metrics``; nothing else."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Iterable, Mapping

import msgspec
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from terrazzo.config.sections import Config
from terrazzo.runtime.assembly.certificates import http_certificates
from terrazzo.runtime.assembly.mqtt_listeners import bound

_JSON = "application/json"
_HANDSHAKE_S = 10.0  # of TLS
MOST_CONNECTIONS = 64  # the oldest makes room: whoever watches a node asks and goes


class StandbyPage:
    """Answers on ``http.host`` and ``http.port``, for a node until the platform itself does.

    Args:
        say: what the process does, for whoever asks it for more than it can give.
        collector: its figures.
        unready: its parts that aren't ready, each with the reason; a node that stands by never is.
    """

    def __init__(
        self,
        config: Config,
        say: Callable[[], str],
        collector: Collector,
        unready: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        self._config = config
        self._say = say
        self._unready = unready if unready is not None else lambda: {"cluster": say()}
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(collector)
        app = web.Application()
        app.router.add_get("/healthz", self._handle_health)
        app.router.add_get("/readyz", self._handle_readiness)
        app.router.add_get("/metrics", self._handle_metrics)
        app.router.add_route("*", "/{path:.*}", self._refuse)
        self._runner = web.AppRunner(app, access_log=None)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listens.

        Raises:
            ConfigError: the address is taken, or a TLS file can't be used.
        """
        await self._runner.setup()
        certificates = http_certificates(self._config.http)
        context = certificates.context if certificates is not None else None

        async def listen(host: str, port: int) -> int:
            loop, handshake_s = asyncio.get_running_loop(), None if context is None else _HANDSHAKE_S
            self._server = await loop.create_server(
                self._new_connection, host, port, ssl=context, ssl_handshake_timeout=handshake_s
            )
            return port

        await bound("http.port", listen, self._config.http.host, self._config.http.port)

    def add_collectors(self, collectors: Iterable[Collector]) -> None:
        """More figures."""
        for collector in collectors:
            self._registry.register(collector)

    async def stop(self) -> None:
        """Lets go of the port."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _new_connection(self) -> asyncio.Protocol:
        """For one more peer, the oldest of too many is ended."""
        handlers = self._runner.server
        assert handlers is not None
        here = handlers.connections
        if len(here) >= MOST_CONNECTIONS:
            here[0].force_close()
        return handlers()

    async def _handle_health(self, _request: web.Request) -> web.Response:
        return _answer(200, {"status": "ok"})

    async def _handle_readiness(self, _request: web.Request) -> web.Response:
        unready = self._unready()
        parts = {name: {"ready": False, "reason": reason} for name, reason in unready.items()}
        return _answer(503 if unready else 200, {"ready": not unready, "parts": parts})

    async def _handle_metrics(self, request: web.Request) -> web.Response:
        wanted = self._config.metrics.token
        given = request.headers.get(hdrs.AUTHORIZATION, "")
        if wanted and not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), f"Bearer {wanted}".encode()):
            return _answer(401, {"info": "Authorization: expected Bearer and the token of metrics.token"})
        text = await asyncio.to_thread(generate_latest, self._registry)
        return web.Response(body=text, headers={hdrs.CONTENT_TYPE: CONTENT_TYPE_PLAIN_0_0_4})

    async def _refuse(self, _request: web.Request) -> web.Response:
        return _answer(503, {"code": 503, "info": self._say()})


def _answer(status: int, value: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type=_JSON)
