"""``Refusal``: what the embedding program is told of what the broker refuses, and of whom it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .causes import Cause


class Refusal(NamedTuple):
    """One refusal, or several of the same cause at once.

    Attributes:
        client_id: as the client says; empty where no CONNECT was read.
        owner: of ``Accept``, once the client has logged in; None: nobody has proven anything.
        reason: the MQTT 5 reason code that goes with it, whatever the client speaks; 0 where none does.
        detail: the topic, the filter, or what was wrong.
        protocol: the level, 3 to 5; 0 where it isn't known.
    """

    cause: Cause
    address: str
    client_id: str = ""
    owner: str | None = None
    reason: int = 0
    detail: str = ""
    protocol: int = 0
    times: int = 1


OnRefused = Callable[[Refusal], object]
