"""What is longer than it may be is refused where it is saved, by row and column; what is stored works on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from row_checks import check_calculate_rows, check_mapping_rows
from terrazzo.analysis.statistics_rows import parse_statistics_rows
from terrazzo.api.transports.byte_ranges import ByteRange, choose_range
from terrazzo.database.conditions import Selection
from terrazzo.database.port import Conditions
from terrazzo.domain.control_table import check_control_rows
from terrazzo.domain.file_kinds import clean_name
from terrazzo.domain.mapping_table import parse_table
from terrazzo.domain.script_rows import (
    MAX_CELL,
    Duration,
    check_retainer_rows,
    check_statistics_rows,
    parse_duration,
)
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import MAPPING, OBJECT
from terrazzo.points import find_point
from terrazzo.times import UTC, parse_time
from terrazzo_broker.access.password_hash import parse_hash

LONG = "v" * (MAX_CELL + 1)
FITS = "v" * (MAX_CELL - len("duration(a==)"))

ROWS: list[tuple[Callable[[Any], None], list[Any], int]] = [
    (check_statistics_rows, ["a", f"duration(a=={FITS}v)", "A"], 2),
    (check_statistics_rows, ["a", "avg", LONG], 3),
    (check_retainer_rows, ["a", "", "", LONG, ""], 4),
    (check_control_rows, ["go", "", "", "OBJ", "T." + LONG, ""], 5),
    (check_calculate_rows, ["a", "1" + " " * MAX_CELL], 2),
    (check_mapping_rows, ["A", "", "", "STA", "T." + LONG, ""], 5),
    (check_mapping_rows, ["A", "", "", "EVNT", "", "T.p", "==", LONG], 8),
]


@pytest.mark.parametrize(("check", "row", "column"), ROWS)
def test_a_cell_that_is_too_long_is_refused(check: Callable[[Any], None], row: list[Any], column: int) -> None:
    with pytest.raises(ValueError, match=rf"^row 1, column {column}: at most 2000 characters, got \d+$"):
        check([row])


def test_expressions_are_bounded_together() -> None:
    """A thousand of the longest took seconds of the event loop, at each start again."""
    chain = "+".join(["A"] * 200)
    rows = [["A", "", "", "STA", "T.p", ""], *([f"F{n}", "", "", "FUNC", "", chain] for n in range(999))]
    start_s = time.thread_time()
    with pytest.raises(ValueError, match=r"^row 127: more than 50000 names, numbers and signs in all rows to here$"):
        check_mapping_rows(rows)
    with pytest.raises(ValueError, match=r"^row 126: more than 50000 names"):
        check_calculate_rows([[row[0], chain] for row in rows])
    assert time.thread_time() - start_s < 1
    check_mapping_rows(
        [
            ["A", "", "", "STA", "T.p", "x * 0.1 + 1"],
            *([*row[:5], "A * 2 + 1"] for row in rows[1:]),
        ]
    )


def test_a_cell_that_just_fits_is_taken() -> None:
    check_statistics_rows([["a", f"duration(a=={FITS})", "A"]])


def test_stored_rows_that_are_too_long_work_on() -> None:
    assert parse_statistics_rows([["a", f"duration(a=={LONG})", ""]]).watched == {"a": (LONG,)}
    assert parse_statistics_rows([["a", "duration(a==v" + " " * 20_000, "A"]]).measures[0].code == "A"
    assert len(parse_table([["A", "", "", "STA", "T." + LONG, ""]]).rows) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("duration(RUN==1)", Duration("RUN", "1")),
        ("  duration( A b == 'on' )\n", Duration("A b", "on")),
        ('duration(a=="o\'n")', Duration("a", "o'n")),
        ("duration(a== )", Duration("a", " ")),
        ("duration(a==)", None),
        ("duration(==1)", None),
        ("duration( ==1)", None),
        ("duration(a=1)", None),
        ("duration(a===1)", None),
        ("duration(a==1==2)", None),
        ("duration(a==(1))", None),
        ("duration (a==1)", None),
        ("duration(a==1", None),
        ("avg", None),
    ],
)
def test_durations(text: str, expected: Duration | None) -> None:
    assert parse_duration(text) == expected


def test_terminals_are_found_by_what_a_uid_may_be() -> None:
    uid = "a." * 31 + "ab"
    assert len(uid) == 64
    assert find_point(f"{uid}.p.q", [uid, "a"], lambda _: False) == (uid, "p.q")
    assert find_point(uid, [uid], lambda _: False) == (uid, "")
    assert find_point(f"a.{'.' * 9}x", ["a"], lambda _: False) == ("a", f"{'.' * 9}x")
    asked: list[str] = []
    with pytest.raises(ValueError, match="names no terminal"):
        find_point("." * 100_000, [], lambda each: bool(asked.append(each)))
    assert 1 <= len(asked) <= 65


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=0-9", ByteRange(206, 0, 10)),
        (" Bytes = 5 - ", ByteRange(206, 5, 100)),
        ("bytes= - 7 ", ByteRange(206, 93, 100)),
        ("bytes=-", ByteRange(200, 0, 100)),
        ("bytes= 1 2 - 3", ByteRange(200, 0, 100)),
        ("bytes=00000000000000000000-9", ByteRange(200, 0, 100)),
    ],
)
def test_ranges(text: str, expected: ByteRange) -> None:
    assert choose_range({"Range": text}, size=100, etag="e") == expected


def test_many_values_of_many_conditions_cost_no_second() -> None:
    """300 conditions of 33 uids each, nearly as many as there may be; each was compared with all the others."""
    selection = Selection(OBJECT, {"mapping_id": MAPPING.table}, UTC)
    values = tuple(f"uid{number}" for number in range(33))
    start_s = time.thread_time()
    listed = (("mapping_id", "in", list(values)),) * 100
    clauses = selection.where(Conditions(listed, listed, (("mapping_id", values),) * 100))
    assert time.thread_time() - start_s < 0.5
    assert len(clauses) == 201


def test_a_file_name_is_measured_before_it_is_normalized() -> None:
    assert clean_name("a/" * 10_000 + "e\u0301" * 128) == "é" * 128  # folders don't count
    with pytest.raises(BadParameter, match="at most 128 characters, got 129"):
        clean_name("e\u0301" * 129)
    with pytest.raises(BadParameter, match="at most 128 characters, got 513"):
        clean_name("a" * 513)


def test_iterations_that_begin_small_are_no_way_around_the_limit() -> None:
    with pytest.raises(ValueError, match="iterations: expected 1 to 1000000"):
        parse_hash("$7$000000000001999999$AAAA$AAAA")


def test_what_a_time_was_is_shown_in_part() -> None:
    with pytest.raises(ValueError, match="is not a time") as error:
        parse_time("9" * 100_000)
    assert len(str(error.value)) < 200
