"""From the bytes of one read to handled packets: the hot path.

Publishes come in runs, consecutive packets to the same receivers that need nothing special; a run is taken in one
loop and goes to its receivers at once. So do acknowledgements. Every other packet is read and handled one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqtt5 import DisconnectReasonCode

from .codec.errors import PacketError, protocol_error
from .codec.reader import CONNECT, PUBLISH
from .codec.wire import parse_frame
from .codec.writer import PUBACK, PUBCOMP, PUBREC, PUBREL
from .handlers import handle_packet
from .handlers.puback import take_done
from .handlers.pubrec import take_pubrecs
from .handlers.pubrel import take_pubrels
from .hooks import Inbound
from .message import Message
from .routing import Route
from .runs import ACK_BYTES, QOS0, QOS1, QOS2, Run, scan_acks, scan_run
from .state import State

if TYPE_CHECKING:
    from .connection import Connection

_TAKEN_TOGETHER = (PUBACK, PUBREC, PUBREL, PUBCOMP)
_PUBACK = b"\x40\x02"
_NO_SUBSCRIBERS, _QUOTA_EXCEEDED = b"\x10", b"\x97"


def feed(connection: Connection, data: bytes) -> None:
    """Handles the packets in ``data``; the start of one that hasn't all arrived stays with the connection.

    Raises:
        PacketError: what the peer did wrong; the packets before it have been handled.
    """
    broker = connection.broker
    now_us = broker.now_us()
    messages_before, seen_us = 0, now_us
    if connection.client is not None:
        messages_before, seen_us = connection.client.messages_in, connection.client.last_packet_us
        connection.client.last_packet_us = now_us
    tree, limit = broker.tree, broker.settings.packet_bytes
    position, size, needed = 0, len(data), 0
    if connection.state is State.NEW and data[0] >> 4 != CONNECT:
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
            taken = _take_run(connection, data, position, start, now_us)
            if taken:
                position = taken
                continue
        elif header in _TAKEN_TOGETHER and end - start == 2 and connection.session is not None:
            if connection.acks:
                connection.acknowledge_so_far()  # answers leave in the order of what they answer
            position = _take_acks(connection, data, position)
            continue
        position = end
        if connection.acks and header >> 4 != PUBLISH:
            connection.acknowledge_so_far()  # answers leave in the order of what they answer
        handle_packet(connection, header, data, start, end, now_us)
        if connection.state in (State.DECIDING, State.CLOSED):  # [MQTT-3.1.4-6]; [MQTT-3.1.4-5] of 3.1.1
            break
    if connection.state is State.OPEN:
        connection.finish_read()
        if broker.settings.publish_per_second and connection.client is not None:
            connection.limit_rate(connection.client.messages_in - messages_before, (now_us - seen_us) / 1e6)
    if position:  # part of a packet shows no life [MQTT-3.1.2-22]
        connection.seen_s = broker.clock()
    connection.keep(data[position:], needed)


def _take_run(connection: Connection, data: bytes, position: int, start: int, now_us: int) -> int:
    """Takes a run whose first packet's body is at ``start``; where it ends, or 0 where there is none."""
    if len(data) - start < 2:
        return 0
    field = data[start : start + 2 + (data[start] << 8 | data[start + 1])]
    route = connection.routes.get(field)
    if route is None:
        return 0
    limit = connection.broker.settings.packet_bytes
    run = scan_run(data, position, field, connection.routes, version=connection.version, limit=limit)
    if not run.ends:
        return 0
    end = run.ends[-1]
    if data[position] == QOS2:
        return end if _take_qos2(connection, route, data, run, now_us) else 0
    if data[position] == QOS1:
        _take_qos1(connection, route, data, run, now_us)
    else:
        _take_qos0(connection, route, data, run, now_us)
        if route.is_raw and route.targets:
            connection.broker.router.forward(
                route, data[position:end], len(run.ends), version=connection.version, now_us=now_us
            )
    return end


def _take_acks(connection: Connection, data: bytes, position: int) -> int:
    """Takes the plain acknowledgements of one kind that follow each other; where they end."""
    session = connection.session
    assert session is not None
    identifiers = scan_acks(data, position)
    if 0 in identifiers:
        raise protocol_error("packet identifier 0")  # [MQTT-2.2.1-3]; [MQTT-2.3.1-1] of 3.1.1
    end = position + len(identifiers) * ACK_BYTES
    if data[position] == PUBREC:
        take_pubrecs(connection, identifiers)
    elif data[position] == PUBREL:
        take_pubrels(connection, identifiers)
    else:
        take_done(session, data[position], identifiers)
        connection.pump()
    return end


