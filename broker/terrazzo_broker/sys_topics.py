"""The broker's statistics as topics under ``$SYS/broker/``, published as retained messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from .stats import Stats

_TOP = 10  # subscribers that most was dropped for


@cache  # it is read from a file, and what was loaded stays whatever is installed meanwhile
def broker_version() -> str:
    """The version of the installed distribution."""
    try:
        return f"terrazzo {version('terrazzo')}"
    except PackageNotFoundError:
        return "terrazzo (not installed)"


def sys_topics(stats: Stats, *, uptime_s: float, sessions: int, retained: int) -> Iterator[tuple[str, str]]:
    """Yields topic and value of each figure, named as in Mosquitto."""
    figures = {
        "version": broker_version(),
        "uptime": f"{uptime_s:.0f} seconds",
        "clients/connected": stats.clients,
        "clients/disconnected": sessions - stats.clients,
        "clients/total": sessions,
        "messages/received": stats.messages_in,
        "messages/sent": stats.messages_out,
        "messages/dropped": sum(stats.dropped.values()),
        "messages/dropped/slowest": json.dumps(dict(stats.dropped_for.top(_TOP)), ensure_ascii=False),
        "bytes/received": stats.bytes_in,
        "bytes/sent": stats.bytes_out,
        "subscriptions/count": stats.subscriptions,
        "retained messages/count": retained,
    }
    for name, value in figures.items():
        yield f"$SYS/broker/{name}", str(value)
