"""What a terminal may publish and subscribe to (docs/terminals.md): deny by default.

The topic of a terminal's reports is ``g/<uid>/<channel>`` with deeper levels allowed; a terminal may leave its own uid
out. Commands reach it on ``p2p/<uid>``.
"""

from __future__ import annotations

from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import ReportTopic
from terrazzo.domain.terminal import Terminal
from terrazzo.domain.topic_permission import _CHANNEL_SET, NOTHING, parse_topic_permission

MAX_TOPIC = 256  # characters of a full topic: it names a series in the store


TERMINAL_TOPICS = ("g", "p2p")
"""The first levels of topics that name a terminal in their second: its reports, its commands."""


def terminal_named(registry: Registry, topic: str) -> Terminal | None:
    """The terminal that a topic names: whose report, or whose command it is."""
    kind, _, rest = topic.partition("/")
    return registry.terminal(rest.partition("/")[0]) if kind in TERMINAL_TOPICS else None


def covers(granted: str, requested: str) -> bool:
    """Whether every topic that ``requested`` matches is matched by ``granted``."""
    if requested == "#":
        requested = "+/#"  # the same topics, and the shape that the walk below compares
    grants, asks = granted.split("/"), requested.split("/")
    if grants[0] in ("#", "+") and asks[0].startswith("$"):
        return False  # a leading wildcard doesn't match topics that start with $ [MQTT-4.7.2-1]
    for index, grant in enumerate(grants):
        if grant == "#":
            return True
        if index == len(asks):
            return False
        ask = asks[index]
        if ask == "#" or (grant != "+" and grant != ask):
            return False
    return len(asks) == len(grants)


def is_sys_filter(topic_filter: str) -> bool:
    """Whether a filter, also of a shared subscription, matches topics under ``$SYS``, which no wildcard does."""
    if topic_filter.startswith("$share/"):
        topic_filter = [*topic_filter.split("/", 2), ""][2]
    return topic_filter.partition("/")[0] == "$SYS"


class TerminalAcl:
    """The permissions of one terminal's record, read once at login."""

    __slots__ = ("_permission", "_registry", "_terminal")

    def __init__(self, terminal: Terminal, registry: Registry) -> None:
        self._terminal = terminal
        self._registry = registry
        try:
            self._permission = parse_topic_permission(terminal.topic)
        except ValueError:
            self._permission = NOTHING  # what can't be read allows nothing

    def may_publish(self, topic: str) -> ReportTopic | None:
        """The report topic that a publish topic stands for; None when the terminal may not publish there."""
        if self._terminal.access == "sub":
            return None
        report = self._read_topic(topic)
        if report is None or len(report.topic) > MAX_TOPIC:
            return None
        if report.channel not in self._permission.channels or not self._speaks_for(report.owner):
            return None
        return report

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether the terminal may have this filter; a shared subscription is judged by the filter within."""
        if self._terminal.access == "pub":
            return False
        if topic_filter.startswith("$share/"):
            topic_filter = [*topic_filter.split("/", 2), ""][2]
        uid, permission = self._terminal.uid, self._permission
        if topic_filter == f"p2p/{uid}":
            return True
        if permission.own_reports and covers(f"g/{uid}/#", topic_filter):
            return True
        return any(covers(granted, topic_filter) for granted in permission.filters)

    def _read_topic(self, topic: str) -> ReportTopic | None:
        """Reads a topic: by its own uid first, then by a channel's letter, then by another's uid: nobody else's name
        takes a terminal's topics away."""
        levels = topic.split("/")
        if len(levels) < 2 or levels[0] != "g":
            return None
        second, channel = levels[1], levels[2] if len(levels) > 2 and levels[2] in _CHANNEL_SET else ""
        if channel and second == self._terminal.uid:
            return ReportTopic(topic, self._terminal, channel)
        if second in _CHANNEL_SET:
            return ReportTopic(f"g/{self._terminal.uid}/{topic[2:]}", self._terminal, second)
        owner = self._registry.terminal(second) if channel else None
        return None if owner is None else ReportTopic(topic, owner, channel)

    def _speaks_for(self, owner: Terminal) -> bool:
        me = self._terminal
        if owner is me:
            return True
        return (
            me.is_route
            and owner.is_admitted
            and owner.company_id == me.company_id
            and self._registry.share_object(me.uid, owner.uid)
        )
