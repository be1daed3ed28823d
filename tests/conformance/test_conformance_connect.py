"""CONNECT and CONNACK: what is let in, what is turned away, and how."""

from __future__ import annotations

import string

import conformance_wire as wire
import pytest
from conformance_wire import CONNACK, CONNECT, PUBLISH, SUBACK, Will

from mqtt_bytes import field, frame

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
WILL_FIELDS = field("w") + field("x")


def raw(version: int, flags: int, rest: bytes = b"", *, properties: bytes = b"\0", client_id: str = "raw") -> bytes:
    """A CONNECT whose payload is spelled out."""
    head = field("MQTT") + bytes((version, flags)) + b"\0\0"
    return frame(CONNECT << 4, head, properties if version == 5 else b"", field(client_id), rest)


def will(version: int) -> bytes:
    return (b"\0" if version == 5 else b"") + WILL_FIELDS


async def turned_away(peer) -> int:
    """The reason of a refusing CONNACK; 3.1.1 may close without one, and does."""
    packets = await peer.end()
    if peer.version < 5:
        assert packets == []
        return MALFORMED
    assert [each.kind for each in packets] == [CONNACK]
    return packets[0].reason


@pytest.mark.parametrize(
    "first", [b"\xc0\x00", wire.publish("t", version=5), b"\xe0\x00", b"\xf0\x00", b"\x20\x02\0\0"]
)
async def test_the_first_packet_is_connect(dial, version, first):
    peer = await dial(version)
    peer.send(first)
    assert await peer.end() == []


async def test_a_second_connect_ends_the_connection(dial, version, name):
    watcher = await dial(version, name + "w")
    await watcher.subscribe((name, 0))
    peer = await dial(version, name, will=Will(name))
    peer.send(wire.connect(name, version=version))
    assert await peer.refused() == (PROTOCOL_ERROR if version == 5 else 0)
    assert (await watcher.take()).payload == b"gone"


LEVEL_3_1_1, LEVEL_5 = b"\x20\x02\x00\x01", b"\x20\x03\x00\x84\x00"


@pytest.mark.parametrize(
    ("protocol", "level", "form", "answer"),
    [
        ("MQTT", 3, 4, LEVEL_3_1_1),
        ("MQTT", 0, 4, LEVEL_3_1_1),
        ("MQIsdp", 4, 4, LEVEL_3_1_1),
        ("MQIsdp", 5, 4, LEVEL_3_1_1),
        ("hj", 4, 4, LEVEL_3_1_1),
        ("mqtt", 4, 4, LEVEL_3_1_1),
        ("hj", 5, 4, LEVEL_3_1_1),
        ("MQTT", 6, 4, LEVEL_3_1_1),
        ("hj", 5, 5, LEVEL_5),
        ("MQTT", 6, 5, LEVEL_5),
        ("MQTT", 255, 5, LEVEL_5),
    ],
)
async def test_other_protocols_are_turned_away_in_words_they_may_know(dial, name, protocol, level, form, answer):
    peer = await dial(form)
    peer.send(wire.connect(name, version=form, name=protocol, level=level, will=Will(name), username="u", password=b""))
    assert await peer.reader.read() == answer


@pytest.mark.parametrize(
    ("flags", "rest"),
    [
        (0x03, b""),
        (0x0A, b""),
        (0x12, b""),
        (0x1A, b""),
        (0x22, b""),
        (0x1E, "will"),
        (0x06, b""),
        (0x82, b""),
        (0xC2, field("u")),
        (0x02, field("u")),
        (0x02, "will"),
        (0x82, field("u") + field("p")),
    ],
    ids=[
        "reserved flag",
        "will QoS 1 without a will",
        "will QoS 2 without a will",
        "will QoS 3 without a will",
        "will retain without a will",
        "will QoS 3",
        "will missing",
        "user name missing",
        "password missing",
        "user name without its flag",
        "will without its flag",
        "password without its flag",
    ],
)
async def test_flags_and_payload_fit(dial, version, flags, rest):
    peer = await dial(version)
    peer.send(raw(version, flags, will(version) if rest == "will" else rest))
    assert await turned_away(peer) == MALFORMED


