"""The settings of a broker: limits and timings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .peer_address import TrustedProxies

NEVER_EXPIRES_S = 0xFFFFFFFF
NO_LIMIT = 1 << 62

_COUNTS = (
    "connections",
    "half_open",
    "half_open_bytes",
    "half_open_per_address",
    "queued_messages",
    "queued_bytes",
    "topic_levels",
    "owner_queued_messages",
    "owner_queued_bytes",
    "owner_subscriptions",
    "retained_messages",
    "retained_bytes",
    "retained_memory_bytes",
    "owner_retained_messages",
    "owner_retained_bytes",
    "owner_retained_memory_bytes",
    "client_retained_messages",
    "client_retained_bytes",
)


class OwnerLimits(NamedTuple):
    """What the clients of one owner may have together, where several share a broker."""

    publish_per_second: int  # 0 is off
    queued_messages: int  # in all their sessions
    queued_bytes: int
    subscriptions: int
    retained_messages: int
    retained_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Limits and timings of one broker; the defaults suit a few thousand field terminals.

    Raises:
        ValueError: a limit that MQTT can't express, named with its reason.
    """

    packet_bytes: int = 1 << 20  # the largest packet a client may send
    connect_bytes: int = 16 << 10  # the largest one before it has logged in: CONNECT, AUTH
    connections: int = 10_000
    sockets: int = 0  # open ones, logged in or not; 0: 1,024 more than ``connections``
    connects_per_second: int = 2_000  # per listener, by address in turn; who comes faster waits, 0 is off
    half_open: int = 10_000  # connections that haven't logged in yet: after a restart all of them
    half_open_per_address: int = 1_024  # of them from one address (IPv6: one /64)
    half_open_bytes: int = 16 << 20  # kept of what they have sent
    trusted_proxies: tuple[str, ...] = ()  # peers whose PROXY header and X-Forwarded-For count, addresses and networks
    allowed_origins: tuple[str, ...] | None = None  # of web pages on WebSocket, beside its own host's; None: any
    publish_per_second: int = 0  # per client, 0 is off; a faster client is read more slowly
    owner_publish_per_second: int = 0  # of all clients of an owner, 0 is off; who publishes then is read more slowly
    inflight_from_client: int = 65_535  # Receive Maximum, announced to MQTT 5 clients
    inflight_to_client: int = 100  # unacknowledged QoS 1 and 2 publishes to one client
    queued_messages: int = 1_000  # per offline session
    queued_bytes: int = 8 << 20  # per slow consumer
    topic_alias_maximum: int = 32  # aliases that a client may use towards us
    outbound_alias_maximum: int = 64  # aliases that we use towards one client, however many it allows
    topic_levels: int = 200
    topic_bytes: int = 65_535  # of a topic that a client publishes on, and of a filter that it subscribes to
    owner_queued_messages: int = NO_LIMIT  # in all sessions of each owner, where several share the broker
    owner_queued_bytes: int = NO_LIMIT
    owner_subscriptions: int = NO_LIMIT
    retained_messages: int = 100_000
    retained_bytes: int = 16 << 30  # with payloads that are on disk
    retained_memory_bytes: int = 256 << 20
    owner_retained_messages: int = NO_LIMIT  # of each owner
    owner_retained_bytes: int = NO_LIMIT
    owner_retained_memory_bytes: int = NO_LIMIT
    client_retained_messages: int = NO_LIMIT
    client_retained_bytes: int = NO_LIMIT
    subscriptions_per_session: int = 1_000
    max_keepalive_s: int = 0  # 0 leaves the client's; else the longest Keep Alive an MQTT 5 client may have
    max_session_expiry_s: int = NEVER_EXPIRES_S
    retain_available: bool = True  # False: nothing is retained; announced to MQTT 5 clients
    connect_timeout_s: float = 10.0  # from the TCP connection to the CONNACK
    sweep_interval_s: float = 0.5  # keep-alive, session expiry and will delay are looked at this often
    sys_interval_s: float = 10.0  # between updates of $SYS, 0 is off

    @property
    def owner_limits(self) -> OwnerLimits:
        """What the clients of an owner may have that has no limits of its own."""
        return OwnerLimits(*[getattr(self, f"owner_{name}") for name in OwnerLimits._fields])

    def __post_init__(self) -> None:
        _within(self, "packet_bytes", 64, 268_435_460)
        _within(self, "connect_bytes", 64, 268_435_460)
        _within(self, "sockets", 0, 1 << 40)
        _within(self, "connects_per_second", 0, 1 << 40)
        _within(self, "owner_publish_per_second", 0, 1 << 40)
        _within(self, "inflight_from_client", 1, 65_535)
        _within(self, "inflight_to_client", 1, 65_535)
        _within(self, "topic_alias_maximum", 0, 65_535)
        _within(self, "topic_bytes", 64, 65_535)
        _within(self, "outbound_alias_maximum", 0, 65_535)
        _within(self, "max_keepalive_s", 0, 65_535)
        _within(self, "max_session_expiry_s", 0, NEVER_EXPIRES_S)
        for name in _COUNTS:
            _within(self, name, 1, NO_LIMIT)
        _check_networks(self.trusted_proxies)
        for name in ("connect_timeout_s", "sweep_interval_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)} is not above 0")


def _check_networks(networks: tuple[str, ...]) -> None:
    try:
        TrustedProxies(networks)
    except ValueError as error:
        raise ValueError(f"trusted_proxies: {error}") from None


def _within(settings: BrokerSettings, name: str, low: int, high: int) -> None:
    value = getattr(settings, name)
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is not within {low} to {high}")
