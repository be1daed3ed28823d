"""Frames: every operation comes back as it was, in as many parts as it takes, and nothing else is taken for one."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.ports.store import Record, Seen
from terrazzo.replication.checked_bytes import FrameDamaged, FrameTooNew
from terrazzo.replication.frame import (
    HEADER_BYTES,
    Appended,
    Assembly,
    Began,
    Dropped,
    DroppedSeries,
    Frame,
    Operation,
    appended,
    decode_frame,
    decode_operation,
    encode_frame,
    encode_frames,
    records_of,
    replaced,
)

times = st.integers(0, 2**62)
names = st.text(max_size=20)
records = st.lists(st.builds(Record, names, times, st.binary(max_size=60)), max_size=12)
notes = st.dictionaries(names, st.none() | st.binary(max_size=20), max_size=4)


@st.composite
def replacements(draw: st.DrawFn) -> Operation:
    name = draw(names)
    found = [Record(name, draw(times), draw(st.binary(max_size=30))) for _ in range(draw(st.integers(0, 4)))]
    return replaced(name, draw(times), draw(times), found, Seen(draw(st.lists(names, max_size=3)), draw(times)))


operations = st.one_of(
    st.builds(Began, names, names),
    st.builds(appended, records, notes),
    replacements(),
    st.builds(Dropped, times),
    st.builds(DroppedSeries, times, st.lists(names)),
)


def _assembled(frames: list[bytes]) -> list[Operation]:
    assembly = Assembly()
    found = [assembly.add(decode_frame(each)) for each in frames]
    return [each for each in found if each is not None]


@given(operations, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 90))
def test_operations_come_back_from_any_number_of_parts(
    operation: Operation, epoch: int, number: int, room: int
) -> None:
    frames = encode_frames(operation, epoch=epoch, number=number, most_bytes=HEADER_BYTES + room)
    assert all(len(each) <= HEADER_BYTES + room for each in frames)
    assert [decode_frame(each)[:4] for each in frames] == [(epoch, number, n, len(frames)) for n in range(len(frames))]
    assert _assembled(frames) == [operation]


@given(records, notes)
def test_records_come_back_in_their_order(found: list[Record], some: dict[str, bytes | None]) -> None:
    operation = appended(found, some)
    assert records_of(operation) == found
    assert len(operation.series) == len({each.series for each in found})


@given(st.binary(max_size=80))
def test_other_bytes_are_no_frames(data: bytes) -> None:
    with contextlib.suppress(FrameDamaged):
        decode_frame(data)
    with contextlib.suppress(FrameDamaged):
        decode_operation(data)


@given(operations, st.data())
def test_each_changed_bit_is_seen(operation: Operation, data: st.DataObject) -> None:
    (frame,) = encode_frames(operation, epoch=3, number=7, most_bytes=1 << 20)
    at = data.draw(st.integers(0, len(frame) * 8 - 1))
    changed = bytearray(frame)
    changed[at // 8] ^= 1 << at % 8
    with pytest.raises(FrameDamaged):
        decode_frame(bytes(changed))


def test_a_later_version_asks_for_an_upgrade() -> None:
    (frame,) = encode_frames(Dropped(1), epoch=1, number=1, most_bytes=1 << 20)
    with pytest.raises(FrameTooNew, match="version 2, and this program reads 1: upgrade this node"):
        decode_frame(frame[:3] + b"\x02" + frame[4:])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"TZ", "shorter than its header"),
        (b"x" * 40, "begins with b'xxx'"),
        (encode_frame(Frame(1, 1, 2, 2, b"")), "part 2 of 2"),
        (encode_frame(Frame(1, 1, 0, 0, b"")), "part 0 of 0"),
        (encode_frame(Frame(1, 1, 0, 5_000, b"")), "part 0 of 5000"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(bad: bytes, reason: str) -> None:
    with pytest.raises(FrameDamaged, match=reason):
        decode_frame(bad)


def test_a_record_of_no_series_is_refused() -> None:
    (frame,) = encode_frames(Appended(["g/a/t"], [(1, 5, b"{}")]), epoch=1, number=1, most_bytes=1 << 20)
    with pytest.raises(FrameDamaged, match="a series that it doesn't name"):
        _assembled([frame])


def test_parts_that_a_dead_leader_left_are_dropped_and_others_are_refused() -> None:
    record = [Record("g/a/t", 5, b"x" * 100)]
    left = encode_frames(appended(record, {}), epoch=1, number=4, most_bytes=HEADER_BYTES + 50)
    (began,) = encode_frames(Began("b", "1"), epoch=2, number=1, most_bytes=1 << 20)
    assert _assembled([left[0], began]) == [Began("b", "1")]
    with pytest.raises(FrameDamaged, match="follows no part"):
        _assembled([left[1]])
    with pytest.raises(FrameDamaged, match="part 2 of operation 4 follows no part"):
        _assembled([left[0], left[2]])
    (same,) = encode_frames(Dropped(1), epoch=1, number=5, most_bytes=1 << 20)
    with pytest.raises(FrameDamaged, match="operation 5 begins before 4 is whole"):
        _assembled([left[0], same])


def test_what_is_too_large_or_of_another_series_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than the log takes in one piece"):
        encode_frames(appended([Record("g", 1, b"x" * 9_000)], {}), epoch=1, number=1, most_bytes=HEADER_BYTES + 2)
    with pytest.raises(ValueError, match="m/2: expected records of m/1"):
        replaced("m/1", 0, 1, [Record("m/2", 0, b"")], Seen([], 0))