async def test_a_password_without_a_user_name(dial, name):
    old, new = await dial(4), await dial(5)
    old.send(raw(4, 0x42, field("p")))
    assert await old.end() == []
    assert (await new.connect(name, password=b"p")).reason == 0


@pytest.mark.parametrize("options", [{"username": ""}, {"username": "u"}, {"username": "u", "password": b"\xff\0"}])
async def test_credentials_may_stand_in_it(dial, version, name, options):
    await dial(version, name, **options)


async def test_all_fields_in_their_order(dial, version, name):
    watcher = await dial(version, name + "w")
    await watcher.subscribe((name, 2))
    peer = await dial(version, name, will=Will(name, b"\xff", 2), username="u", password=b"p", keep_alive=60)
    peer.vanish()
    message = await watcher.take()
    assert (message.topic, message.payload, message.qos) == (name, b"\xff", 2)


async def test_a_connect_without_a_client_id(dial, version):
    peer = await dial(version)
    peer.send(frame(CONNECT << 4, field("MQTT"), bytes((version, 2)), b"\0\0", b"\0" if version == 5 else b""))
    assert await turned_away(peer) == MALFORMED


@pytest.mark.parametrize(
    "client_id",
    [
        "a",
        string.digits + string.ascii_lowercase[:13],
        string.ascii_uppercase[:23],
        string.ascii_letters * 5,
        "x" * 65_535,
    ],
    ids=lambda client_id: f"{len(client_id)} bytes of {client_id[0]}",
)
async def test_client_ids_that_must_pass(dial, version, client_id):
    await dial(version, client_id)


async def test_an_empty_client_id_is_assigned_one(dial):
    first, second = await dial(5, ""), await dial(5, "", clean=False)
    assigned = [first.connack.assigned_client_id, second.connack.assigned_client_id]
    assert all(assigned)
    assert assigned[0] != assigned[1]
    assert not second.connack.session_present
    other = await dial(5, assigned[0])
    assert (await first.end())[-1].reason == 0x8E
    assert other.connack.assigned_client_id is None


async def test_an_assigned_client_id_names_the_session(dial, name):
    first = await dial(5, "", session_expiry=100)
    await first.subscribe((name, 1))
    await first.leave()
    again = await dial(5, first.connack.assigned_client_id, keep=True)
    assert again.connack.session_present


async def test_an_empty_client_id_of_3_1_1_needs_a_clean_session(dial, name):
    first, second = await dial(4, ""), await dial(4, "")
    await first.silence()
    await second.silence()
    refused = await dial(4)
    assert (await refused.connect("", clean=False)).reason == 2
    assert await refused.end() == []


async def test_packets_may_follow_connect_at_once(dial, version, name):
    peer = await dial(version)
    peer.send(
        wire.connect(name, version=version),
        wire.subscribe(1, (name, 0), version=version),
        wire.publish(name, b"early", version=version),
    )
    assert [(await peer.receive()).kind for _ in range(3)] == [CONNACK, SUBACK, PUBLISH]


async def test_nothing_after_a_refused_connect_counts(dial, version, name):
    watcher = await dial(version, name)
    await watcher.subscribe((name, 0))
    peer = await dial(version)
    peer.send(raw(version, 0x03), wire.publish(name, b"too late", version=version))
    await turned_away(peer)
    await watcher.silence()
    stranger = await dial(5)
    stranger.send(
        wire.connect(name + "s", version=5, auth_method="none", will=Will(name)),
        wire.publish(name, b"too late", version=5),
    )
    assert [each.reason for each in await stranger.end()] == [0x8C]
    await watcher.silence()


async def test_the_first_packet_from_the_server_is_connack(dial, version, name):
    peer = await dial(version, name, keep=True)
    await peer.subscribe((name, 1))
    await peer.leave()
    await (await dial(version, name + "p")).publish(name, qos=1)
    again = await dial(version)
    again.send(wire.connect(name, version=version, clean=False), b"\xc0\x00")
    assert (await again.receive()).kind == CONNACK


