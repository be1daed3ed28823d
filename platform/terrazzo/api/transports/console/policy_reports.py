"""What browsers report of the console's policy: counted by directive, and told of in the log."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.api.kernel.envelope import encodable
from terrazzo.api.transports.peers.client_address import client_address
from terrazzo.api.transports.refusals import refused_with
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog

MOST_BYTES = 8_192  # of a report
_MOST_CHARS = 100
_DIRECTIVES = (
    "default-src",
    "script-src",
    "script-src-elem",
    "script-src-attr",
    "style-src",
    "style-src-elem",
    "style-src-attr",
    "img-src",
    "media-src",
    "connect-src",
    "font-src",
    "frame-src",
    "base-uri",
    "form-action",
    "frame-ancestors",
    "require-trusted-types-for",
    "trusted-types",
)
_OTHER = "other"
_log = SparseLog(logging.getLogger(__name__))


class PolicyReports(Collector):
    """Takes reports from whoever sends them, so nothing is kept of them but a figure for each known directive.

    Args:
        timeout_s: for a report to come.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._counts: Counter[str] = Counter(dict.fromkeys((*_DIRECTIVES, _OTHER), 0))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Counts a report. One that is longer, or doesn't come, is refused."""
        if (request.content_length or 0) > MOST_BYTES:
            raise web.HTTPRequestEntityTooLarge(max_size=MOST_BYTES, actual_size=request.content_length or 0)
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await request.content.read(MOST_BYTES)
        except TimeoutError:
            raise refused_with(web.HTTPRequestTimeout(), say("body_late", seconds=self._timeout_s)) from None
        directive, blocked = read_policy_report(body)
        self._counts[directive if directive in self._counts else _OTHER] += 1
        _log.warning(
            "the console's policy stopped something: %s, %s, told by %s", directive, blocked, client_address(request)
        )
        return web.Response(status=204)

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        counted = CounterMetricFamily(
            "terrazzo_console_policy_reports_total",
            "What browsers stopped in the console by its policy, by directive",
            labels=["directive"],
        )
        for directive, count in self._counts.items():
            counted.add_metric([directive], count)
        return (counted,)


def read_policy_report(body: bytes) -> tuple[str, str]:
    """Directive and what was stopped, of a report [CSP 3, 5.3]; what is no report has neither."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _OTHER, "not a report"
    report: Any = found.get("csp-report") if isinstance(found, dict) else None
    if not isinstance(report, dict):
        return _OTHER, "not a report"
    named = report.get("effective-directive") or report.get("violated-directive") or ""
    return _text(named).partition(" ")[0] or _OTHER, _text(report.get("blocked-uri"))


def _text(value: Any) -> str:
    return encodable(value[:_MOST_CHARS]) if isinstance(value, str) else ""
