"""Rows until they are written: few large pieces of memory, and the same rows when they come out."""

from __future__ import annotations

import gc
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.bulk.columns import Columns
from terrazzo.bulk.importing import Importer
from terrazzo.bulk.packed_rows import PIECE_ROWS, PackedRows
from terrazzo.bulk.plan import Plan, Planned
from terrazzo.bulk.rows import MOST_ROWS, SourceRow, read_upload
from terrazzo.metadata.definitions.registry import TERMINAL

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(values=st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=5), max_size=20), surplus=st.integers(0, 9))
def test_rows_come_out_as_they_went_in(values: list[dict[str, object]], surplus: int) -> None:
    packed = PackedRows()
    rows = [SourceRow(number, each, surplus) for number, each in enumerate(values, 1)]
    for row in rows:
        packed.append(row)
    assert len(packed) == len(rows)
    assert list(packed) == rows
    assert [row for piece in packed.pieces() for row in piece] == rows


@pytest.mark.parametrize("value", ["x" * 100_000, [["V", "", "", "STA", "a.p", ""]] * 100, 1])
def test_a_piece_is_packed_and_unpacked_in_some_milliseconds(value: object) -> None:
    packed, longest_s = PackedRows(), 0.0
    for number in range(2 * PIECE_ROWS):
        began_s = time.thread_time()
        packed.append(SourceRow(number, {"uid": value}))
        longest_s = max(longest_s, time.thread_time() - began_s)
    pieces = packed.pieces()
    while True:
        began_s = time.thread_time()
        if next(pieces, None) is None:
            break
        longest_s = max(longest_s, time.thread_time() - began_s)
    assert longest_s < 0.05


async def test_rows_that_are_read_are_no_small_objects() -> None:
    """A dozen a row were a million blocks of the interpreter's, between those of everybody else."""
    head = b"uid,name,type,config_id,mode,username,pin\n"
    upload = read_upload(head + b"".join(b"A%d,T,Other,a,pwd,u%d,p%d\n" % (n, n, n) for n in range(MOST_ROWS)))
    importer = new_importer()
    gc.collect()
    before = sys.getallocatedblocks()
    rows = await importer._read(upload, int)
    assert len(rows) == MOST_ROWS
    assert sys.getallocatedblocks() - before < MOST_ROWS / 10


def test_what_a_dry_run_would_write_is_counted_alone() -> None:
    kept, counted = Plan([]), Plan([])
    there = {"name": "n"}
    rows = [
        Planned(1, "a", 1, {"name": "n"}, None),
        Planned(2, "b", 1, {"name": "n"}, there),
        Planned(3, "c", 1, {"name": "m"}, there),
    ]
    for row in rows:
        kept.add(row, keeps=True)
        counted.add(row, keeps=False)
    assert kept.writes == [rows[0], rows[2]]
    assert counted.writes == []
    for plan in (kept, counted):
        assert (plan.created, plan.updated, plan.unchanged) == (1, 1, 1)


def new_importer() -> Importer:
    nobody: object = None
    return Importer(
        nobody,  # type: ignore[arg-type]
        Columns(TERMINAL),
        nobody,  # type: ignore[arg-type]
        nobody,  # type: ignore[arg-type]
        mode="create",
        dry_run=True,
        on_progress=lambda *_: None,
    )
