"""The states of a connection, the reasons for not reading from it, and what of its output is withheld."""

from __future__ import annotations

from enum import Enum, IntEnum


class ConnectionState(Enum):
    """The states of a connection, in their order."""

    NEW = "waiting for CONNECT"
    DECIDING = "the hooks decide"
    CHALLENGED = "waiting for AUTH"
    OPEN = "open"
    CLOSED = "closed"


class ReadHold:
    """Reasons for not reading from a connection, as bits; it is read when there are none.

    Plain integers: those of an ``IntFlag`` take a microsecond each time two are put together, and each connection
    is looked at twice a second.
    """

    DECIDING = 1
    INTAKE = 2  # the embedding program is behind
    RATE = 4  # the client publishes faster than it may
    STORAGE = 8  # the disk is behind
    ANSWERS = 16  # the client doesn't read what its own packets are answered with
    TURN = 32  # the others' turn: it has been read a lot at once
    SUBSCRIBER = 64  # it feeds a subscriber that is behind
    BATCH = 128  # what it has sent takes long
    OWNER = 512  # the embedding program takes nothing more of its owner's clients
    WORK = 256  # one of its packets is worked on, or waits for its turn


class Withheld(IntEnum):
    """The part of a connection's output that waits for the commit of what it acknowledges."""

    NOTHING = 0
    PACKETS = 1
    CONNACK = 2  # and all that follows it
