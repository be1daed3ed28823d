"""The settings of a broker: limits and timings."""

from __future__ import annotations

from dataclasses import dataclass

NEVER_EXPIRES_S = 0xFFFFFFFF

_COUNTS = (
    "connections",
    "connects_per_second",
    "half_open_per_address",
    "queued_messages",
    "queued_bytes",
    "topic_levels",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Limits and timings of one broker; the defaults suit a few thousand field terminals.

    Raises:
        ValueError: a limit that MQTT can't express, named with its reason.
    """

    packet_bytes: int = 1 << 20  # the largest packet a client may send
    connections: int = 10_000
    connects_per_second: int = 500  # per listener
    half_open_per_address: int = 1_024  # connections from one address that haven't logged in yet
    publish_per_second: int = 0  # per client, 0 is off; a faster client is read more slowly
    inflight_from_client: int = 65_535  # Receive Maximum, announced to MQTT 5 clients
    inflight_to_client: int = 100  # unacknowledged QoS 1 and 2 publishes to one client
    queued_messages: int = 1_000  # per offline session
    queued_bytes: int = 8 << 20  # per slow consumer
    topic_alias_maximum: int = 32  # aliases that a client may use towards us
    outbound_alias_maximum: int = 64  # aliases that we use towards one client, however many it allows
    topic_levels: int = 200
    retained_messages: int = 100_000
    subscriptions_per_session: int = 1_000
    max_keepalive_s: int = 0  # 0 leaves the client's; else the longest Keep Alive an MQTT 5 client may have
    max_session_expiry_s: int = NEVER_EXPIRES_S
    connect_timeout_s: float = 10.0  # from the TCP connection to the CONNACK
    sweep_interval_s: float = 0.5  # keep-alive, session expiry and will delay are looked at this often
    sys_interval_s: float = 10.0  # between updates of $SYS, 0 is off

    def __post_init__(self) -> None:
        _within(self, "packet_bytes", 64, 268_435_460)
        _within(self, "inflight_from_client", 1, 65_535)
        _within(self, "inflight_to_client", 1, 65_535)
        _within(self, "topic_alias_maximum", 0, 65_535)
        _within(self, "outbound_alias_maximum", 0, 65_535)
        _within(self, "max_keepalive_s", 0, 65_535)
        _within(self, "max_session_expiry_s", 0, NEVER_EXPIRES_S)
        for name in _COUNTS:
            _within(self, name, 1, 1 << 40)
        for name in ("connect_timeout_s", "sweep_interval_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)} is not above 0")


def _within(settings: BrokerSettings, name: str, low: int, high: int) -> None:
    value = getattr(settings, name)
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is not within {low} to {high}")
