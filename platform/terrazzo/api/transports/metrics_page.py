"""``/metrics`` for Prometheus, for whoever has the token where ``metrics.token`` sets one."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterable, Sequence
from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from terrazzo.api.kernel.dispatch import bearer_token
from terrazzo.api.kernel.envelope import NOT_AUTHENTICATED, UNREAD, Failure
from terrazzo.api.kernel.services import Services
from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.transports.peers.client_address import client_address
from terrazzo.loop_pauses import LoopPauses
from terrazzo.sparse_log import SparseLog

_JSON = "application/json"
_log = SparseLog(logging.getLogger(__name__))


def metrics_handler(services: Services, traffic: Traffic, *own: Collector) -> Handler:
    """Makes the handler; ``own`` are the collectors of the port itself."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for collector in (traffic, *own, *services.collectors):
        registry.register(collector)
    wanted = services.metrics_token

    async def handle_metrics(request: web.Request) -> web.Response:
        if wanted and not _is_right(request, wanted):
            traffic.refuse(HTTPStatus.UNAUTHORIZED)
            _log.warning(
                "refused /metrics to %s: the token is missing or wrong (metrics.token)", client_address(request)
            )
            return _refusal()
        text = await asyncio.to_thread(generate_latest, await _collected(registry))
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return handle_metrics


async def _collected(registry: CollectorRegistry) -> CollectorRegistry:
    """A registry of what the collectors say now: they are asked here, family by family, and written down elsewhere."""
    families, pauses = [], LoopPauses()
    for family in registry.collect():
        families.append(family)
        await pauses.pause()
    found = CollectorRegistry()
    found.register(_Families(families))
    return found


class _Families(Collector):
    """Metrics as they were."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def describe(self) -> Iterable[Metric]:
        """Nothing is said of their names in advance."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        return self._families


def _is_right(request: web.Request, wanted: str) -> bool:
    given = bearer_token(request.headers.get(hdrs.AUTHORIZATION)) or ""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _refusal() -> web.Response:
    """The envelope of a refused request, and how to ask instead [RFC 6750, 3]."""
    info = "Authorization: expected Bearer and the token of metrics.token"
    answer = UNREAD.failure(Failure(NOT_AUTHENTICATED, info, HTTPStatus.UNAUTHORIZED))
    headers = {hdrs.WWW_AUTHENTICATE: 'Bearer realm="metrics"'}
    return web.Response(body=answer.body, status=answer.status, headers=headers, content_type=_JSON)
