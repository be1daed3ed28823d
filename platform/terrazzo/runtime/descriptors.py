"""Descriptors of files and sockets: as many as the system allows, and shared out so that no part runs out of them.

A quarter (at most 2,048) stays for the store, the database, files and sockets that are being accepted. The rest is for
connections, half of it for MQTT and half for the APIs, each with some to spare for those who are refused.
"""

from __future__ import annotations

import logging
import resource

import msgspec

_MOST_RESERVED = 2_048
_SPARED_PART = 4  # one more for each so many connections is for who is refused, at most:
MOST_SPARED = 1_024
_LEAST = 16  # connections, however few descriptors there are
_UNLIMITED = 1 << 30

_log = logging.getLogger(__name__)


class DescriptorPlan(msgspec.Struct, frozen=True):
    """What so many descriptors allow.

    Attributes:
        total: descriptors of this process.
        wanted: ``limits.connections``.
        connections: of MQTT, and as many of the APIs.
    """

    total: int
    wanted: int
    connections: int

    @property
    def is_enough(self) -> bool:
        """Whether as many connections are possible as are wanted."""
        return self.connections >= self.wanted

    @property
    def needed(self) -> int:
        """How many descriptors it takes for what is wanted."""
        return 2 * (self.wanted + spare_of(self.wanted) + 1) + _MOST_RESERVED

    def __str__(self) -> str:
        """For a person."""
        return (
            f"{self.total} descriptors (ulimit -n) are enough for {self.connections} connections of MQTT and as many "
            f"of the APIs, not for limits.connections = {self.wanted}"
        )


def spare_of(connections: int) -> int:
    """How many sockets beyond its connections a port may have open, of peers who are being refused."""
    return min(MOST_SPARED, connections // _SPARED_PART)


def plan_descriptors(total: int, wanted: int) -> DescriptorPlan:
    """Shares out ``total`` descriptors, of which ``wanted`` connections of each kind are asked for."""
    half = (total - min(_MOST_RESERVED, total // 4)) // 2
    possible = max(half - MOST_SPARED, half * _SPARED_PART // (_SPARED_PART + 1), _LEAST)
    return DescriptorPlan(total, wanted, min(wanted, possible))


def hard_limit() -> int:
    """How many descriptors this process may have at most."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def raise_soft_limit() -> int:
    """Takes as many descriptors as the system allows; returns how many there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # macOS has an "unlimited" that it doesn't grant
            _log.warning("descriptors: the limit stays at %d (ulimit -n): %s", soft, error)
            return soft
        _log.info("descriptors: %d instead of %d (ulimit -n)", hard, soft)
    return hard_limit()


def prepare_descriptors(wanted: int) -> DescriptorPlan:
    """Raises the limit, and says what is possible with it where it isn't enough."""
    plan = plan_descriptors(raise_soft_limit(), wanted)
    if not plan.is_enough:
        _log.warning("%s: raise the hard limit to %d, or lower limits.connections", plan, plan.needed)
    return plan
