"""The header that says how far behind a replica is, on what no performer answers: exports, pages, readiness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from terrazzo.api.kernel.replica.position import FRESHNESS
from terrazzo.api.kernel.replica.seams import ReplicaNode


def freshness_marker(node: ReplicaNode) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Marks a response that isn't marked yet; for ``on_response_prepare``."""

    async def mark(_request: web.Request, response: web.StreamResponse) -> None:
        if FRESHNESS not in response.headers:
            response.headers[FRESHNESS] = node.freshness()

    return mark
