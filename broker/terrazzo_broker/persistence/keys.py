"""The keys of the database.

    V                                  version of this layout
    A                                  when the broker was last known to run
    b <body, 8>                        a payload that several queue entries share
    s <session, 4> 0                   a session
    s <session, 4> i <place, 8>        packet identifier of a queue entry that was sent after it had been stored
    s <session, 4> p <identifier, 2>   place of an entry that its receiver has confirmed with PUBREC
    s <session, 4> q <place, 8>        a message that the client hasn't acknowledged, in the order of sending
    s <session, 4> r <identifier, 2>   a QoS 2 publish received from the client and not released yet
    s <session, 4> t <filter>          a subscription
    t <owner> 0 <topic>                a retained message
    t <topic>                          one of format 1 and 2, which had no owners
    w <client id>                      a will
    w <client id> 0 <number, hex>      one that is published, and that the embedding program has not stored yet

Numbers are big-endian; neither places nor session numbers are ever used twice.
"""

from __future__ import annotations

VERSION = b"V"
ALIVE = b"A"

BODY, SESSION, RETAINED, WILL = b"b", b"s", b"t", b"w"
HEAD, IDENTIFIER, CONFIRMED, QUEUED, RECEIVED, SUBSCRIPTION = b"\0", b"i", b"p", b"q", b"r", b"t"

PREFIX_BYTES = 5  # of everything that belongs to one session
PLACE_AT = PREFIX_BYTES + 1


def retained_key(owner: str, topic: bytes) -> bytes:
    """The key of a retained message; no topic has a zero byte. [MQTT-1.5.4-2]"""
    return RETAINED + owner.encode() + b"\0" + topic


def retained_owner(key: bytes) -> bytes | None:
    """The owner in the key of a retained message, UTF-8; None where it isn't kept."""
    owner, separator, _ = key[1:].rpartition(b"\0")
    return owner if separator else None


def unstored_will(client_id: str, number: str) -> str:
    """What is in place of the client id in the key of a will that is published; no client id has a zero byte."""
    return f"{client_id}\0{number}"


def will_client(name: str) -> str:
    """The client id of a will by what its key has behind the prefix."""
    return name.partition("\0")[0]


def session_prefix(session: int) -> bytes:
    """The prefix of all keys of a session."""
    return SESSION + session.to_bytes(4, "big")


def session_range(session: int) -> tuple[bytes, bytes]:
    """The key range of a session: its first possible key, and the first one beyond."""
    return session_prefix(session), SESSION + (session + 1).to_bytes(4, "big")


def body_key(number: int) -> bytes:
    """The key of a shared payload."""
    return BODY + number.to_bytes(8, "big")


def identifier_key(queued_key: bytes) -> bytes:
    """The key of the packet identifier of a queue entry, by the entry's key."""
    return queued_key[:PREFIX_BYTES] + IDENTIFIER + queued_key[PLACE_AT:]
