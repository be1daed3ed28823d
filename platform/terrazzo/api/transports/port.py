"""What the connections of a port of HTTP share."""

from __future__ import annotations

import msgspec

from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.connection_limiter import ConnectionLimiter
from terrazzo.api.transports.known_heads import KnownHeads
from terrazzo_broker.peer_address import TrustedProxies


class Port(msgspec.Struct, frozen=True):
    """What the connections of a port share.

    Args:
        name: what ``/metrics`` calls its connections.
        has_health: whether ``/healthz`` is there, which has a reserve of connections.
        heads: None where each request is read by aiohttp.
    """

    name: str
    has_health: bool
    connection_limiter: ConnectionLimiter
    limits: ApiLimits
    heads: KnownHeads | None
    proxies: TrustedProxies
