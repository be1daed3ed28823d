"""The port to a tracer: spans of a message, a command or a request, for whoever collects them (OpenTelemetry).

Nothing here is asked where ``tracing.endpoint`` is empty: parts have ``Tracing`` or None. A trace is named by a
``traceparent`` (W3C Trace Context): ``00-<32 hexadecimal digits>-<16>-<flags>``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

HEADER = "traceparent"
"""The name of the HTTP header and of the MQTT 5 user property."""

_LENGTHS = [2, 32, 16, 2]  # of version, trace, parent and flags
_DIGITS = frozenset("0123456789abcdef")

Attributes = Mapping[str, str | int]


class Span(Protocol):
    """Something that takes time. What is sampled by nobody is a span as well, which is sent nowhere."""

    @property
    def traceparent(self) -> str:
        """What others name as their parent."""
        ...

    def child(self, name: str, start_us: int, end_us: int) -> None:
        """Adds a part of it that is over; UTC microseconds."""
        ...

    def end(self, time_us: int, *, error: str = "", attributes: Attributes | None = None) -> None:
        """Ends it; ``error``: why it failed."""
        ...


class Tracer(Protocol):
    """Makes spans; everything is called on the platform's event loop."""

    def begin(self, name: str, start_us: int, *, kind: str, parent: str, attributes: Attributes) -> Span:
        """A span that is sampled, unless its parent says that it isn't.

        Args:
            kind: ``server``, ``producer`` or ``consumer``.
            parent: a ``traceparent`` that ``known_parent`` has let pass; empty: a trace of its own.
        """
        ...


current: ContextVar[Span | None] = ContextVar("current span", default=None)
"""The span of the request that the running task answers."""


def known_parent(text: str) -> str:
    """A ``traceparent`` from outside; empty where it is none."""
    parts = text.split("-") if len(text) == sum(_LENGTHS) + 3 else []
    if [len(part) for part in parts] != _LENGTHS or not _DIGITS.issuperset("".join(parts)):
        return ""
    version, trace, parent, _ = parts
    return "" if version == "ff" or not trace.strip("0") or not parent.strip("0") else text


class Tracing:
    """A tracer, and how much is traced of what names no parent.

    Args:
        sample: the share, 0 to 1, of messages, commands and requests.
    """

    def __init__(self, tracer: Tracer, sample: float) -> None:
        self._tracer = tracer
        self._sample = sample

    def begin(self, name: str, start_us: int, *, kind: str, parent: str = "", attributes: Attributes) -> Span | None:
        """A span; None for what is not sampled and names no parent."""
        if not (parent := known_parent(parent)) and random.random() >= self._sample:  # nosec B311 - chooses no secret
            return None
        return self._tracer.begin(name, start_us, kind=kind, parent=parent, attributes=attributes)

    def begin_chosen(self, name: str, start_us: int, *, kind: str, parent: str, attributes: Attributes) -> Span:
        """The same, where the caller has chosen it."""
        return self._tracer.begin(name, start_us, kind=kind, parent=known_parent(parent), attributes=attributes)

    def skipped(self) -> int:
        """How many messages pass until the next one is traced; drawn as if each were asked for."""
        if self._sample <= 0.0:
            return 1 << 62
        if self._sample >= 1.0:
            return 0
        return int(random.expovariate(self._sample))  # nosec B311 - chooses no secret
