"""What the APIs need of the node that they are on, where there are several."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from terrazzo.api.kernel.replica.position import ReadPosition


class LeaderQuestion(msgspec.Struct, frozen=True, array_like=True):
    """A read that the leader answers for a replica, with the token of whoever asked there.

    ``method`` is empty for an action of the gateway, whose name is in ``name``, and whose request is ``body``; else
    ``name`` is the path as documented, and ``fields`` are those of its query.
    """

    name: str
    body: bytes
    address: str
    token: str
    method: str = ""
    fields: Sequence[tuple[str, str]] = ()


class LeaderAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What it answers; the statuses are HTTP's."""

    body: bytes
    status: int = 200
    retry_after_s: float | None = None


class ReplicaNode(Protocol):
    """A node that stands by and answers reads."""

    def freshness(self) -> str:
        """How far behind it may be, as the header ``Terrazzo-Replica`` says it."""

    def leader(self) -> str:
        """Who leads, with the address where its HTTP port is reached; empty: nobody."""

    async def wait_for(self, position: ReadPosition) -> None:
        """Returns when this node has what is asked for.

        Raises:
            Unavailable: it hasn't in time.
        """

    async def ask_leader(self, question: LeaderQuestion) -> LeaderAnswer:
        """The leader's answer to a read.

        Raises:
            Unavailable: nobody leads, or it doesn't answer.
        """


class LeadingNode(Protocol):
    """The node that leads others, which answer reads."""

    async def position(self) -> ReadPosition:
        """How far it is, all that has been answered to anybody included.

        Raises:
            Unavailable: the database doesn't answer.
        """


class ClusterPart(NamedTuple):
    """What this node is among several.

    Attributes:
        replica: it stands by and answers reads.
        leading: it leads others that answer reads.
        read_checks: of ``/readyz/reads``, by part; None: those of ``/readyz``.
    """

    replica: ReplicaNode | None = None
    leading: LeadingNode | None = None
    read_checks: Mapping[str, Callable[[], Awaitable[None]]] | None = None


ALONE = ClusterPart()
"""One process, or a node of which no other answers reads."""
