"""How many sockets fit into the descriptors that a process may have."""

from __future__ import annotations

import resource

_RESERVE = 256  # for files, listeners, pipes, and sockets that were accepted in the turn in which others are ended
_MOST_RESERVE_SHARE = 0.25  # of few descriptors


def room_for_sockets(wanted: int) -> int:
    """Raises the soft limit of descriptors as far as need be and the hard limit lets it; how many sockets fit then.

    Args:
        wanted: as many as there may be otherwise.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < wanted + _RESERVE:
        soft = wanted + _RESERVE if hard == resource.RLIM_INFINITY else min(wanted + _RESERVE, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(wanted, soft - min(_RESERVE, int(soft * _MOST_RESERVE_SHARE)))
