"""Frames of fronts: each report comes back as it was, no frame is too large, and nothing else is taken for one."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.ports.stream import LogState, LogWentBack
from terrazzo.replication.checked_bytes import FrameDamaged, FrameTooNew
from terrazzo.replication.in_frame import (
    HEADER_BYTES,
    InBatch,
    InFrame,
    InFrames,
    InMessage,
    InTopic,
    Numbered,
    decode_in_frame,
    encode_in_frame,
    most_in_frame,
)
from terrazzo.replication.in_position import MOST_WRITERS, InPosition, join_in, newest_writers

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
topics = st.builds(InTopic, texts, texts, texts, st.sampled_from("ranvip"), texts, st.booleans())
messages = st.builds(InMessage, topics, st.binary(max_size=300), st.none() | st.binary(max_size=40), st.none() | texts)
batches = st.lists(st.tuples(texts, st.integers(0, 2**63), st.lists(messages, min_size=1, max_size=6)), max_size=8)


def _read(frame: InFrame) -> list[tuple[str, int, InMessage]]:
    found = []
    for batch in frame.batches:
        for index, (place, payload) in enumerate(zip(batch.topics, batch.payloads, strict=True)):
            correlation, reject = batch.correlations.get(index), batch.rejects.get(index)
            message = InMessage(frame.topics[place], payload, correlation, reject)
            found.append((batch.client_id, batch.arrived_us, message))
    return found


@pytest.mark.parametrize("topic_bytes", [64, 1_024, 65_535])
@pytest.mark.parametrize("letter", ["a", "\u6e29", "\U0001f321"])
def test_the_largest_report_that_limits_allow_finds_room(topic_bytes: int, letter: str) -> None:
    """One that finds none would be tried again for ever, and nothing else of its front acknowledged."""
    packet_bytes = 1 << 20
    levels = letter * ((topic_bytes - 16) // len(letter.encode()))
    uid = "u" * 64
    topic = InTopic(f"g/{uid}/r/{levels}", f"g/{uid}#123456/r/{levels}", uid, f"r/{levels}", f"x/{uid}#123456", False)
    frames = InFrames("f" * 32, most_in_frame(packet_bytes, topic_bytes))
    frames.begin_batch(uid, "123456", 3, 4)
    frames.add(InMessage(topic, b"p" * packet_bytes, reject="r" * 1_000))
    assert len(encode_in_frame(Numbered(1, 1, frames.done[-1]))) <= most_in_frame(packet_bytes, topic_bytes)


def test_a_position_knows_the_fronts_that_started_last() -> None:
    """It is in each commit: fronts whose names are made up for each start don't make it longer for ever."""
    few = {"f1": (5, 1), "f2": (3, 9)}
    assert newest_writers(few) == few
    many = {f"front-{number}": (number, 7) for number in range(MOST_WRITERS + 5)} | {"front-2": (10**6, 1)}
    kept = newest_writers(many)
    assert set(many) - set(kept) == {"front-0", "front-1", "front-3", "front-4", "front-5"}
    assert kept["front-2"] == (10**6, 1)


@given(batches, st.integers(2_000, 6_000))
def test_reports_come_back_in_order_from_frames_of_any_size(
    given_batches: list[tuple[str, int, list[InMessage]]], most_bytes: int
) -> None:
    frames = InFrames("front-a", most_bytes)
    for client_id, arrived_us, each in given_batches:
        frames.begin_batch(client_id, "7", 3, arrived_us)
        for message in each:
            frames.add(message)
    encoded = [encode_in_frame(Numbered(2, number, frame)) for number, frame in enumerate(frames.done, 1)]
    assert all(len(each) <= most_bytes for each in encoded)
    decoded = [decode_in_frame(each) for each in encoded]
    assert [(each.epoch, each.number, each.frame.node) for each in decoded] == [
        (2, number, "front-a") for number in range(1, len(decoded) + 1)
    ]
    expected = [(client_id, time_us, message) for client_id, time_us, each in given_batches for message in each]
    assert [message for each in decoded for message in _read(each.frame)] == expected


runs = st.lists(st.tuples(texts, topics, st.lists(st.binary(max_size=300), min_size=1, max_size=20)), max_size=8)


@given(runs, st.integers(2_000, 6_000))
def test_a_run_is_what_its_reports_are_one_by_one(
    given_runs: list[tuple[str, InTopic, list[bytes]]], most_bytes: int
) -> None:
    together, one_by_one = InFrames("f", most_bytes), InFrames("f", most_bytes)
    for client_id, topic, payloads in given_runs:
        together.add_batch(InBatch(client_id, "7", 3, 4, payloads=payloads[:]), topic)
        one_by_one.begin_batch(client_id, "7", 3, 4)
        for payload in payloads:
            one_by_one.add(InMessage(topic, payload))
    assert together.done == one_by_one.done


def test_a_report_that_no_frame_has_room_for_is_refused() -> None:
    frames = InFrames("a", 4_000)
    frames.begin_batch("t", "1", 0, 1)
    with pytest.raises(ValueError, match="5,000 bytes is larger"):
        frames.add(InMessage(InTopic("g/t/r", "g/t/r", "t", "r", "x/t", answers=False), b"x" * 5_000))


@given(st.binary(max_size=80))
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with contextlib.suppress(FrameDamaged):
        decode_in_frame(data)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_frame_is_refused(place: int, change: int) -> None:
    frame = InFrame(
        "a", [InTopic("g/t/r", "g/t/r", "t", "r", "x/t", answers=False)], [InBatch("t", "1", 0, 5, [0], [b"{}"])]
    )
    data = bytearray(encode_in_frame(Numbered(1, 1, frame)))
    data[place % len(data)] ^= change
    with pytest.raises(FrameDamaged):
        decode_in_frame(bytes(data))


def test_later_versions_and_places_that_are_not_there_are_told_apart() -> None:
    data = bytearray(encode_in_frame(Numbered(1, 1, InFrame("a"))))
    data[3] = 2
    with pytest.raises(FrameTooNew, match="version 2"):
        decode_in_frame(bytes(data))
    with pytest.raises(FrameDamaged, match="shorter"):
        decode_in_frame(bytes(HEADER_BYTES - 1))
    with pytest.raises(FrameDamaged, match="of a topic that it doesn't name"):
        decode_in_frame(encode_in_frame(Numbered(1, 1, InFrame("a", [], [InBatch("t", "1", 0, 5, [0], [b"{}"])]))))


def test_a_store_goes_on_in_its_own_log_alone() -> None:
    position = InPosition("then", 7, {"a": (1, 4)}, {9: [1, 0]})
    note = position.encode()
    assert join_in(note, LogState("then", 5, 12, 0, 0)) == position
    assert join_in(note, LogState("then", 8, 7, 0, 0)) == position
    assert join_in(None, LogState("now", 1, 3, 0, 0)) == InPosition("now", 0)
    for found, said in (
        (LogState("now", 5, 12, 0, 0), "made at now"),
        (LogState("then", 5, 6, 0, 0), "ends at frame 6"),
        (LogState("then", 9, 12, 0, 0), "begins at frame 9"),
    ):
        with pytest.raises(LogWentBack, match=said):
            join_in(note, found)
    with pytest.raises(LogWentBack, match="begins at frame 2"):
        join_in(None, LogState("now", 2, 3, 0, 0))
    with pytest.raises(LogWentBack, match="can't be read"):
        join_in(b"?", LogState("then", 5, 12, 0, 0))
