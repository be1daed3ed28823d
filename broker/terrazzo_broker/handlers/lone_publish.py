"""Handles a short PUBLISH that is alone in its read and goes to one client, as most reports of field terminals do.

It does what ``handle_run`` does with a run of one, in a third of the steps: the packet goes on as it came, but for its
identifier.
"""

from __future__ import annotations

from ..codec.scan import QOS0, QOS1
from ..connection import Connection
from ..delivery.routing import Route
from ..message import ApplicationMessage

LONGEST = 129  # bytes of a packet with a length of one byte
_SHORTEST = 7  # of one at QoS 1 with a topic
_PUBACK = b"\x40\x02"


def handle_lone(connection: Connection, data: bytes) -> bool:
    """Handles a read that is one publish; False, and nothing is done, where it has to be read packet by packet."""
    size = len(data)
    if size < _SHORTEST or data[1] != size - 2 or size > connection.packet_limit:
        return False
    topic_end = 4 + (data[2] << 8 | data[3])
    route: Route | None = connection.routes.get(data[2:topic_end])
    if route is None or route.lone is None:
        return False
    header, is_v5, session = data[0], connection.version == 5, route.lone
    start = topic_end + (2 if header == QOS1 else 0)  # of the properties, which there are none of
    if size < start + is_v5 or (is_v5 and data[start]):
        return False
    receiver = session.connection
    if receiver is None or receiver.version != connection.version or not receiver.encoder.is_plain:
        return False
    client, stats = connection.client, connection.core.stats
    if header == QOS0:
        stats.messages_in_qos0 += 1
        receiver.send_raw(data, 1)
    else:
        identifier = data[topic_end:start]
        if route.lone_qos == 0 or identifier == b"\0\0" or connection.waiting:
            return False
        message = ApplicationMessage(route.topic_bytes, data[start + is_v5 :], 1)
        if not receiver.send_lone(message, data, topic_end):
            return False
        stats.messages_in_qos1 += 1
        connection.write(_PUBACK + identifier)
    if client is not None:
        client.messages_in += 1
    return True
