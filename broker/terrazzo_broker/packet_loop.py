"""The packet loop: splits the bytes of one read into packets and has them handled. The hot path.

Publishes come in runs, consecutive packets to the same receivers that need nothing special; a run is taken in one
loop and goes to its receivers at once. So do acknowledgements. Every other packet is read and handled one by one.
"""

from __future__ import annotations

from mqtt5 import DisconnectReasonCode

from .codec.errors import PacketError, protocol_error
from .codec.reader import CONNECT, PUBLISH, find_level
from .codec.scan import ACK_BYTES, QOS0, QOS1, RUNS, scan_acks
from .codec.wire import Cursor, parse_frame
from .connection import Connection
from .connection_state import ConnectionState
from .delivery.back_pressure import LARGE_READ_BYTES
from .delivery.empty import NOTHING
from .handlers import ACKS, handle_packet
from .handlers.acks import handle_acks
from .handlers.lone_publish import LONGEST, handle_lone
from .handlers.publish import handle_run
from .limited_log import limited_logger

log = limited_logger("terrazzo_broker.listeners")

_PROTOCOL_BYTES = 7  # of a CONNECT of 3.1.1 and 5.0, up to the protocol level
_NEW, _OPEN = ConnectionState.NEW, ConnectionState.OPEN  # looked up once, not with each read
_LONE = (QOS0, QOS1)
_LEAVES_THE_REST = (ConnectionState.DECIDING, ConnectionState.CLOSED)
_PROXY_HEADERS = (b"PROXY ", b"\r\n\r\n\0")  # what versions 1 and 2 of the PROXY protocol start with


def handle_packets(connection: Connection, data: bytes) -> None:
    """Handles the packets in ``data``; the start of one that hasn't all arrived stays with the connection.

    Raises:
        PacketError: what the peer did wrong; the packets before it have been handled.
    """
    core, client, subscriptions = connection.core, connection.client, connection.subscriptions
    now_us, turns, back_pressure = core.now_us(), core.turns, core.back_pressure
    position, size, needed, is_late = 0, len(data), 0, False
    if client is not None:
        messages_before, seen_us, client.last_packet_us = client.messages_in, client.last_packet_us, now_us
    else:
        messages_before, seen_us = 0, now_us
    if back_pressure.fed:
        back_pressure.fed.clear()  # by something else than this read
    if connection.state is _NEW and data[0] >> 4 != CONNECT:
        raise _no_connect(connection, data)
    if 0 < size <= LONGEST and data[0] in _LONE and _is_lone(connection, data):
        if back_pressure.fed:
            _press_back(connection, size)
        connection.seen_s = core.clock()
        return
    while position < size:
        if connection.epoch != subscriptions.epoch:
            connection.routes = NOTHING
            connection.epoch = subscriptions.epoch
        header = data[position]
        if header in RUNS:
            run_end = handle_run(connection, data, position, now_us)
            if run_end:
                position = run_end
                if connection.steps is not None:
                    break
                if turns.is_inside and (is_late := turns.is_over):
                    break
                continue
        elif connection.acks and header >> 4 != PUBLISH:
            connection.acknowledge_so_far()  # answers leave in the order of what they answer
        if header in ACKS and _is_plain_ack(connection, data, position):
            position = _handle_plain_acks(connection, data, position)
            continue
        needed, start, end = _frame_of(connection, data, position)
        if not start:
            break
        if is_late := turns.is_over_for(connection.owner):
            break
        position = end
        handle_packet(connection, header, data, start, end, now_us)
        if connection.steps is not None or connection.state in _LEAVES_THE_REST:
            break  # [MQTT-3.1.4-6]; [MQTT-3.1.4-5] of 3.1.1
    if back_pressure.fed or size >= LARGE_READ_BYTES:
        _press_back(connection, size)
    if connection.state is _OPEN:
        connection.finish_read()
        if core.publish_pace.is_limited and connection.client is not None:
            connection.limit_rate(connection.client.messages_in - messages_before, (now_us - seen_us) / 1e6)
    if position == size and connection.steps is None:
        connection.seen_s = core.clock()
    else:
        connection.leave(data[position:], needed, is_late=is_late, shows_life=position > 0)


def _is_lone(connection: Connection, data: bytes) -> bool:
    """Whether the read was one publish that goes to one client, which is handled by now."""
    is_stale = connection.epoch != connection.subscriptions.epoch or connection.core.publish_pace.is_limited
    return not is_stale and handle_lone(connection, data)


def _press_back(connection: Connection, size: int) -> None:
    back_pressure = connection.core.back_pressure
    if back_pressure.fed:
        back_pressure.settle(connection, size)
    else:
        back_pressure.note_large(connection)


def _no_connect(connection: Connection, data: bytes) -> PacketError:
    """What is wrong with a connection that doesn't start with a CONNECT. [MQTT-3.1.0-1] of both"""
    if data.startswith(_PROXY_HEADERS):
        connection.core.stats.proxy_headers_refused += 1
        log.warning("%s: a PROXY protocol header from a peer that is no trusted proxy", connection)
        return protocol_error("a PROXY protocol header from a peer that is no trusted proxy")
    return protocol_error("the first packet is not CONNECT")


def _refuse_size(connection: Connection, data: bytes, position: int, frame: tuple[int, int]) -> int:
    """Refuses a packet for its announced size; of a CONNECT how many bytes have to be there before that can be told.

    Raises:
        PacketError: the packet is too large.
    """
    start, end = frame
    if connection.state is _NEW:
        if len(data) < start + _PROTOCOL_BYTES:
            return start + _PROTOCOL_BYTES - position
        found = find_level(Cursor(data, start))
        connection.speak(found.level if found is not None else 0)
    raise PacketError(DisconnectReasonCode.PACKET_TOO_LARGE, f"a packet of {end - position} bytes")


def _frame_of(connection: Connection, data: bytes, position: int) -> tuple[int, int, int]:
    """How many bytes of a packet have to be there, and where its body starts and ends; the start is 0 where it isn't
    all there."""
    frame = parse_frame(data, position)
    if frame is None:
        return 0, 0, 0
    start, end = frame
    if end - position > connection.packet_limit:  # [MQTT-3.2.2-15]
        return _refuse_size(connection, data, position, frame), 0, 0
    return (0, start, end) if end <= len(data) else (end - position, 0, 0)


def _is_plain_ack(connection: Connection, data: bytes, position: int) -> bool:
    """Whether an acknowledgement is all there, without a reason, and from a client that has logged in."""
    return len(data) - position >= ACK_BYTES and data[position + 1] == 2 and connection.session is not None


def _handle_plain_acks(connection: Connection, data: bytes, position: int) -> int:
    """Handles the acknowledgements of one kind without a reason that follow each other; where they end."""
    identifiers = scan_acks(data, position)
    if 0 in identifiers:
        raise protocol_error("packet identifier 0")  # [MQTT-2.2.1-3]; [MQTT-2.3.1-1] of 3.1.1
    handle_acks(connection, data[position], identifiers)
    return position + len(identifiers) * ACK_BYTES
