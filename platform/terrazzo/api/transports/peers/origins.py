"""Which web pages may ask: those of the server itself and of ``http.allowed_origins``.

A browser says with ``Origin`` whose page a request comes from; other programs say nothing, and nothing is asked of
them. A foreign page gets no answer to what could change something, and can't read any other [Fetch standard, 3.2].
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from aiohttp import hdrs, web
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.api.kernel.envelope import encodable
from terrazzo.api.kernel.replica.position import FRESHNESS, POSITION
from terrazzo.api.transports.peers.client_address import client_address
from terrazzo.api.transports.refusals import refused_with
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.peer_address import TrustedProxies
from terrazzo_broker.web_origin import AllowedOrigins, is_of_host

_READING = ("GET", "HEAD")
_PREFLIGHT_S = 600  # that a browser may remember an answer
_ASKED = f"Authorization, Content-Type, If-None-Match, If-Range, Range, {POSITION}"
_EXPOSED = f"Content-Disposition, Retry-After, {POSITION}, {FRESHNESS}"
_MOST_CHARS = 100  # of an origin in a log line or an answer

_log = SparseLog(logging.getLogger(__name__))


class Origins(Collector):
    """Compares the origin of a request with the server's own and with the allowed ones.

    Args:
        allowed: ``https://console.example.com``; ``*`` is all but ``null``, which pages of no known place have.
        proxies: whose ``X-Forwarded-Host`` and ``X-Forwarded-Proto`` are believed.
    """

    def __init__(self, allowed: Sequence[str], proxies: TrustedProxies) -> None:
        self._allowed = AllowedOrigins(allowed)
        self._proxies = proxies
        self._refused: Counter[str] = Counter(request=0, upgrade=0, preflight=0, cookie=0)

    def preflight(self, request: web.Request) -> web.Response | None:
        """The answer where a browser asks whether a page may ask; None for every other request.

        Raises:
            HTTPForbidden: the page may not.
        """
        wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
        if request.method != "OPTIONS" or wanted is None:
            return None
        origin = request.headers[hdrs.ORIGIN]
        if not (self.is_own(origin, request) or origin in self._allowed):
            self._refuse("preflight", origin, request)
        headers = {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, HEAD, POST",
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: _ASKED,
            hdrs.ACCESS_CONTROL_MAX_AGE: str(_PREFLIGHT_S),
        }
        return web.Response(status=204, headers=headers)

    def check(self, request: web.Request) -> None:
        """Looks at a request that has an origin.

        Raises:
            HTTPForbidden: it is a foreign page's, and could change something or open a connection that stays.
        """
        is_upgrade = hdrs.UPGRADE in request.headers
        if request.method in _READING and not is_upgrade:
            return
        origin = request.headers[hdrs.ORIGIN]
        if not (self.is_own(origin, request) or origin in self._allowed):
            self._refuse("upgrade" if is_upgrade else "request", origin, request)

    async def mark(self, request: web.Request, response: web.StreamResponse) -> None:
        """Lets the page of an allowed origin read the response; for ``on_response_prepare``."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)
        if origin in self._allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED

    def is_own(self, origin: str, request: web.Request) -> bool:
        """Whether host and port of an origin, or of another address, are those that the request was sent to.

        The scheme counts where the server itself speaks HTTPS or a trusted proxy tells it: otherwise what ends TLS in
        front of the server is not known.
        """
        scheme = origin.partition("://")[0].lower()
        host, sent_scheme = request.headers.get(hdrs.HOST, ""), "https" if request.secure else scheme
        if (request.remote or "") in self._proxies:
            host = _last(request.headers.get(hdrs.X_FORWARDED_HOST, host))
            sent_scheme = _last(request.headers.get(hdrs.X_FORWARDED_PROTO, sent_scheme)).lower()
        return sent_scheme == scheme and is_of_host(origin, host)

    def is_secure(self, request: web.Request) -> bool:
        """Whether the request came over HTTPS, to the server itself or to a trusted proxy that says so."""
        if (request.remote or "") in self._proxies:
            return _last(request.headers.get(hdrs.X_FORWARDED_PROTO, request.scheme)).lower() == "https"
        return request.secure

    def count_cookie(self, request: web.Request) -> None:
        """A request had a session's cookie, and came from no page of this server."""
        self._refused["cookie"] += 1
        _log.warning("refused the cookie of a session from %s: of another's page, or of none", client_address(request))

    def _refuse(self, what: str, origin: str, request: web.Request) -> None:
        self._refused[what] += 1
        shown = encodable(origin[:_MOST_CHARS])
        address = client_address(request)
        _log.warning("refused a page of %s, which %s has open: not in http.allowed_origins", shown, address)
        raise refused_with(web.HTTPForbidden(), say("origin_foreign", origin=shown))

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        refused = CounterMetricFamily(
            "terrazzo_api_origins_refused_total", "Requests of foreign web pages, by kind", labels=["kind"]
        )
        for kind, count in self._refused.items():
            refused.add_metric([kind], count)
        return (refused,)


def _last(values: str) -> str:
    """What the nearest proxy has written."""
    return values.rpartition(",")[2].strip()
