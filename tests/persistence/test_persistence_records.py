"""Stored records: what is encoded is decoded again, and what can't be is refused by name."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo_broker.hooks import Client
from terrazzo_broker.message import ApplicationMessage, StoredMessage
from terrazzo_broker.persistence import keys
from terrazzo_broker.persistence.changes import SHARED_BYTES, UncommittedChanges
from terrazzo_broker.persistence.image import read_image
from terrazzo_broker.persistence.records import (
    RecordError,
    StoredSession,
    decode_entry,
    decode_session,
    decode_subscription,
    decode_will,
    encode_entry,
    encode_session,
    encode_subscription,
    encode_will,
)
from terrazzo_broker.storage import StorageError
from terrazzo_broker.topics.tree import TopicSubscription

MESSAGES = st.builds(
    ApplicationMessage,
    topic=st.text(min_size=1, max_size=40).map(str.encode),
    payload=st.binary(max_size=300),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    properties=st.binary(max_size=60),
    expires_us=st.integers(0, (1 << 63) - 1),
    publisher=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
TOPICS = TEXTS.filter(lambda text: not set("+#") & set(text))
FORMAT = (keys.VERSION, b"2")


@given(MESSAGES, st.integers(0, 65_535), st.none() | st.integers(0, (1 << 64) - 1))
def test_entry_round_trip(message: ApplicationMessage, packet_id: int, body: int | None) -> None:
    entry = decode_entry(encode_entry(message, packet_id, body))
    payload = message.payload if body is None else b""
    assert (entry.packet_id, entry.body, entry.payload) == (packet_id, body, payload)
    assert (entry.topic, entry.qos, entry.retain) == (message.topic, message.qos, message.retain)
    assert (entry.properties, entry.expires_us) == (message.properties, message.expires_us)
    assert entry.publisher == message.publisher


def test_records_from_before_retained_messages_had_publishers() -> None:
    first = bytes.fromhex("06 0000 0000000000000000 0001 00000000") + b"t" + b"kept"
    image = read_image([(keys.VERSION, b"1"), (keys.RETAINED + b"t", first)])
    assert image.unowned == [ApplicationMessage(b"t", b"kept", 2, retain=True)]
    assert image.format == b"1"


@given(MESSAGES, st.data())
def test_entry_cut_off_is_refused(message: ApplicationMessage, data: st.DataObject) -> None:
    whole = encode_entry(message, 7, 8)
    with pytest.raises(RecordError):
        decode_entry(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(TEXTS, st.integers(0, 0xFFFFFFFF), st.integers(0, 1 << 62), st.booleans())
def test_session_round_trip(client_id: str, expiry_s: int, expires_us: int, is_connected: bool) -> None:
    stored = StoredSession(client_id, expiry_s, expires_us, is_connected)
    assert decode_session(encode_session(stored)) == stored


@given(TEXTS, st.integers(0, 2), st.booleans(), st.booleans(), st.integers(0, 2), st.integers(0, 268_435_455))
def test_subscription_round_trip(pattern: str, qos: int, local: bool, kept: bool, handling: int, number: int) -> None:
    subscription = TopicSubscription(pattern, qos, local, kept, handling, number)
    assert decode_subscription(pattern.encode(), encode_subscription(subscription)) == subscription


@given(
    st.builds(
        mqtt5.Will,
        TOPICS,
        payload=st.binary(max_size=50),
        qos=st.integers(0, 2).map(mqtt5.QoS),
        retain=st.booleans(),
        payload_format_indicator=st.integers(0, 1),
        message_expiry_interval=st.none() | st.integers(0, 0xFFFFFFFF),
        content_type=st.none() | TEXTS,
        response_topic=st.none() | TOPICS,
        correlation_data=st.none() | st.binary(max_size=9),
        will_delay_interval=st.integers(0, 0xFFFFFFFF),
        user_properties=st.lists(st.tuples(TEXTS, TEXTS), max_size=3),
    ),
    st.none() | st.integers(0, 1 << 62),
)
def test_will_round_trip(will: mqtt5.Will, due_us: int | None) -> None:
    client = Client("c", "user", 5, "10.0.0.1", 999, "tls", 1, 60, identity=object(), owner="7")
    stored = decode_will(encode_will(will, client, due_us))
    assert stored.due_us == due_us
    pending = stored.pending("c", "8")
    assert pending.client.owner == "7"
    assert str(pending.will) == str(will)
    assert pending.client.identity is None
    assert (pending.client.client_id, pending.client.username, pending.client.address) == ("c", "user", "10.0.0.1")


@pytest.mark.parametrize("decode", [decode_session, decode_will, lambda data: decode_subscription(b"a", data)])
@pytest.mark.parametrize("data", [b"", b"\xff", b"\x91\x01", b"\x92\xa1a\x01"])
def test_other_records_are_refused(decode, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RecordError):
        decode(data)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([(b"V", b"0")], "format b'0'"),
        ([(b"a", b"")], "something else"),
        ([(b"grid", b"1"), FORMAT], "no known kind|something else"),
        ([FORMAT, (b"z", b"")], "no known kind"),
        ([FORMAT, (keys.session_prefix(1) + b"?", b"")], "no known kind"),
        ([FORMAT, (keys.session_prefix(1) + b"\0", b"x")], "not a session"),
        ([FORMAT, (keys.session_prefix(1) + b"q12345678", b"x")], "a message record of 1 bytes"),
        ([FORMAT, (b"wclient", b"x")], "not a will"),
        ([FORMAT, (keys.session_prefix(1) + b"p12345", b"12345678")], "a number of 5 bytes instead of 2"),
    ],
)
def test_unreadable_folders_say_what_is_wrong(items: list[tuple[bytes, bytes]], reason: str) -> None:
    with pytest.raises(StorageError, match=reason):
        read_image(items)


def queued(session: int, place: int, payload: bytes) -> StoredMessage:
    key = keys.session_prefix(session) + keys.QUEUED + place.to_bytes(8, "big")
    return StoredMessage(b"t", payload, 1, key=key)


def head(session: int) -> tuple[bytes, bytes]:
    return keys.session_prefix(session) + keys.HEAD, encode_session(StoredSession(f"c{session}", 9, 0, False))


def test_a_long_payload_for_many_sessions_is_stored_once() -> None:
    changes, payload = UncommittedChanges(), b"x" * (SHARED_BYTES + 1)
    messages = [queued(session, 1, payload) for session in range(1, 101)]
    for message in messages:
        changes.keep(message, 0)
    stored = changes.take().values
    assert sum(len(value) for value in stored.values() if value) < 2 * len(payload) + 100 * 60
    image = read_image(sorted([FORMAT, *(head(session) for session in range(1, 101)), *stored.items()]))
    payloads = [message.payload for each in image.sessions for _, message in each.queue]
    assert payloads == [payload] * 100
    assert len({id(each) for each in payloads}) == 1

    for message in messages[:99]:
        changes.drop(message)
    assert keys.body_key(1) not in changes.take().values
    changes.drop(messages[99])
    assert changes.take().values == {messages[99].key: None, keys.body_key(1): None}


def test_what_goes_before_it_is_written_is_never_written() -> None:
    changes, message = UncommittedChanges(), queued(1, 1, b"short")
    changes.keep(message, 0)
    changes.assign(message, 7)
    changes.drop(message)
    assert not changes
    assert changes.size == 0


def test_an_entry_that_may_be_written_is_deleted() -> None:
    changes, message = UncommittedChanges(), queued(1, 1, b"short")
    changes.keep(message, 0)
    batch = changes.take()
    changes.put_back(batch)
    changes.assign(message, 7)
    changes.drop(message)
    assert changes.take().values == {message.key: None, keys.identifier_key(message.key): None}


def test_order_of_sending_is_found_again() -> None:
    changes = UncommittedChanges()
    messages = [queued(1, place, b"%d" % place) for place in (1, 2, 3, 4, 5)]
    for message, packet_id in zip(messages, (10, 3, 7, 0, 0), strict=True):
        changes.keep(message, packet_id)
    stored = changes.take().values
    changes.drop(messages[1])
    changes.put(keys.session_prefix(1) + keys.CONFIRMED + b"\0\3", messages[1].key[keys.PLACE_AT :])
    changes.assign(messages[3], 1)
    stored |= changes.take().values
    items = [FORMAT, head(1), *((key, value) for key, value in stored.items() if value is not None)]
    session = read_image(sorted(items)).sessions[0]
    assert [(identifier, each and each.payload) for identifier, each in session.inflight.items()] == [
        (10, b"1"),
        (3, None),
        (7, b"3"),
        (1, b"4"),
    ]
    assert [each.payload for each in session.waiting] == [b"5"]
