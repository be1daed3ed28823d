"""What peers get wrong reaches them as a reason, is kept where it should be, and never ends the process."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from mqtt_bytes import field, frame, login, publish
from running import Platform, wait_for

UID = "bad-1"


@pytest.fixture(scope="module", autouse=True)
def terminals(platform: Platform, config_uid: str) -> None:
    platform.add_terminal(UID, config_uid)
    platform.add_terminal("bad-2", config_uid)
    platform.add_terminal("narrow", config_uid, topic="pub:r")


@pytest.fixture(autouse=True)
def alive_afterwards(platform: Platform) -> Iterator[None]:
    yield
    assert platform.call("ping", message="still there")
    assert platform.process.poll() is None


@contextmanager
def connected(platform: Platform, uid: str = UID, protocol: int = 4) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", platform.mqtt), timeout=10) as peer:
        peer.sendall(login(uid, f"u-{uid}", f"pin-{uid}", protocol=protocol, keep_alive_s=30))
        answer = peer.recv(256)
        assert answer[0] == 0x20
        assert answer[3] == 0, answer
        yield peer


def reason_of_puback(peer: socket.socket) -> int:
    answer = peer.recv(256)
    assert answer[0] == 0x40, answer
    return answer[4] if answer[1] > 2 else 0


def is_closed(peer: socket.socket) -> bool:
    try:
        while peer.recv(4096):
            pass
    except ConnectionResetError:
        return True
    return True


def newest_reject(platform: Platform) -> dict[str, object]:
    return platform.call("get_reject_list", terminal_id=UID, page_size=1)["data"][0]


def test_a_truncated_packet_is_waited_for_and_forgotten_with_its_connection(platform: Platform) -> None:
    with connected(platform) as peer:
        peer.sendall(publish(f"g/{UID}/r", b'{"half": 1}')[:-4])
    with connected(platform) as peer:
        peer.sendall(publish(f"g/{UID}/r", b'{"whole": 1}'))
        assert peer.recv(4) == b"\x40\x02\x00\x01"
    (record,) = platform.call("get_last_grid", terminal_id=UID, topic=["r"])["data"]
    assert record["payload"] == {"whole": 1}


@pytest.mark.parametrize("protocol", [4, 5])
def test_an_oversized_packet_ends_the_connection(platform: Platform, protocol: int) -> None:
    with connected(platform, protocol=protocol) as peer:
        peer.sendall(b"\x32\xff\xff\xff\x7f" + bytes(64))
        if protocol == 5:
            answer = peer.recv(256)
            assert (answer[0], answer[2]) == (0xE0, 0x95)
        assert is_closed(peer)


@pytest.mark.parametrize("topic", ["g/bad-2/r", "p2p/bad-2", "x/y", "g/unknown/r", f"p2p/{UID}"])
def test_a_topic_outside_the_acl_is_refused_with_0x87(platform: Platform, topic: str) -> None:
    with connected(platform, protocol=5) as peer:
        peer.sendall(publish(topic, b'{"a": 1}', protocol=5))
        assert reason_of_puback(peer) == 0x87


def test_a_channel_outside_the_permission_is_refused(platform: Platform) -> None:
    with connected(platform, uid="narrow", protocol=5) as peer:
        peer.sendall(publish("g/narrow/a", b'{"a": 1}', protocol=5))
        assert reason_of_puback(peer) == 0x87
        peer.sendall(publish("g/narrow/r", b'{"a": 1}', protocol=5))
        assert reason_of_puback(peer) in (0, 0x10)


def test_in_3_1_1_a_refused_publish_is_dropped_and_counted(platform: Platform) -> None:
    before = platform.call("get_last_grid", terminal_id="bad-2")["data"]
    with connected(platform) as peer:
        peer.sendall(publish("g/bad-2/r", b'{"forged": 1}'))
        peer.recv(4)
    assert platform.call("get_last_grid", terminal_id="bad-2")["data"] == before == []


NESTED = b'{"a":' * 100 + b"1" + b"}" * 100


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{not json", "malformed"),
        (b"", "empty"),
        (b"[1, 2]", "not an object"),
        (b'{"a": NaN}', "malformed"),
        (b"\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "a: nan is not a number"),
        (b'{"a": [1]}', "a: an array is not a value"),
        (NESTED, "nested deeper"),
        (b'{"Time": "tomorrow"}', "Time"),
        (b'{"Time": 4102444800, "a": 1}', "Time"),
        (b'{"a": "\xff"}', "UTF-8"),
    ],
    ids=["broken", "empty", "array", "nan", "msgpack-nan", "array-value", "nested", "time", "future", "utf-8"],
)
def test_an_undecodable_payload_is_kept_as_a_reject(platform: Platform, body: bytes, reason: str) -> None:
    with connected(platform, protocol=5) as peer:
        peer.sendall(publish(f"g/{UID}/r", body, protocol=5))
        assert reason_of_puback(peer) == 0x99
    reject = newest_reject(platform)
    assert reason in str(reject["reason"])
    assert reject["topic"] == f"g/{UID}/r"


def test_a_string_of_a_mebibyte_is_refused_and_one_below_the_limit_is_stored(platform: Platform) -> None:
    for size, fits in ((2**20, False), (2**20 - 200, True)):
        with connected(platform, protocol=5) as peer:
            with suppress(ConnectionError):  # the broker need not take the last byte before it closes
                peer.sendall(publish(f"g/{UID}/i", b'{"s":"' + b"x" * size + b'"}', protocol=5))
            if fits:
                assert reason_of_puback(peer) in (0, 0x10)
            else:
                assert is_closed(peer)
    (record,) = platform.call("get_last_grid", terminal_id=UID, topic=["i"])["data"]
    assert len(record["payload"]["s"]) == 2**20 - 200


def test_a_bad_message_does_not_stop_those_around_it(platform: Platform) -> None:
    bodies = [b'{"n":1}', b"oops", b'{"n":2}', b'{"a":[0]}', b'{"n":3}']
    with connected(platform, protocol=5) as peer:
        peer.sendall(b"".join(publish(f"g/{UID}/p", body, protocol=5, packet_id=n) for n, body in enumerate(bodies, 1)))
        answer = b""
        while len(answer) < 4 * 3 + 5 * 2:
            answer += peer.recv(256)
    records = platform.call("get_last_grid_list", terminal_id=UID, topic=["p"], items=10)["data"]
    assert [record["payload"]["n"] for record in records] == [3, 2, 1]


def test_garbage_instead_of_a_connect_is_closed(platform: Platform) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 16, b"\xff" * 64, json.dumps({"action": "login"}).encode()):
        with socket.create_connection(("127.0.0.1", platform.mqtt), timeout=10) as peer:
            peer.sendall(garbage)
            assert is_closed(peer)


def test_a_changed_pin_ends_the_connection_at_once(platform: Platform) -> None:
    with connected(platform, uid="bad-2", protocol=5) as peer:
        platform.change_terminal("bad-2", pin="new-pin")
        answer = peer.recv(256)
        assert (answer[0], answer[2]) == (0xE0, 0x98)
        assert is_closed(peer)
    wait_for(lambda: not platform.call("get_terminal_status", terminal_id="bad-2")["online"], "seen as gone")


def test_a_client_id_with_line_feeds_makes_no_line_of_its_own_in_the_log(platform: Platform) -> None:
    forged = "a\nERROR forged line\x1b[2J"
    with socket.create_connection(("127.0.0.1", platform.mqtt), timeout=10) as peer:
        peer.sendall(login(forged, "nobody", "at all", protocol=5))
        assert is_closed(peer)
    wait_for(lambda: "forged line" in platform.log.read_text(), "the refusal is in the log")
    lines = platform.log.read_text().splitlines()
    assert not [line for line in lines if line.startswith("ERROR forged") or "\x1b" in line]


def test_a_terminal_of_mqtt_3_1_logs_in_and_reports(platform: Platform) -> None:
    head = field("MQIsdp") + b"\x03\xc2" + (30).to_bytes(2, "big")
    with socket.create_connection(("127.0.0.1", platform.mqtt), timeout=10) as peer:
        peer.sendall(frame(0x10, head, field(UID), field(f"u-{UID}"), field(f"pin-{UID}")))
        assert peer.recv(4) == b"\x20\x02\x00\x00"
        peer.sendall(publish(f"g/{UID}/r", b'{"old": 31}'))
        assert peer.recv(4) == b"\x40\x02\x00\x01"
    (record,) = platform.call("get_last_grid", terminal_id=UID, topic=["r"])["data"]
    assert record["payload"] == {"old": 31}
    with socket.create_connection(("127.0.0.1", platform.mqtt), timeout=10) as peer:
        peer.sendall(frame(0x10, head, field(UID), field(f"u-{UID}"), field("guess")))
        assert peer.recv(4) == b"\x20\x02\x00\x04", "3.1 has no other code for a wrong password"
