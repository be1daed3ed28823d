"""The counters of the broker."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

MOST_RANKED = 100


class Ranking:
    """Counts by name, of at most ``MOST_RANKED`` names: who comes anew takes the place and the count of the least.

    So a count is never too low, and too high by that of the least at most (the "space-saving" algorithm).
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, name: str, count: int) -> None:
        """Counts for a name."""
        counts = self._counts
        if name not in counts and len(counts) >= MOST_RANKED:
            least = min(counts, key=counts.__getitem__)
            count += counts.pop(least)
        counts[name] = counts.get(name, 0) + count

    def top(self, most: int) -> list[tuple[str, int]]:
        """The highest counts, falling."""
        return sorted(self._counts.items(), key=lambda each: -each[1])[:most]


@dataclass(slots=True)
class Stats:
    """Counters since the start, and present numbers where marked "now"; read for ``$SYS`` and for metrics."""

    connections: int = 0  # open now, before and after CONNECT
    clients: int = 0  # open now, after CONNACK
    accepted: int = 0  # sockets accepted
    connects: int = 0  # CONNECTs accepted
    connects_refused: int = 0
    takeovers: int = 0
    messages_in_qos0: int = 0
    messages_in_qos1: int = 0
    messages_in_qos2: int = 0
    messages_out: int = 0
    messages_taken: int = 0  # handed to Hooks.take
    publishes_refused: int = 0  # by authorization
    subscribes_refused: int = 0
    subscriptions: int = 0  # now
    bytes_in: int = 0
    bytes_out: int = 0
    protocol_errors: int = 0
    keepalive_timeouts: int = 0
    connect_timeouts: int = 0  # sockets that took too long to log in
    limited_connections: int = 0  # refused: as many clients as there may be
    limited_connect_rate: int = 0  # refused: CONNECTs whose turn would not come in time
    limited_owner_queues: int = 0  # messages that found the queues of an owner full
    limited_subscriptions: int = 0  # refused: as many as an owner's clients may have
    ended_unread: int = 0  # connections whose peers didn't read, while memory was short
    limited_half_open: int = 0  # refused: too many sockets, of one address or of all, that haven't logged in
    half_open_ended: int = 0  # that hadn't logged in, and made room for others
    connects_delayed: int = 0  # CONNECTs that waited for their turn
    handshakes_failed: int = 0  # TLS
    proxy_headers_refused: int = 0
    upgrades_refused: int = 0  # HTTP requests that don't lead to MQTT over WebSocket
    wills_sent: int = 0
    retained_messages: int = 0  # now, without the broker's own; up to date at each sweep
    retained_bytes: int = 0  # of them
    retained_memory_bytes: int = 0  # that are in memory
    retained_ended: int = 0  # retained messages removed with ``Broker.end_retained``
    storage_commits: int = 0
    storage_failures: int = 0  # commits that the disk refused
    storage_refusals: int = 0  # publishes and subscriptions refused meanwhile
    work_deferred: int = 0  # pieces of work over what clients sent that were left for the loop's next turn
    rate_limited: int = 0  # times a client was read more slowly
    publishers_slowed: int = 0  # times a client wasn't read for a while, as a subscriber that it feeds was behind
    hook_failures: int = 0  # exceptions from the embedding program's hooks
    task_failures: int = 0  # long-lived tasks that failed and were started again
    internal_errors: int = 0  # exceptions of the broker's own; each ended one connection at most
    dropped: dict[str, int] = field(default_factory=dict)  # messages, by reason
    dropped_for: Ranking = field(default_factory=Ranking)  # messages, by the slow subscriber that they were for

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts messages that did not reach a receiver."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count

    @property
    def messages_in(self) -> int:
        """PUBLISH packets received at any QoS."""
        return self.messages_in_qos0 + self.messages_in_qos1 + self.messages_in_qos2

    def counters(self) -> dict[str, int]:
        """All plain counters by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.type == "int"}
