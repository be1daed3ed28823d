"""Files made to be costly: what is read of them is bounded, and they are refused with what is wrong."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.bulk.columns import Columns
from terrazzo.bulk.importing import Importer
from terrazzo.bulk.lookahead import Lookahead
from terrazzo.bulk.plan import Planner
from terrazzo.bulk.report import MOST_ISSUES, Issues
from terrazzo.bulk.rows import (
    MOST_CELL_CHARACTERS,
    MOST_COLUMNS,
    MOST_ROWS,
    SourceRow,
    UploadedRows,
    _BoundedLines,
    decoded,
    read_text,
    read_upload,
)
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import in_turns
from terrazzo.metadata.definitions.registry import TERMINAL

MIB = 1 << 20


def read(data: bytes) -> list[SourceRow]:
    return list(read_upload(data).rows)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b",".join(b"c%d" % n for n in range(40_000)), "row 1: 40,000 columns, at most 500"),
        (b"x" * (33 * MIB), "row 1: not CSV: longer than"),
        (b"," * (33 * MIB), "row 1: not CSV: longer than"),
        (b"," * MIB, "row 1: not CSV: more than 50,000 times ','"),
        (b'"' + b"\n" * (2 * MIB), "row 1: not CSV: field larger than"),
        (b'"' + b'x\n""' * MIB, "row 1: not CSV: longer than"),
        (b"uid,name\na," + b"x" * (2 * MIB), "row 2: not CSV: longer than"),
        (b"uid,name\na" + b"," * (MIB // 2), "row 2: not CSV: more than 50,000 times ','"),
        (b"uid," + b"n" * 201, "row 1, column 2: a name of 201 characters"),
        (b"[" + b"{}," * (32 * MIB // 3), f"more than {MOST_ROWS} rows"),
        (b"[" + b"{}" * 10, "expected , or ] after object 1"),
        (b"[{}] {}", "there is more after its end"),
        (b"[{},]", "object 2"),
        (b"[" * 100_000, "object 1: nested too deeply"),
        (b'[{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}]", "object 1: nested too deeply"),
        (b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "line 1: not a JSON object: nested too deeply"),
        (b"[1]", "object 1"),
        (b'[{"a": NaN}]', "object 1"),
        (b'[{"a": "' + b"x" * (3 * MIB) + b'"}]', "object 1: not JSON, or longer than"),
        (b"[" + b" " * (3 * MIB) + b"{}]", "object 1"),
        (b'[{"a":' + b"[" * MIB, "object 1"),
        (b'{"a": "' + b"x" * (2 * MIB) + b'"}', "line 1: longer than"),
        (json.dumps([dict.fromkeys(map(str, range(501)), 1)]).encode(), "row 1: 501 columns, at most 500"),
        (json.dumps(dict.fromkeys(map(str, range(501)), 1)).encode(), "row 1: 501 columns, at most 500"),
    ],
)
def test_what_is_refused_names_the_row_and_the_bound(data: bytes, reason: str) -> None:
    with pytest.raises(BadParameter) as refused:
        read(data)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 500


def test_an_array_is_read_as_far_as_its_rows_are_taken() -> None:
    """An object costs a hundred times its text in memory: what is behind the last row is never made."""
    rows = read_upload(b"[" + b'{"uid": "a"},' * 2_000_000).rows
    assert [row.values for row in islice(rows, 3)] == [{"uid": "a"}] * 3


def test_cells_as_long_as_they_may_be_and_rows_as_wide_are_read() -> None:
    long = "x" * (MOST_CELL_CHARACTERS - 100)
    wide = {f"c{n}": str(n) for n in range(MOST_COLUMNS)}
    as_csv = f"{','.join(wide)}\n{','.join(wide.values())}\n"
    assert read(as_csv.encode())[0].values == wide
    assert read(f"uid,script\na,{long}\nb,{long}\n".encode())[1].values == {"uid": "b", "script": long}
    for indent in (None, 4):
        rows = [{"uid": str(n), "script": long} for n in range(5)]
        assert [row.values for row in read(json.dumps(rows, indent=indent).encode())] == rows


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    rows=st.lists(st.dictionaries(st.text(max_size=5), values, max_size=4), max_size=8), indent=st.none() | st.just(2)
)
def test_arrays_are_read_as_they_were_written(rows: list[dict[str, Any]], indent: int | None) -> None:
    for ascii_only in (True, False):
        data = json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode()
        assert [row.values for row in read(data)] == rows


@given(data=st.binary(max_size=200) | st.text('[]{}",:\\ue\n0a1-', max_size=60).map(str.encode))
def test_whatever_comes_is_rows_or_a_clear_refusal(data: bytes) -> None:
    for start in (b"", b"[", b"{", b"[{", b"a,b\n"):
        with suppress(BadParameter):
            assert all(isinstance(row, SourceRow) for row in read(start + data))


def test_thousands_of_unknown_columns_are_listed_to_a_bound() -> None:
    issues = Issues()
    Columns(TERMINAL).check_names((f"{n}" * 500 for n in range(100_000)), issues, row=1)
    assert len(issues.listed) == MOST_ISSUES
    assert issues.omitted == 100_000 - MOST_ISSUES
    assert all(len(issue.column) == 200 for issue in issues.listed)


def rows_of(count: int) -> Iterator[SourceRow]:
    return read_upload(b"uid\n" + b"\n".join(b"%d" % n for n in range(count))).rows


def test_the_last_row_that_may_be_there_is_read_and_the_next_refused() -> None:
    assert sum(1 for _ in rows_of(MOST_ROWS)) == MOST_ROWS
    with pytest.raises(BadParameter, match="more than 100000 rows"):
        for _ in rows_of(MOST_ROWS + 1):
            pass


@given(text=st.text("ab,\r\n", max_size=60))
def test_lines_end_as_they_do_for_csv(text: str) -> None:
    assert list(_BoundedLines(Lookahead([text]), ",")) == list(io.StringIO(text, newline=""))


@given(pieces=st.lists(st.text("ab", max_size=5)), asked=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_a_text_in_pieces_is_seen_as_far_as_is_asked(pieces: list[str], asked: list[tuple[int, int]]) -> None:
    text, rest = Lookahead(pieces), "".join(pieces)
    for characters, read in asked:
        stretch = text.fill(characters)
        ahead = stretch[text.at :]
        assert rest.startswith(ahead)
        assert len(ahead) >= min(characters, len(rest))
        read = min(read, len(ahead))
        text.at, rest = text.at + read, rest[read:]


cells = st.lists(st.text('ab,"', max_size=4), min_size=3, max_size=3)


@given(
    rows=st.lists(cells, min_size=1, max_size=9),
    form=st.sampled_from(["csv", "array", "lines"]),
    size=st.integers(1, 30),
)
def test_rows_are_the_same_in_whatever_pieces_they_come(rows: list[list[str]], form: str, size: int) -> None:
    given_rows = [dict(zip("xyz", row, strict=True)) for row in rows]
    if form == "csv":
        file = io.StringIO()
        csv.writer(file).writerows([list("xyz"), *rows])
        text = file.getvalue()
    else:
        text = json.dumps(given_rows) if form == "array" else "\n".join(map(json.dumps, given_rows))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("terrazzo.bulk.rows._ROW_CHARACTERS", 60)  # of which the longest row here has not as many
        assert list(read_text(*pieces).rows) == list(read_text(text).rows)
    shown = [{name: cell for name, cell in row.items() if cell or form != "csv"} for row in given_rows]
    assert [row.values for row in read_text(text).rows] == [row for row in shown if row]


async def test_a_large_text_is_never_put_together() -> None:
    """One string of 32 MiB was 46 ms of the event loop, and 126 on a slow machine."""
    data = b"x," * (16 * MIB)
    pieces = await in_turns(decoded(data))
    assert max(map(len, pieces)) <= MIB
    with pytest.raises(BadParameter, match="longer than"):
        read_text(*pieces)


def test_the_lines_of_a_large_text_are_not_made_before_they_are_read() -> None:
    """A copy of 32 MiB of text took 170 ms of the event loop and 128 MiB of memory."""
    text = "x," * (16 * MIB)
    began_s = time.thread_time()
    tracemalloc.start()
    try:
        with pytest.raises(csv.Error, match="longer than"):
            next(_BoundedLines(Lookahead([text]), ","))
        assert tracemalloc.get_traced_memory()[1] < 6 * MIB
    finally:
        tracemalloc.stop()
    assert time.thread_time() - began_s < 0.05


async def test_the_keys_of_many_rows_are_read_in_turns() -> None:
    repository: Any = SimpleNamespace(entity=SimpleNamespace(uid_name="uid"))
    nobody: Any = None
    planner = Planner(repository, Columns(TERMINAL), nobody, Issues(), upserts=False)
    task = asyncio.create_task(planner._uids([SourceRow(n, {"uid": f"a{n}"}) for n in range(MOST_ROWS)]))
    longest_s = 0.0
    while not task.done():
        began_s = time.thread_time()
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.thread_time() - began_s)
    assert len(await task) == MOST_ROWS
    assert longest_s < 0.05


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@given(text=st.text(max_size=40), piece=st.integers(1, 8))
def test_a_text_is_decoded_in_steps_as_in_one(encoding: str, text: str, piece: int) -> None:
    data = text.encode(encoding)
    steps = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("terrazzo.bulk.rows._PIECE_BYTES", piece)
        reading = decoded(bytearray(data))
        while True:
            try:
                next(reading)
            except StopIteration as end:
                found = "".join(end.value)
                break
            steps += 1
    assert found == text if encoding != "utf-8" else found == text.removeprefix("\ufeff")
    assert steps == -(-len(data) // piece)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("piece", [4, 5, 6, 7, 1_000])
def test_the_byte_that_is_no_utf8_is_named_wherever_it_is(
    mark: bytes, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = mark + "uid\u00e9\u20ac".encode() + b"\xe2\x82(" + b"x" * 20
    monkeypatch.setattr("terrazzo.bulk.rows._PIECE_BYTES", piece)
    with pytest.raises(BadParameter, match=f"byte {len(mark) + 8}\\b"):
        read_upload(data)


class _Values(dict[str, Any]):
    freed = 0

    def __del__(self) -> None:
        _Values.freed += 1


async def _refused_rows() -> None:
    """Reads as many rows as may be, and one that ends the import."""

    def rows() -> Iterator[SourceRow]:
        yield from (SourceRow(number, _Values()) for number in range(MOST_ROWS))
        raise BadParameter("rows", "one too many")

    nobody: Any = None
    importer = Importer(nobody, Columns(TERMINAL), nobody, nobody, mode="create", dry_run=True, on_progress=unheard)
    with pytest.raises(BadParameter, match="one too many"):
        await importer.run(UploadedRows(None, rows()))


def unheard(*_: object) -> None: ...


async def test_many_rows_are_freed_in_turns() -> None:
    _Values.freed = most = 0
    task = asyncio.create_task(_refused_rows())
    while not task.done():
        before = _Values.freed
        await asyncio.sleep(0)
        most = max(most, _Values.freed - before)
    await task
    assert _Values.freed == MOST_ROWS
    assert most < MOST_ROWS / 2, "as many as take some milliseconds"
