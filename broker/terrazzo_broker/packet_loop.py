"""The packet loop: splits the bytes of one read into packets and has them handled. The hot path.

Publishes come in runs, consecutive packets to the same receivers that need nothing special; a run is taken in one
loop and goes to its receivers at once. So do acknowledgements. Every other packet is read and handled one by one.
"""

from __future__ import annotations

from mqtt5 import DisconnectReasonCode

from .codec.errors import PacketError, protocol_error
from .codec.reader import CONNECT, PUBLISH
from .codec.scan import ACK_BYTES, QOS0, QOS1, QOS2, scan_acks
from .codec.wire import parse_frame
from .connection import Connection
from .connection_state import ConnectionState
from .delivery.back_pressure import LARGE_READ_BYTES
from .handlers import ACKS, handle_packet
from .handlers.acks import handle_acks
from .handlers.publish import handle_run


def handle_packets(connection: Connection, data: bytes) -> None:
    """Handles the packets in ``data``; the start of one that hasn't all arrived stays with the connection.

    Raises:
        PacketError: what the peer did wrong; the packets before it have been handled.
    """
    core = connection.core
    now_us = core.now_us()
    messages_before, seen_us = 0, now_us
    if connection.client is not None:
        messages_before, seen_us = connection.client.messages_in, connection.client.last_packet_us
        connection.client.last_packet_us = now_us
    back_pressure = core.back_pressure
    if back_pressure.fed:  # by something else than this read
        back_pressure.fed.clear()
    tree, limit = core.tree, core.settings.packet_bytes
    position, size, needed = 0, len(data), 0
    if connection.state is ConnectionState.NEW and data[0] >> 4 != CONNECT:
        raise protocol_error("the first packet is not CONNECT")  # [MQTT-3.1.0-1] of both
    while position < size:
        if connection.epoch != tree.epoch:
            connection.routes.clear()
            connection.epoch = tree.epoch
        frame = parse_frame(data, position)
        if frame is None:
            break
        start, end = frame
        if end - position > limit:  # [MQTT-3.2.2-15]
            raise PacketError(DisconnectReasonCode.PACKET_TOO_LARGE, f"a packet of {end - position} bytes")
        if end > size:
            needed = end - position
            break
        header = data[position]
        if header in (QOS0, QOS1, QOS2):
            run_end = handle_run(connection, data, position, start, now_us)
            if run_end:
                position = run_end
                continue
        elif connection.acks and header >> 4 != PUBLISH:
            connection.acknowledge_so_far()  # answers leave in the order of what they answer
        if header in ACKS and end - start == 2 and connection.session is not None:
            position = _handle_plain_acks(connection, data, position)
            continue
        position = end
        handle_packet(connection, header, data, start, end, now_us)
        if connection.state in (ConnectionState.DECIDING, ConnectionState.CLOSED):
            break  # [MQTT-3.1.4-6]; [MQTT-3.1.4-5] of 3.1.1
    if back_pressure.fed:
        back_pressure.settle(connection, size)
    elif size >= LARGE_READ_BYTES:
        back_pressure.note_large(connection)
    if connection.state is ConnectionState.OPEN:
        connection.finish_read()
        if core.settings.publish_per_second and connection.client is not None:
            connection.limit_rate(connection.client.messages_in - messages_before, (now_us - seen_us) / 1e6)
    if position:  # part of a packet shows no life [MQTT-3.1.2-22]
        connection.seen_s = core.clock()
    connection.keep(data[position:], needed)


def _handle_plain_acks(connection: Connection, data: bytes, position: int) -> int:
    """Handles the acknowledgements of one kind without a reason that follow each other; where they end."""
    identifiers = scan_acks(data, position)
    if 0 in identifiers:
        raise protocol_error("packet identifier 0")  # [MQTT-2.2.1-3]; [MQTT-2.3.1-1] of 3.1.1
    handle_acks(connection, data[position], identifiers)
    return position + len(identifiers) * ACK_BYTES
