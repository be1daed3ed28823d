"""Whoever breaks the protocol is told why and shut out, and nobody else notices."""

from __future__ import annotations

import mqtt5
import pytest
from packet_table import BAD, BAD_CONNECTS, BadRow, names

from raw_client import field, frame, until
from terrazzo_broker import connections, expiry


@pytest.mark.parametrize("row", BAD, ids=names(BAD))
async def test_an_open_connection_is_closed_with_the_reason(dial, row: BadRow):  # [MQTT-4.13.1-1]
    client = await dial("c", version=row.version)
    client.send(row.data)
    packets = await client.rest()
    if row.version == 5:
        assert isinstance(packets[-1], mqtt5.DisconnectPacket)
        assert int(packets[-1].reason_code) == row.reason
    else:
        assert packets == []


@pytest.mark.parametrize("row", BAD_CONNECTS, ids=names(BAD_CONNECTS))
async def test_a_bad_connect_is_refused_with_the_reason(dial, running, row: BadRow):
    client = await dial(None, version=row.version)
    client.send(row.data)
    if row.version == 5:
        assert int((await client.receive()).reason_code) == row.reason
    await client.closed()  # 3.1.1 closes without a CONNACK [MQTT-3.1.4-1]
    assert running.hooks.requests == []


@pytest.mark.parametrize(
    ("name", "level", "answer"),
    [
        ("MQTT", 3, (0x20, b"\0\1")),
        ("MQIsdp", 4, (0x20, b"\0\1")),
        ("MQTT", 0x83, (0x20, b"\0\1")),  # the highest bit is a bridge's, and 3 goes with MQIsdp
        ("MQTT", 6, (0x20, b"\0\1")),
        ("MQTT", 0x86, (0x20, b"\0\1")),
    ],
)
async def test_unsupported_protocols_are_told_so(dial, name, level, answer):  # [MQTT-3.1.2-2]
    client = await dial(None, version=4)
    client.send(frame(0x10, field(name), bytes((level, 2)), b"\0\0", field("id")))
    assert await client.receive() == answer
    await client.closed()


@pytest.mark.parametrize("data", [b"\xc0\x00", frame(0x30, field("a"), b"x"), b"GET / HTTP/1.1\r\n\r\n", b"\xf0\x00"])
async def test_the_first_packet_is_connect(dial, data):  # [MQTT-3.1.0-1]
    client = await dial(None)
    client.send(data)
    await client.closed()


async def test_an_empty_client_id(dial, running):
    assigned = await dial("")
    assert assigned.connack.assigned_client_id in running.broker.sessions
    accepted = await dial("", version=4)
    assert accepted.connack == (0x20, b"\0\0")
    refused = await dial("", version=4, clean=False)  # [MQTT-3.1.3-8]
    assert refused.connack == (0x20, b"\0\2")
    await refused.closed()


async def test_a_peer_that_does_not_hang_up_is_cut_off(dial, running, monkeypatch):
    for module in (connections, expiry):
        monkeypatch.setattr(module, "LAST_BYTES_S", 0.2)
    client = await dial("c")
    client.send(b"\x00\x00")
    assert [int(packet.reason_code) for packet in await client.rest()] == [0x81]
    assert running.broker.stats.connections == 1  # only the broker's half is closed
    await until(lambda: running.broker.stats.connections == 0)


async def test_packets_before_a_bad_one_count(dial, running):
    subscriber, client = await dial("s"), await dial("c")
    await subscriber.subscribe(("t", 0))
    client.publish("t", b"good")
    client.send(b"\x00\x00")
    assert (await subscriber.receive()).payload == b"good"
    assert int((await client.receive()).reason_code) == 0x81
    assert running.broker.stats.protocol_errors == 1


async def test_invalid_filters_are_refused_one_by_one(dial):
    patterns = ("a/#/b", "a+", "#a", "$share/g", "$share//a", "$share/g+/a", "$share", "/".join("a" * 201), "ok/#")
    five, four = await dial("five"), await dial("four", version=4)
    wishes = [(pattern, 1) for pattern in patterns]
    assert [int(code) for code in (await five.subscribe(*wishes)).reason_codes] == [0x8F] * 8 + [1]
    assert await four.subscribe(*wishes) == (0x90, b"\0\1" + b"\x80" * 8 + b"\1")


async def test_text_that_is_none(dial, running):
    client = await dial("c")
    for qos in (0, 1, 2):
        identifier = {"packet_id": qos} if qos else {}
        client.publish("t", b"\xff", qos=qos, payload_format_indicator=1, **identifier)
    assert [int((await client.receive()).reason_code) for _ in range(2)] == [0x99, 0x99]
    assert running.broker.stats.dropped == {"payload format invalid": 3}


async def test_nobody_publishes_on_sys(dial):
    client = await dial("c")
    client.publish("$SYS/broker/version", b"mine", qos=1, packet_id=1)
    assert int((await client.receive()).reason_code) == 0x87
