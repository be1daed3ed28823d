"""Packets and WebSocket frames, which need not coincide. [MQTT-6.0.0-1] [MQTT-6.0.0-2]"""

from __future__ import annotations

import pytest
from listener_stand import ACCEPTED_4, DISCONNECT, PINGREQ, PINGRESP, connect, publish, subscribe
from websocket_peer import BINARY, CONTINUATION, PING, PONG, TEXT, WebSocketPeer, frame

from waiting import until


@pytest.fixture
async def listening(start):
    """A broker on WebSocket, its port in ``port``."""
    broker = start(packet_bytes=200_000)
    broker.port = await broker.listen_websocket("127.0.0.1", 0)
    return broker


@pytest.fixture
async def peer(listening):
    """An upgraded connection."""
    peer = await WebSocketPeer.upgrade(listening.port)
    yield peer
    await peer.close()


async def test_a_packet_a_frame(peer, listening):
    peer.send(frame(connect("c")))
    assert await peer.next_frame() == (BINARY, ACCEPTED_4)
    peer.send(frame(PINGREQ))
    assert await peer.next_frame() == (BINARY, PINGRESP)
    request, client = listening.hooks.requests[0], listening.client("c")
    assert (request.listener, request.address) == (client.listener, client.address) == ("ws", "127.0.0.1")
    assert client.port == peer.writer.get_extra_info("sockname")[1]


async def test_several_packets_in_one_frame(peer):
    peer.send(frame(connect("c") + subscribe("t") + publish("t", b"1") + PINGREQ))
    expected = ACCEPTED_4 + b"\x90\x03\0\1\0" + publish("t", b"1") + PINGRESP
    assert await peer.mqtt(len(expected)) == expected


async def test_one_byte_a_frame(peer):
    peer.send(b"".join(frame(bytes((byte,))) for byte in connect("c") + PINGREQ))
    assert await peer.mqtt(6) == ACCEPTED_4 + PINGRESP


async def test_packets_across_frames(peer):
    stream = connect("c") + subscribe("t") + publish("t", b"x" * 1000) + PINGREQ
    for at in range(0, len(stream), 7):
        peer.send(frame(stream[at : at + 7]))
    expected = ACCEPTED_4 + b"\x90\x03\0\1\0" + publish("t", b"x" * 1000) + PINGRESP
    assert await peer.mqtt(len(expected)) == expected


async def test_fragmented_messages_with_pings_between(peer):
    packet = connect("c")
    peer.send(frame(packet[:3], last=False) + frame(b"there?", PING) + frame(packet[3:9], CONTINUATION, last=False))
    assert await peer.next_frame() == (PONG, b"there?")
    peer.send(frame(packet[9:], CONTINUATION))
    assert await peer.next_frame() == (BINARY, ACCEPTED_4)


async def test_empty_frames_mean_nothing(peer):
    peer.send(frame(b"") + frame(connect("c")) + frame(b"") + frame(PINGREQ))
    assert await peer.mqtt(6) == ACCEPTED_4 + PINGRESP


async def test_frames_of_the_broker_are_bounded(peer):
    large = publish("t", bytes(150_000))
    peer.send(frame(connect("c") + subscribe("t")) + frame(large))
    assert await peer.mqtt(9) == ACCEPTED_4 + b"\x90\x03\0\1\0"
    sizes, data = [0], peer.unread
    while len(data) < len(large):
        _, part = await peer.next_frame()
        sizes.append(len(part))
        data += part
    assert data == large
    assert max(sizes) == 65_536


@pytest.mark.parametrize("before", [b"", connect("c")])
async def test_a_text_frame_closes(peer, listening, before):
    if before:
        peer.send(frame(before))
        assert await peer.mqtt(4) == ACCEPTED_4
    peer.send(frame(b"hello", TEXT))
    assert await peer.close_code() == 1003
    assert listening.stats.protocol_errors == 1
    assert listening.hooks.ends == (["a WebSocket frame that is not binary"] if before else [])


