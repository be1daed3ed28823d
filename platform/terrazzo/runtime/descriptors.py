"""Descriptors of files and sockets: as many as the system allows, and shared out so that no part runs out of them.

A quarter (at most 2,048) stays for the store, the database, files and sockets that are being accepted. The rest is for
connections of MQTT and of the APIs, as ``limits.connections`` and ``limits.api_connections`` say in proportion, each
with some to spare for those who are refused.
"""

from __future__ import annotations

import logging
import math
import resource

import msgspec

from terrazzo.config.limits import LimitsSection

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
        wanted: ``limits.connections``, and those of the APIs.
        connections: of MQTT.
        of_apis: of HTTP, WebSocket and TCP together.
    """

    total: int
    wanted: tuple[int, int]
    connections: int
    of_apis: int

    @property
    def is_enough(self) -> bool:
        """Whether as many connections are possible as are wanted."""
        return (self.connections, self.of_apis) == self.wanted

    @property
    def needed(self) -> int:
        """How many descriptors it takes for what is wanted."""
        every = sum(self.wanted)
        parts = [(wanted + spare_of(wanted) + 1, wanted) for wanted in self.wanted]
        return max(math.ceil(part * every / wanted) for part, wanted in parts) + _MOST_RESERVED

    @property
    def limits(self) -> str:
        """The configuration's keys that say what is wanted."""
        return "limits.connections" if len({*self.wanted}) == 1 else "limits.connections or limits.api_connections"

    def __str__(self) -> str:
        """For a person."""
        of_apis = "as many" if self.of_apis == self.connections else f"{self.of_apis}"
        wanted = f"limits.connections = {self.wanted[0]}"
        if len({*self.wanted}) > 1:
            wanted += f" and limits.api_connections = {self.wanted[1]}"
        return (
            f"{self.total} descriptors (ulimit -n) are enough for {self.connections} connections of MQTT and {of_apis} "
            f"of the APIs, not for {wanted}"
        )


def spare_of(connections: int) -> int:
    """How many sockets beyond its connections a port may have open, of peers who are being refused."""
    return min(MOST_SPARED, connections // _SPARED_PART)


def plan_descriptors(total: int, wanted: int, of_apis: int) -> DescriptorPlan:
    """Shares out ``total`` descriptors in the proportion in which connections of both kinds are asked for."""
    rest = total - min(_MOST_RESERVED, total // 4)
    share = rest * wanted // (wanted + of_apis)
    return DescriptorPlan(total, (wanted, of_apis), _possible(share, wanted), _possible(rest - share, of_apis))


def plan_of(total: int, limits: LimitsSection) -> DescriptorPlan:
    """The plan of a configuration."""
    return plan_descriptors(total, limits.connections, limits.connections_of_apis)


def _possible(share: int, wanted: int) -> int:
    """How many of the wanted connections so many descriptors are enough for, with some to spare."""
    return min(wanted, max(share - MOST_SPARED, share * _SPARED_PART // (_SPARED_PART + 1), _LEAST))


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


def prepare_descriptors(limits: LimitsSection) -> DescriptorPlan:
    """Raises the limit, and says what is possible with it where it isn't enough."""
    plan = plan_of(raise_soft_limit(), limits)
    if not plan.is_enough:
        _log.warning("%s: raise the hard limit to %d, or lower %s", plan, plan.needed, plan.limits)
    return plan
