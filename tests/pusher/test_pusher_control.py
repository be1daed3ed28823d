"""A control table as a table: rows and a request in, one terminal's command out."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.command_payload import build_control
from terrazzo.domain.control_table import ControlRow, ControlRowCommand, check_control_row, plan_command
from terrazzo.errors import BadParameter, Skipped
from terrazzo.points import Point, find_point

TERMINALS = ("t1", "plant.t2")
ROWS = [
    ["SP", "Set point", "设定", "OBJ", "$AdapterID-1.SP1", "21.5"],
    ["VALVE", "Valve", "阀", "OBJ", "plant.t2.valve.1", "0"],
    ["FAN", "Fan", "风机", "OBJ", "other.FAN", ""],
    ["Reboot", "Restart", "重启", "APR", "$AdapterID-2", ""],
    ["Diag", "Self-check", "自检", "APR", "plant.t2", ""],
    ["AXUpgrade", "Upgrade", "升级", "APR", "$AdapterID-1", "LUA"],
    ["LOST", "Lost", "无", "OBJ", "$AdapterID-3.X", "1"],
    ["GONE", "Gone", "无", "OBJ", "nobody.X", "1"],
]


def is_known(uid: str) -> bool:
    return uid == "other"


def plan(command: str, value: str = "") -> ControlRowCommand:
    return plan_command(ROWS, command, value, terminals=TERMINALS, is_known=is_known)


@pytest.mark.parametrize(
    ("command", "value", "expected"),
    [
        ("SP", "", ControlRowCommand("t1", "SP1", "21.5")),
        ("SP", "19", ControlRowCommand("t1", "SP1", "19")),
        ("VALVE", "1", ControlRowCommand("plant.t2", "valve.1", "1")),
        ("FAN", "on", ControlRowCommand("other", "FAN", "on")),
        ("Reboot", "", ControlRowCommand("plant.t2", None, "")),
        ("Diag", "", ControlRowCommand("plant.t2", None, "")),
        ("AXUpgrade", "", ControlRowCommand("t1", None, "LUA")),
        ("AXUpgrade", "MCU", ControlRowCommand("t1", None, "MCU")),
    ],
)
def test_rows_lead_to_terminals(command: str, value: str, expected: ControlRowCommand) -> None:
    assert plan(command, value) == expected


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("NONE", "'NONE' is not in the object's control script"),
        ("LOST", "the object has 2 terminals"),
        ("GONE", "names no terminal"),
    ],
)
def test_what_is_not_sent_says_why(command: str, reason: str) -> None:
    with pytest.raises(Skipped, match=reason):
        plan(command)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["SP", "", "", "XYZ", "$AdapterID-1.SP", ""], "column 4: expected OBJ or APR, got 'XYZ'"),
        (["SP", "", "", "OBJ", "", ""], "column 5: is empty"),
        (["SP", "", "", "OBJ", "$AdapterID-0.SP", ""], "column 5: .* numbered from 1"),
        (["SP", "", "", "OBJ", "$Adapter-1.SP", ""], "column 5: .* expected \\$AdapterID-<n>"),
        (["SP", "", "", "OBJ", "$AdapterID-1.", ""], "column 5: .* ends in a dot"),
        (["SP", "", "", "OBJ", "$AdapterID-1", ""], "column 5: .* names no point, and 'SP' is no reserved command"),
    ],
)
def test_rows_that_lead_nowhere_are_refused(row: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_control_row(ControlRow(*row))


def test_rows_that_lead_somewhere_are_taken() -> None:
    for row in ROWS:
        check_control_row(ControlRow(*row))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$AdapterID-1.a.b", Point("t1", "a.b")),
        ("plant.t2", Point("plant.t2", "")),
        ("plant.t2.x", Point("plant.t2", "x")),
        (" t1.x ", Point("t1", "x")),
        ("other.t1.x", Point("other", "t1.x")),
    ],
)
def test_existing_terminals_decide_where_a_uid_ends(text: str, expected: Point) -> None:
    assert find_point(text, TERMINALS, is_known) == expected


@given(st.text(), st.lists(st.text(min_size=1), max_size=3))
def test_any_text_is_a_point_or_a_clear_error(text: str, terminals: list[str]) -> None:
    found: Point | None = None
    with contextlib.suppress(ValueError):  # and nothing else
        found = find_point(text, terminals, lambda uid: False)
    assert found is None or found.terminal_id in terminals


@pytest.mark.parametrize(
    ("point", "value", "payload"),
    [
        ("SP1", "21.5", b'{"Act":"Control","SP1":21.5}'),
        ("Reboot", "1", b'{"Act":"Control","Reboot":1}'),
        ("名", "开", '{"Act":"Control","名":"开"}'.encode()),
    ],
)
def test_a_point_is_set_in_these_bytes(point: str, value: Any, payload: bytes) -> None:
    assert build_control(point, value) == payload


def test_the_key_of_the_action_is_no_point() -> None:
    with pytest.raises(BadParameter, match="'Act' is reserved"):
        build_control("Act", "1")
