"""One row of a mapping table: three shapes, told apart by their length, and six kinds.

====== ====================================================================================
6      code, English label, Chinese label, kind, point or source, expression or argument
7      the same, and a condition
8      code, English label, Chinese label, kind, trigger, source, function, argument
====== ====================================================================================
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import msgspec

from terrazzo.expressions.expression import Expression, expression_of, parse_expression
from terrazzo.expressions.functions import as_number
from terrazzo.expressions.tokens import ExpressionError
from terrazzo.expressions.tree import Call, Comparison, Constant, Name, Node, X, with_name
from terrazzo.points import parse_point
from terrazzo.reasons import say, told_by

MAX_CODE = 64
MAX_LABEL = 255
MAX_WINDOW_S = 366 * 86_400
WIDTHS = (6, 7, 8)
RESERVED = frozenset({X, "time", "Time", "true", "false", "True", "False", "and", "or", "not", "if", "else"})


class RowKind(Enum):
    """The kind of a row: what it computes or raises."""

    STA = "STA"  # a variable from a point
    EVNT = "EVNT"  # an event
    FUNC = "FUNC"  # a variable from other variables
    COL = "COL"  # a variable from what was collected offline
    STT = "STT"  # a rolling statistic of a variable


STATISTICS = frozenset({"avg", "sum", "min", "max", "count", "delta"})
_OPERATORS = {"=": "==", "<>": "!=", **{operator: operator for operator in ("==", "!=", ">", ">=", "<", "<=")}}


class RowError(ValueError):
    """A row that is wrong; ``str()`` names row and column, counted from 1. Column 0: the row as a whole."""

    def __init__(self, row: int, column: int, reason: str) -> None:
        at = say("row_column_wrong", row=row, column=column, reason=reason)
        super().__init__(at if column else say("row_wrong", row=row, reason=reason))
        self.row, self.column, self.reason = row, column, reason


class MappingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One parsed row; its references to other rows are unchecked. ``expression`` None: the value is used as it is."""

    number: int  # from 1
    code: str
    label_en: str
    label_cn: str
    kind: RowKind
    point: str = ""  # STA, EVNT: as written
    project: str = ""  # COL
    expression: Expression | None = None
    condition: Expression | None = None  # EVNT
    cycled: bool = False  # recorded with each report, not only when it changes
    interval_us: int = 0  # FUNC, EVNT: computed once in each interval of this length; 0: with each report
    window_us: int = 0  # STT
    fn: str = ""  # STT
    of: str = ""  # STT
    expression_column: int = 6
    condition_column: int = 7

    @property
    def names(self) -> list[tuple[str, int]]:
        """The codes of other rows that the row uses (not ``x``), each with its column."""
        found = [(name, self.expression_column) for name in (self.expression.names if self.expression else ())]
        found += [(name, self.condition_column) for name in (self.condition.names if self.condition else ())]
        found += [(self.of, self.expression_column)] if self.of else []
        return [(name, column) for name, column in found if name != X]


def parse_row(cells: Any, number: int) -> MappingRow:
    """Parses the row ``number`` of a mapping.

    Raises:
        RowError: names what is wrong, and the column.
    """
    if not isinstance(cells, list) or len(cells) not in WIDTHS:
        got = f"{len(cells)}" if isinstance(cells, list) else "something else"
        raise RowError(number, 0, say("mapping_expected_row", got=got))
    return _RowReader(cells, number).read()