BAD_PROPERTIES = [
    ("session expiry twice", b"\x0a\x11\0\0\0\1\x11\0\0\0\1", PROTOCOL_ERROR),
    ("receive maximum 0", b"\x03\x21\0\0", PROTOCOL_ERROR),
    ("receive maximum twice", b"\x06\x21\0\1\x21\0\1", PROTOCOL_ERROR),
    ("maximum packet size 0", b"\x05\x27\0\0\0\0", PROTOCOL_ERROR),
    ("maximum packet size twice", b"\x0a\x27\0\0\0\x40\x27\0\0\0\x40", PROTOCOL_ERROR),
    ("topic alias maximum twice", b"\x06\x22\0\1\x22\0\1", PROTOCOL_ERROR),
    ("request response information 2", b"\x02\x19\2", PROTOCOL_ERROR),
    ("request problem information 2", b"\x02\x17\2", PROTOCOL_ERROR),
    ("request problem information twice", b"\x04\x17\1\x17\1", PROTOCOL_ERROR),
    ("authentication method twice", b"\x08\x15\0\1a\x15\0\1a", PROTOCOL_ERROR),
    ("authentication data alone", b"\x04\x16\0\1a", PROTOCOL_ERROR),
    ("will delay outside the will", b"\x05\x18\0\0\0\1", MALFORMED),
    ("server keep alive", b"\x03\x13\0\1", MALFORMED),
    ("topic alias", b"\x03\x23\0\1", MALFORMED),
    ("unknown", b"\x02\x04\0", MALFORMED),
]


@pytest.mark.parametrize(
    ("data", "reason"), [row[1:] for row in BAD_PROPERTIES], ids=[row[0] for row in BAD_PROPERTIES]
)
async def test_bad_properties_of_connect(dial, data, reason):
    peer = await dial(5)
    peer.send(raw(5, 2, properties=data))
    assert await turned_away(peer) == reason


@pytest.mark.parametrize(
    ("will", "reason"),
    [
        (Will("w/#"), 0x90),
        (Will("+"), 0x90),
        (Will(""), 0x90),
        (Will("w", b"\xff", properties={"payload_format": 1}), 0x99),
        (Will("w", properties={"payload_format": 2}), PROTOCOL_ERROR),
        (Will("w", properties={"will_delay": [1, 1]}), PROTOCOL_ERROR),
        (Will("w", properties={"response_topic": "a/+"}), PROTOCOL_ERROR),
        (Will("w", properties={"session_expiry": 1}), MALFORMED),
    ],
)
async def test_bad_wills(dial, name, will, reason):
    peer = await dial(5)
    peer.send(wire.connect(name, version=5, will=will))
    assert await turned_away(peer) == reason


async def test_wills_on_wildcards_are_no_wills_of_3_1_1(dial, name):
    peer = await dial(4)
    peer.send(wire.connect(name, version=4, will=Will("w/#")))
    assert await peer.end() == []


async def test_connack_says_what_the_server_takes(dial, name):
    connack = (await dial(5, name)).connack
    assert connack.topic_alias_maximum > 0
    assert connack.receive_maximum is None or connack.receive_maximum > 0
    assert connack.maximum_packet_size is None or connack.maximum_packet_size > 0
    assert connack.properties.keys().isdisjoint({"response_info", "auth_method", "server_keep_alive", "maximum_qos"})
    for absent_or_one in ("retain_available", "wildcards_available", "subscription_ids_available", "shared_available"):
        assert connack.properties.get(absent_or_one, 1) == 1


@pytest.mark.parametrize("asked", [0, 1])
async def test_response_information_is_only_for_who_asks(dial, name, asked):
    connack = (await dial(5, name, request_response_info=asked)).connack
    assert asked or connack.response_info is None


async def test_keep_alive_is_capped_by_the_server(dial, name, capped_port):
    for asked, told in ((120, 60), (0, 60), (61, 60), (60, None), (10, None)):
        peer = await dial(5, name, to=capped_port, keep_alive=asked)
        assert peer.connack.server_keep_alive == told
    old = await dial(4, name, to=capped_port, keep_alive=120)
    await old.silence()
