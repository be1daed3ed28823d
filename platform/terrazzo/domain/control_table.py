"""An object's control table: maps a command and a value to one terminal's message (section 2 "Pusher"). Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from terrazzo.domain.command_payload import FIRMWARE_UNITS, MAX_TEXT, RESERVED, check_command
from terrazzo.domain.script_rows import check_distinct, check_texts
from terrazzo.errors import BadParameter, Skipped
from terrazzo.points import find_point, parse_point
from terrazzo.reasons import say


class ControlType(Enum):
    """Field 4 of a row: what the value is sent to."""

    POINT = "OBJ"  # to one of the object's terminals, with a point key
    TERMINAL = "APR"  # to the terminal itself


class ControlRow(NamedTuple):
    """One row of a control script, 6 texts (section 2 "Pusher", rule 1)."""

    code: str
    label_en: str
    label_cn: str
    kind: str
    point: str
    default: str


class ControlRowCommand(NamedTuple):
    """The command for one terminal that a row leads to. ``point`` is None for a reserved command."""

    terminal_id: str
    point: str | None
    value: str


def check_control_rows(rows: Any) -> None:
    """Checks that a control script has rows of 6 texts, each command once.

    Raises:
        ValueError: names row and column, from 1, and the reason.
    """
    check_texts(rows, 6)
    check_distinct(rows)
    for position, row in enumerate(rows, 1):
        try:
            check_control_row(ControlRow(*row))
        except ValueError as error:
            raise ValueError(say("control_row", row=position, reason=error)) from None


def check_control_row(row: ControlRow) -> None:
    """Checks one row.

    Raises:
        ValueError: no request could use the row; names the column, from 1, and the reason.
    """
    try:
        check_command(row.code)
    except BadParameter as error:
        raise ValueError(say("control_column_1", reason=error.reason)) from None
    if row.kind not in {kind.value for kind in ControlType}:
        raise ValueError(say("control_expected_kind", got=row.kind))
    try:
        position, rest = parse_point(row.point)
    except ValueError as error:
        raise ValueError(say("control_column_5", reason=error)) from None
    keyless = not rest if position is not None else "." not in rest
    if row.code == "AXUpgrade" and row.default not in ("", *FIRMWARE_UNITS):
        raise ValueError(say("control_expected_unit", expected=" or ".join(FIRMWARE_UNITS), got=row.default))
    if len(row.default) > MAX_TEXT:
        raise ValueError(say("control_default_too_long", most=MAX_TEXT))
    if keyless and row.code not in RESERVED:
        raise ValueError(say("control_no_point", point=row.point, code=row.code))


def plan_command(
    rows: Sequence[Sequence[str]],
    command: str,
    value: str,
    *,
    terminals: Sequence[str],
    is_known: Callable[[str], bool],
) -> ControlRowCommand:
    """The message for a command (rules 1, 2, 6 and 7): the request's value, or the row's default without one.

    Raises:
        Skipped: the script has no such command, or its row leads nowhere.
    """
    row = next((ControlRow(*row) for row in rows if row[0] == command), None)
    if row is None:
        raise Skipped(say("command_not_in_script", command=command))
    try:
        point = find_point(row.point, terminals, is_known)
    except ValueError as error:
        raise Skipped(say("command_control_point", command=command, reason=error)) from None
    addresses_terminal = row.kind == ControlType.TERMINAL.value or not point.key
    if addresses_terminal and command in RESERVED:
        return ControlRowCommand(point.terminal_id, None, value or row.default)
    if not point.key:
        raise Skipped(say("command_names_no_point", command=command, point=row.point))
    return ControlRowCommand(point.terminal_id, point.key, value or row.default)
