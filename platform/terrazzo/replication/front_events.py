"""What a front tells the leader beside reports, in their order: who is connected, and what became of messages."""

from __future__ import annotations

import msgspec


class RollBegins(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """The front names all terminals that are connected, from here on to ``RollEnds``."""


class Connected(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A terminal is connected; in a roll, is still so. Times in UTC microseconds."""

    uid: str
    session: int  # tells connections of one uid apart
    connected_us: int
    address: str
    port: int
    protocol: int
    listener: str
    username: str
    keep_alive_s: int
    is_ready: bool = False  # it has subscribed to its commands
    claim: int = 0  # revision of the record by which its client id is the front's; -1: not any more; 0: not said


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A connected terminal has subscribed to its commands."""

    uid: str


class Disconnected(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A connection has ended."""

    uid: str
    session: int
    reason: str
    last_packet_us: int
    messages_in: int


class Fate(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """What became of a message to a terminal: ``delivered``, ``refused`` or ``lost``."""

    uid: str
    correlation: bytes
    fate: str


class RollEnds(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Who wasn't named since ``RollBegins`` is not connected."""


FrontEvent = RollBegins | Connected | Ready | Disconnected | Fate | RollEnds


class SendRequest(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """The leader asks the front that holds a terminal to send it a message on ``p2p/<uid>``."""

    epoch: int  # of the leader's lease
    uid: str
    payload: bytes
    correlation: bytes


class EndRequest(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Another node takes a client id over: its connection here is to end with 0x8E."""

    uid: str


class DrainRequest(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """An operator has a front let no terminal in any more, and send those away that are there."""


FrontRequest = SendRequest | EndRequest | DrainRequest


class FrontAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Whether it is done. Of a ``SendRequest``: written to the terminal's socket; if not, nobody is there, or an older
    leader has asked. Of an ``EndRequest``: no connection is there any more. Of a ``DrainRequest``: the front is empty;
    ``clients`` are still connected.
    """

    is_done: bool
    clients: int = 0


class HandOver(msgspec.Struct, frozen=True, array_like=True):
    """An operator has the leader end in order, and ``successor`` take its lease at once."""

    successor: str


class HandOverAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Whether it is begun."""

    is_begun: bool


def leader_calls(node: str) -> str:
    """Where a node is asked; no front's name has a full stop."""
    return f"node.{node}"


def holder_calls(node: str) -> str:
    """Where the holder of a client id is asked to end its connection: a front by its name, a leader at a place of its
    own, as what serves its terminals begins later than what ``leader_calls`` asks."""
    leader = node.removeprefix(leader_calls(""))
    return node if leader == node else f"holder.{leader}"


def leader_reads(node: str) -> str:
    """Where a node that leads is asked for what it has in memory."""
    return f"reads.{node}"
