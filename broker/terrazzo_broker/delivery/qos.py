"""What each acknowledgement does to a message of QoS 1 or 2: the states of a packet identifier, as tables. [MQTT-4.3]

Two tables, for the two directions. A row is a packet, a column the state that the identifier is in when it comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from ..codec.scan import QOS2
from ..codec.writer import PUBACK, PUBCOMP, PUBREC, PUBREL

# From the broker to a client


class Sent(IntEnum):
    """The packet due from the client for a packet identifier; the first three equal the QoS of its message."""

    FREE = 0
    PUBACK_DUE = 1
    PUBREC_DUE = 2
    PUBCOMP_DUE = 3


class SenderStep(Enum):
    """What the broker does on an acknowledgement from the client."""

    IGNORE = "nothing: the identifier isn't in use"
    DONE = "the identifier is free, and one more message may be on its way"
    RELEASE = "the message has arrived: PUBREL is sent, PUBCOMP is due"
    NOT_FOUND = "PUBREL is sent with reason 0x92"  # [MQTT-3.6.2-1]
    ERROR = "the connection ends: another packet is due"  # [MQTT-4.13.1-1]


SenderSteps = tuple[SenderStep, SenderStep, SenderStep, SenderStep]  # by ``Sent``

SENDER: Mapping[int, SenderSteps] = {
    #        FREE, PUBACK_DUE, PUBREC_DUE, PUBCOMP_DUE
    # [MQTT-4.3.2-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5]; [MQTT-4.3.2-1] [MQTT-4.3.3-1] of 3.1.1
    PUBACK: (SenderStep.IGNORE, SenderStep.DONE, SenderStep.ERROR, SenderStep.ERROR),
    PUBREC: (SenderStep.NOT_FOUND, SenderStep.ERROR, SenderStep.RELEASE, SenderStep.RELEASE),
    PUBCOMP: (SenderStep.IGNORE, SenderStep.ERROR, SenderStep.ERROR, SenderStep.DONE),
}
REFUSED: SenderSteps = (SenderStep.IGNORE, SenderStep.ERROR, SenderStep.DONE, SenderStep.DONE)
"""A PUBREC with a reason of 0x80 or above: the client doesn't take the message, and the exchange is over."""


def steps_of(kind: int, reason: int = 0) -> SenderSteps:
    """The table's row for an acknowledgement: ``kind`` is the packet's first byte."""
    return REFUSED if kind == PUBREC and reason >= 0x80 else SENDER[kind]


# From a client to the broker; only QoS 2 has a state [MQTT-4.3.2-5]


class Received(IntEnum):
    """The states of a QoS 2 publish from the client."""

    NEW = 0  # the identifier isn't in use
    STORING = 1  # it waits for its batch to be made durable, and PUBREC hasn't been sent
    TAKEN = 2  # PUBREC has been sent, PUBREL hasn't come


class ReceiverStep(Enum):
    """What the broker does on a packet about a QoS 2 publish from the client."""

    TAKE = "the message is passed on, PUBREC follows"
    NOTHING = "PUBREC follows when the message is durable"
    PUBREC = "PUBREC again, and the message isn't passed on again"
    PUBCOMP = "PUBCOMP, and the identifier is free"
    NOT_FOUND = "PUBCOMP with reason 0x92"  # [MQTT-3.7.2-1]


RECEIVER: Mapping[int, tuple[ReceiverStep, ReceiverStep, ReceiverStep]] = {
    #        NEW, STORING, TAKEN
    QOS2: (ReceiverStep.TAKE, ReceiverStep.NOTHING, ReceiverStep.PUBREC),
    PUBREL: (ReceiverStep.NOT_FOUND, ReceiverStep.PUBCOMP, ReceiverStep.PUBCOMP),
}