class _RowReader:
    """Reads the cells of one row; columns are counted from 1."""

    def __init__(self, cells: list[Any], number: int) -> None:
        self._cells = cells
        self._number = number
        self._is_long = len(cells) == 8
        self._source = 6 if self._is_long else 5
        self._argument = 8 if self._is_long else 6

    def read(self) -> MappingRow:
        code, kind = self._code(), self._kind()
        fields = {RowKind.STA: self._sta, RowKind.EVNT: self._evnt, RowKind.FUNC: self._func, RowKind.COL: self._col}
        given = fields.get(kind, self._stt)()
        if kind is not RowKind.EVNT and len(self._cells) == 7 and self._text(7):
            raise self._error(7, say("mapping_condition_without_event"))
        return MappingRow(
            number=self._number,
            code=code,
            label_en=self._label(2),
            label_cn=self._label(3),
            kind=kind,
            cycled=self._trigger() == "Cycled",
            expression_column=self._argument,
            condition_column=len(self._cells),
            **given,
        )

    def _error(self, column: int, reason: str) -> RowError:
        return RowError(self._number, column, reason)

    def _text(self, column: int) -> str:
        cell = self._cells[column - 1]
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            raise self._error(column, say("expected_text"))
        return str(cell).strip()

    def _code(self) -> str:
        cell = self._cells[0]
        code = cell.strip() if isinstance(cell, str) else ""
        if not code:
            raise self._error(1, say("expected_a_code"))
        if len(code) > MAX_CODE:
            raise self._error(1, say("longer_than", most=MAX_CODE))
        if not code.isprintable() or set("{}") & set(code):
            raise self._error(1, say("contains_brace"))
        if code in RESERVED:
            raise self._error(1, say("code_reserved", code=code))
        return code

    def _label(self, column: int) -> str:
        label = self._text(column)
        if len(label) > MAX_LABEL:
            raise self._error(column, say("longer_than", most=MAX_LABEL))
        return label

    def _kind(self) -> RowKind:
        try:
            return RowKind(self._text(4))
        except ValueError:
            expected = ", ".join(kind.value for kind in RowKind)
            raise self._error(4, say("expected_one_of_got", expected=expected, got=f"{self._text(4)[:20]!r}")) from None

    def _trigger(self) -> str:
        if not self._is_long:
            return "Changed"
        trigger = self._text(5) or "Changed"
        if trigger not in ("Changed", "Cycled"):
            raise self._error(5, say("expected_trigger", got=trigger[:20]))
        return trigger

    def _function(self, *allowed: str) -> str:
        """The function: column 7 of a long row; a short row has the first of ``allowed``."""
        if not self._is_long:
            return allowed[0]
        function = self._text(7) or allowed[0]
        if function not in allowed:
            raise self._error(7, say("expected_function", expected=" or ".join(allowed), got=function[:20]))
        return function

    def _expression(self, column: int) -> Expression | None:
        text = self._text(column)
        if not text:
            return None
        try:
            return parse_expression(text)
        except ExpressionError as error:
            raise self._error(column, told_by(error)) from None

    def _point(self) -> str:
        text = self._text(self._source)
        try:
            position, rest = parse_point(text)
        except ValueError as error:
            raise self._error(self._source, told_by(error)) from None
        if not rest or (position is None and "." not in rest.strip(".")):
            raise self._error(self._source, say("expected_point_behind", text=text))
        return text

    def _interval(self) -> int:
        """The interval of a Cycled row in microseconds, where its source is a number; else 0."""
        text = self._text(self._source)
        number = as_number(text) if text and self._trigger() == "Cycled" else None
        return 0 if number is None else self._seconds(number)

    def _seconds(self, number: float) -> int:
        if not 0 < number <= MAX_WINDOW_S:
            raise self._error(self._source, say("expected_window_up_to", most=MAX_WINDOW_S))
        return max(1, math.floor(number * 1e6))

    def _sta(self) -> dict[str, Any]:
        self._function("@Expr")
        return {"point": self._point(), "expression": self._expression(self._argument)}

    def _func(self) -> dict[str, Any]:
        self._function("@Expr")
        expression = self._expression(self._argument)
        if expression is None:
            raise self._error(self._argument, say("func_needs_expression"))
        if X in expression.names:
            raise self._error(self._argument, say("func_has_no_x"))
        interval_us = self._interval()
        if not interval_us and self._text(self._source):
            expected = "an interval in seconds, or nothing" if self._trigger() == "Cycled" else "nothing"
            raise self._error(self._source, say("func_has_no_point", expected=expected))
        return {"expression": expression, "interval_us": interval_us}

    def _col(self) -> dict[str, Any]:
        self._function("@Expr")
        project = self._text(self._source)
        if not project:
            raise self._error(self._source, say("expected_collecting_project"))
        return {"project": project, "expression": self._expression(self._argument)}

    def _stt(self) -> dict[str, Any]:
        self._function("@Expr", "@Stat")
        number = as_number(self._text(self._source)) if self._text(self._source) else None
        if number is None:
            raise self._error(self._source, say("expected_window"))
        given = self._structure(self._argument)
        if not isinstance(given, dict) or not isinstance(given.get("of"), str) or set(given) != {"fn", "of"}:
            raise self._error(self._argument, say("expected_statistic_object"))
        if given["fn"] not in STATISTICS:
            raise self._error(self._argument, say("statistic_expected", expected=", ".join(sorted(STATISTICS))))
        return {"window_us": self._seconds(number), "fn": given["fn"], "of": given["of"].strip()}

    def _structure(self, column: int) -> Any:
        """A JSON value, given as such or as JSON text."""
        cell = self._cells[column - 1]
        if not isinstance(cell, str):
            return cell
        try:
            return msgspec.json.decode(cell)
        except (msgspec.DecodeError, RecursionError):
            return None

    def _evnt(self) -> dict[str, Any]:
        source, interval_us = self._text(self._source), self._interval()
        is_code = self._is_long and not interval_us and not set("$.") & set(source)
        point = "" if interval_us or not source or is_code else self._point()
        column = len(self._cells)
        condition = self._long_condition() if self._is_long else self._expression(column)
        expression = self._expression(6) if column == 7 else None
        if condition is None:
            raise self._error(column, say("event_needs_condition"))
        if is_code and source:
            text = condition.text if self._text(7) == "@Condition" else f"{source}{condition.text.removeprefix(X)}"
            condition = expression_of(text, with_name(condition.tree, X, source))
        for place, used in ((column, condition), (6, expression)):
            if not point and used is not None and X in used.names:
                raise self._error(place, say("x_without_point"))
        return {"point": point, "interval_us": interval_us, "condition": condition, "expression": expression}

    def _long_condition(self) -> Expression | None:
        function = self._function("@Condition", "@Compare", "==")
        if function == "@Condition":
            return self._expression(8)
        if function == "==":
            return _compare("==", self._operand(self._cells[7]))
        given = self._structure(8)
        if not isinstance(given, list) or len(given) != 2 or given[0] not in list(_OPERATORS):
            raise self._error(8, say("expected_comparison", operators=" ".join(_OPERATORS)))
        return _compare(_OPERATORS[given[0]], self._operand(given[1]))

    def _operand(self, cell: Any) -> Any:
        if not isinstance(cell, str | int | float) or (isinstance(cell, float) and not math.isfinite(cell)):
            raise self._error(8, say("expected_value_to_compare"))
        number = as_number(cell)
        return cell.strip() if number is None and isinstance(cell, str) else number


def _compare(operator: str, value: Any) -> Expression:
    """The expression that compares ``x`` with a value: as numbers where both read as numbers, else as texts."""
    given: tuple[Node, ...] = (Name(X), Constant(value))
    tree: Node
    if operator in ("==", "!="):
        tree = Comparison(Call("same", given), (("==", Constant(operator == "==")),))
    else:
        tree = Comparison(Call("plain", given[:1]), ((operator, Constant(value)),))
    return expression_of(f"x {operator} {value!r}" if isinstance(value, str) else f"x {operator} {value}", tree)
