"""The HTTP port of a node that stands by: ``/healthz``, ``/readyz`` and ``/metrics``; nothing else."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable

import msgspec
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from terrazzo.config.sections import Config
from terrazzo.runtime.assembly.certificates import http_certificates
from terrazzo.runtime.assembly.mqtt_listeners import bound

_JSON = "application/json"


class StandbyPage:
    """Answers on ``http.host`` and ``http.port`` until the platform itself does.

    Args:
        say: what the node waits for.
        collector: its figures.
    """

    def __init__(self, config: Config, say: Callable[[], str], collector: Collector) -> None:
        self._config = config
        self._say = say
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(collector)
        app = web.Application()
        app.router.add_get("/healthz", self._handle_health)
        app.router.add_get("/readyz", self._handle_readiness)
        app.router.add_get("/metrics", self._handle_metrics)
        app.router.add_route("*", "/{path:.*}", self._refuse)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> None:
        """Listens.

        Raises:
            ConfigError: the address is taken, or a TLS file can't be used.
        """
        await self._runner.setup()
        certificates = http_certificates(self._config.http)
        context = certificates.context if certificates is not None else None

        async def listen(host: str, port: int) -> int:
            await web.TCPSite(self._runner, host, port, ssl_context=context).start()
            return port

        await bound("http.port", listen, self._config.http.host, self._config.http.port)

    async def stop(self) -> None:
        """Lets go of the port."""
        await self._runner.cleanup()

    async def _handle_health(self, _request: web.Request) -> web.Response:
        return _answer(200, {"status": "ok"})

    async def _handle_readiness(self, _request: web.Request) -> web.Response:
        return _answer(503, {"ready": False, "parts": {"cluster": {"ready": False, "reason": self._say()}}})

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
