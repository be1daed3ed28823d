"""How terminals and objects are, as rules see it: pure, the caller passes the time. Times in UTC microseconds.

What is away is so since it was last heard of, but no longer than the platform listens: before that nobody can know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from terrazzo.ports.bus import Presence

ROUTED_US = 10 * 1_000_000
"""A report so long after a terminal's last packet came by another's connection."""


class Condition(NamedTuple):
    """How a terminal or object is with regard to one kind of rules.

    Attributes:
        well_us: since when it is well; None: it is away.
        away_us: since when it counts as away; 0 where it is well.
        since_us: when it was last heard of, which is what is told; it may lie before the platform's start.
        is_heard: it is away, and gives signs of life, one of which came while the platform listens.
    """

    well_us: int | None = None
    away_us: int = 0
    since_us: int = 0
    is_heard: bool = False


def offline(known: Presence, listening_us: int) -> Condition:
    """Whether a terminal is offline; one that reports by another's connection is there as long as it reports."""
    if known.online:
        return Condition(well_us=max(known.since_us or 0, listening_us))
    seen_us, reported_us = known.last_seen_us or 0, known.last_telemetry_us or 0
    condition = _away(max(seen_us, reported_us), listening_us)
    return condition if reported_us > seen_us + ROUTED_US else condition._replace(is_heard=False)


def silent(known: Presence, listening_us: int) -> Condition:
    """Whether a terminal is silent: it is since its last report, connected or not."""
    return _away(known.last_telemetry_us or 0, listening_us)


def any_of(parts: Iterable[Condition]) -> Condition:
    """An object's condition, of those of its terminals: it is away when all of them are, since the last one is."""
    found = [*parts]
    well = [each.well_us for each in found if each.well_us is not None]
    if well:
        return Condition(well_us=min(well))
    return Condition(
        away_us=max(each.away_us for each in found),
        since_us=max(each.since_us for each in found),
        is_heard=any(each.is_heard for each in found),
    )


def _away(heard_us: int, listening_us: int) -> Condition:
    return Condition(
        away_us=max(heard_us, listening_us), since_us=heard_us or listening_us, is_heard=heard_us >= listening_us
    )


CONDITIONS: Mapping[str, Callable[[Presence, int], Condition]] = {
    "offline": offline,
    "silent": silent,
    "object_offline": offline,
    "object_silent": silent,
}
"""The kinds of rules that count minutes. The others are about refusals, which are told when they happen."""