def _take_qos0(connection: Connection, route: Route, data: bytes, run: Run, now_us: int) -> None:
    """All of a QoS 0 run except what leaves as it came."""
    _count(connection, len(run.ends), qos=0)
    if not route.durable and (route.is_raw or route.is_unheard):
        return
    payloads = [data[start:end] for start, end in zip(run.starts, run.ends, strict=True)]
    if route.durable:
        connection.open_batch(now_us).extend(_inbound(run.routes, payloads), [b""] * len(payloads))
    if not route.is_raw and not route.is_unheard:
        messages = [Message(each.topic_bytes, payload) for each, payload in zip(run.routes, payloads, strict=True)]
        connection.broker.router.deliver(route, messages, now_us)


def _take_qos1(connection: Connection, route: Route, data: bytes, run: Run, now_us: int) -> None:
    identifiers = _identifiers(connection, data, run)
    if b"\0\0" in identifiers:
        raise protocol_error("packet identifier 0")  # [MQTT-2.2.1-3]; [MQTT-2.3.1-1] of 3.1.1
    _count(connection, len(identifiers), qos=1)
    payloads = [data[start:end] for start, end in zip(run.starts, run.ends, strict=True)]
    refused = _deliver(connection, route, run, payloads, 1, now_us)
    if route.durable:
        acks = [_PUBACK + identifier for identifier in identifiers]
        connection.open_batch(now_us).extend(_inbound(run.routes, payloads), acks)
    else:
        connection.acknowledge(_answers(PUBACK, connection.version, route, identifiers, refused))


def _take_qos2(connection: Connection, route: Route, data: bytes, run: Run, now_us: int) -> bool:
    """False, and nothing has happened, where the packets have to be looked at one by one."""
    session = connection.session
    assert session is not None
    identifiers = _identifiers(connection, data, run)
    numbers = [int.from_bytes(each, "big") for each in identifiers]
    if route.durable or 0 in numbers or not session.takes_as_new(numbers, version=connection.version):
        return False
    _count(connection, len(numbers), qos=2)
    payloads = [data[start:end] for start, end in zip(run.starts, run.ends, strict=True)]
    refused = _deliver(connection, route, run, payloads, 2, now_us)
    for index, number in enumerate(numbers):
        if not refused or index not in refused or connection.version < 5:  # a refusal ends the exchange [MQTT-4.3.3-9]
            session.receive(number)
    connection.acknowledge(_answers(PUBREC, connection.version, route, identifiers, refused))
    return True


def _identifiers(connection: Connection, data: bytes, run: Run) -> list[bytes]:
    back = 3 if connection.version == 5 else 2
    return [data[start - back : start - back + 2] for start in run.starts]


def _deliver(
    connection: Connection, route: Route, run: Run, payloads: list[bytes], qos: int, now_us: int
) -> list[int] | None:
    """Hands the publishes of a run to their receivers; the indexes of those that none had room for."""
    if route.is_unheard:
        return None
    messages = [Message(each.topic_bytes, payload, qos) for each, payload in zip(run.routes, payloads, strict=True)]
    return connection.broker.router.deliver(route, messages, now_us)


def _answers(kind: int, version: int, route: Route, identifiers: list[bytes], refused: list[int] | None) -> bytes:
    """PUBACKs or PUBRECs (``kind``), with a reason where MQTT 5 has one to give."""
    plain = bytes((kind, 2))
    if version == 5:
        reasoned = bytes((kind, 3))
        if route.is_unheard:
            return b"".join([reasoned + identifier + _NO_SUBSCRIBERS for identifier in identifiers])
        if refused:
            return b"".join(
                reasoned + identifier + _QUOTA_EXCEEDED if index in refused else plain + identifier
                for index, identifier in enumerate(identifiers)
            )
    return plain + plain.join(identifiers)


def _inbound(routes: Sequence[Route], payloads: Sequence[bytes]) -> list[Inbound]:
    new = tuple.__new__  # a third of the cost of calling the class
    return [new(Inbound, (route.tag, payload, None)) for route, payload in zip(routes, payloads, strict=True)]


def _count(connection: Connection, count: int, *, qos: int) -> None:
    stats = connection.broker.stats
    if qos:
        stats.messages_in_qos1 += count
    else:
        stats.messages_in_qos0 += count
    if connection.client is not None:
        connection.client.messages_in += count
