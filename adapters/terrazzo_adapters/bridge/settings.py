"""``BridgeSettings``: the remote broker of a bridge, and the topics that cross."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from paho.mqtt.client import topic_matches_sub


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRule:
    """Topics that cross in one direction: ``filter`` behind the local prefix here, behind the remote prefix there."""

    filter: str
    qos: int = 1
    local_prefix: str = ""
    remote_prefix: str = ""
    group: str = ""  # in: of a shared subscription, of which each connection gets a part

    @property
    def local_filter(self) -> str:
        """The MQTT topic filter on the local broker."""
        return self.local_prefix + self.filter

    @property
    def remote_filter(self) -> str:
        """The MQTT topic filter on the remote broker."""
        return self.remote_prefix + self.filter

    @property
    def subscription(self) -> str:
        """What is subscribed at the remote broker."""
        return f"$share/{self.group}/{self.remote_filter}" if self.group else self.remote_filter

    def to_remote(self, topic: str) -> str | None:
        """The remote name of a local topic, None if the rule doesn't cover it."""
        if not topic_matches_sub(self.local_filter, topic):
            return None
        return self.remote_prefix + topic[len(self.local_prefix) :] or None

    def to_local(self, topic: str) -> str | None:
        """The local name of a remote topic, None if the rule doesn't cover it."""
        if not topic_matches_sub(self.remote_filter, topic):
            return None
        return self.local_prefix + topic[len(self.remote_prefix) :] or None


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSettings:
    """The remote broker of one bridge, the login, the topics that cross, and the queue's limits."""

    name: str
    host: str
    port: int
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id: str
    company_id: int = 0  # whose messages cross, 0: those of all
    protocol: Literal["3.1.1", "5.0"] = "5.0"
    tls_ca: str = ""  # PEM; empty: the system's authorities
    tls_cert: str = ""
    tls_key: str = ""
    keep_alive_s: int = 60
    session_expiry_s: int = 604_800  # MQTT 5: how long the remote broker keeps the session
    retry_s: float = 30.0  # the longest pause between attempts to connect
    outgoing: tuple[TopicRule, ...] = ()  # the first that matches counts
    incoming: tuple[TopicRule, ...] = ()
    packet_bytes: int = 1 << 20  # the largest packet that is received
    queue_messages: int = 100_000
    queue_bytes: int = 256 << 20
    overflow: Literal["drop_oldest", "drop_newest"] = "drop_oldest"

    @property
    def is_v5(self) -> bool:
        """Whether it speaks MQTT 5.0."""
        return self.protocol == "5.0"

    @property
    def has_session(self) -> bool:
        """Whether the remote broker is asked to keep the session when the connection ends."""
        return bool(self.incoming)

    @property
    def local_filters(self) -> dict[str, int]:
        """The filters of local topics to send, each with its QoS; the highest where two rules share a filter."""
        return _highest((rule.local_filter, rule.qos) for rule in self.outgoing)

    @property
    def remote_filters(self) -> dict[str, int]:
        """The filters of remote topics to receive, each with its QoS; the highest where two rules share a filter."""
        return _highest((rule.subscription, rule.qos) for rule in self.incoming)


def _highest(filters: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pattern, qos in filters:
        found[pattern] = max(qos, found.get(pattern, 0))
    return found