async def test_a_text_frame_that_is_no_text(peer, listening):
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    peer.send(frame(PINGREQ, TEXT))
    assert await peer.close_code() == 1007
    await until(lambda: listening.hooks.ends)
    assert listening.stats.protocol_errors == 1


async def test_a_text_frame_in_mqtt_5_gets_its_reason(peer):
    peer.send(frame(connect("c", version=5)))
    await peer.next_frame()
    peer.send(frame(b"hello", TEXT))
    opcode, data = await peer.next_frame()
    assert (opcode, data[0], data[2]) == (BINARY, 0xE0, 0x82)
    assert await peer.close_code() == 1003


async def test_the_largest_packet_fits_one_frame(peer, listening):
    head = len(publish("t", bytes(100_000))) - 100_000
    peer.send(frame(connect("c")) + frame(publish("t", bytes(200_000 - head))) + frame(PINGREQ))
    assert await peer.mqtt(6) == ACCEPTED_4 + PINGRESP
    assert listening.stats.messages_in_qos0 == 1


async def test_a_larger_frame_is_refused_before_it_is_read(peer, listening):
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    peer.send(frame(bytes(200_001))[:100])
    assert await peer.close_code() == 1009
    await until(lambda: listening.hooks.ends)


async def test_a_larger_packet_over_several_frames(peer, listening):
    packet = publish("t", bytes(300_000))
    peer.send(frame(connect("c", version=5)))
    await peer.next_frame()
    peer.send(frame(packet[:1000]))
    opcode, data = await peer.next_frame()
    assert (opcode, data[0], data[2]) == (BINARY, 0xE0, 0x95)
    assert await peer.close_code() == 1000


@pytest.mark.parametrize(
    "wrong",
    [b"\x83\x80\0\0\0\0", b"\xf2\x81\0\0\0\0\0", frame(b"x", CONTINUATION), frame(b"x", PING, last=False)],
    ids=["unknown opcode", "reserved bits", "continues nothing", "ping in pieces"],
)
async def test_wrong_frames_close(peer, listening, wrong):
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    peer.send(wrong)
    assert await peer.close_code() == 1002
    await until(lambda: listening.hooks.ends)


async def test_disconnect_closes_the_websocket(peer, listening):
    peer.send(frame(connect("c")) + frame(DISCONNECT))
    assert await peer.mqtt(4) == ACCEPTED_4
    assert await peer.close_code() == 1000
    await until(lambda: listening.stats.connections == 0)


async def test_a_close_frame_without_disconnect_is_a_lost_connection(peer, listening):
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    peer.send(frame(b"\x03\xe8", 8))
    assert await peer.close_code() == 1000
    await until(lambda: listening.hooks.ends == ["connection lost"])


async def test_a_vanished_peer_is_a_lost_connection(peer, listening):
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    peer.writer.transport.abort()
    await until(lambda: listening.hooks.ends)
    assert listening.hooks.ends[0].startswith("connection lost")
    await until(lambda: listening.stats.connections == 0)


async def test_a_silent_client_is_closed(peer, listening):
    peer.send(frame(connect("c", keep_alive_s=1)))
    assert await peer.mqtt(4) == ACCEPTED_4
    assert await peer.close_code() == 1000
    assert listening.hooks.ends == ["keep-alive timeout"]


async def test_a_paused_connection_delivers_nothing(peer, listening):
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    listening.pause_intake()
    peer.send(b"".join(frame(publish("t", bytes(10_000))) for _ in range(300)))
    other = await WebSocketPeer.upgrade(listening.port)
    assert listening.stats.messages_in_qos0 == 0
    listening.resume_intake()
    peer.send(frame(PINGREQ))
    assert await peer.mqtt(2) == PINGRESP
    assert listening.stats.messages_in_qos0 == 300
    await other.close()
