"""A slow, plain interpreter of mapping rows: what ``docs/mapping.md`` says, and nothing of the compiled engine.

It takes rows as random tests make them: expressions as nested tuples, which ``text`` writes down for the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

LARGEST = 1.7976931348623157e308
STEPS = 60


class Missing(Exception):
    """The expression is null."""


def text(node: Any) -> str:
    """The expression as it is written; parentheses everywhere."""
    kind = node[0]
    if kind in ("number", "flag"):
        return repr(node[1]).lower() if kind == "flag" else repr(node[1])
    if kind == "text":
        return f"'{node[1]}'"
    if kind == "name":
        return node[1]
    if kind == "sign":
        return f"({node[1]}{text(node[2])})"
    if kind == "not":
        return f"(not {text(node[1])})"
    if kind == "if":
        return f"({text(node[1])} if {text(node[2])} else {text(node[3])})"
    if kind == "call":
        return f"{node[1]}({', '.join(text(each) for each in node[2])})"
    return f"({text(node[2])} {node[1]} {text(node[3])})"


def value_of(node: Any, names: dict[str, Any]) -> Any:
    """The value of an expression, None where it is null."""
    try:
        found = _value(node, names)
    except (Missing, ArithmeticError, ValueError):
        return None
    if isinstance(found, float):
        return found if -LARGEST <= found <= LARGEST else None
    if isinstance(found, int) and not isinstance(found, bool) and not -(2**63) <= found < 2**63:
        try:
            return float(found)
        except OverflowError:
            return None
    return found


def _value(node: Any, names: dict[str, Any]) -> Any:
    kind = node[0]
    if kind in ("number", "text", "flag"):
        return node[1]
    if kind == "name":
        if names.get(node[1]) is None:
            raise Missing
        return names[node[1]]
    if kind == "sign":
        operand = _number(node[2], names)
        return -operand if node[1] == "-" else +operand
    if kind == "not":
        return not _value(node[1], names)
    if kind == "if":
        return _value(node[1], names) if _value(node[2], names) else _value(node[3], names)
    if kind == "logic":
        left = _value(node[2], names)
        return _value(node[3], names) if bool(left) == (node[1] == "and") else left
    if kind == "compare":
        return _compare(node[1], _value(node[2], names), _value(node[3], names))
    if kind == "call":
        return _call(node[1], node[2], names)
    return _reckon(node[1], _number(node[2], names), _number(node[3], names))


def _number(node: Any, names: dict[str, Any]) -> Any:
    found = _value(node, names)
    if isinstance(found, str):
        raise Missing
    return int(found) if isinstance(found, bool) else found


def _compare(operator: str, left: Any, right: Any) -> bool:
    if operator == "==":
        return left == right
    if operator == "!=":
        return left != right
    if isinstance(left, str) != isinstance(right, str):
        raise Missing
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]


def _reckon(operator: str, left: Any, right: Any) -> Any:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right
    if operator == "//":
        return left // right
    if operator == "%":
        return left % right
    if isinstance(left, int) and isinstance(right, int) and right >= 0 and abs(left).bit_length() * right <= 64:
        return left**right
    found = float(left) ** float(right)
    if isinstance(found, complex):
        raise Missing
    return found


def _call(function: str, arguments: list[Any], names: dict[str, Any]) -> Any:
    if function in ("min", "max"):
        found = [_value(each, names) for each in arguments]
        if len({isinstance(each, str) for each in found}) > 1:
            raise Missing
        return {"min": min, "max": max}[function](found)
    numbers = [_number(each, names) for each in arguments]
    if function == "bit":
        if any(number != int(number) for number in numbers) or not 0 <= numbers[1] <= 63:
            raise Missing
        return int(numbers[0]) // 2 ** int(numbers[1]) % 2
    if function == "abs":
        return abs(*numbers)
    if function == "round" and len(numbers) == 2:
        if numbers[1] not in range(-15, 16):
            raise Missing
        return round(numbers[0], int(numbers[1])) if numbers[1] else _whole(round(numbers[0]))
    whole = {"round": round, "floor": math.floor, "ceil": math.ceil}
    if function in whole:
        return _whole(whole[function](*numbers))
    return {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}[function](*numbers)


def _whole(number: Any) -> Any:
    return number if -(2**63) <= number < 2**63 else float(number)


@dataclass
class Rule:
    """One row."""

    code: str
    kind: str
    terminal: str = ""
    point: str = ""
    expression: Any = None
    cycled: bool = False
    interval_us: int = 0
    window_us: int = 0
    fn: str = ""
    of: str = ""

    def row(self, terminals: list[str]) -> list[Any]:
        """As a mapping has it."""
        trigger = "Cycled" if self.cycled else "Changed"
        written = "" if self.expression is None else text(self.expression)
        head = [self.code, self.code, self.code, self.kind]
        place = f"$AdapterID-{terminals.index(self.terminal) + 1}.{self.point}" if self.terminal else ""
        if self.kind == "EVNT":
            return [*head, place, "", written]
        if self.kind == "STT":
            return [*head, trigger, str(self.window_us / 1e6), "", {"fn": self.fn, "of": self.of}]
        source = place or (f"{self.interval_us / 1e6}" if self.interval_us else "")
        return [*head, trigger, source, "@Expr", written]


@dataclass
class Oracle:
    """One object. ``rules``: derived ones stand after those that they name."""

    rules: list[Rule]
    values: dict[str, Any] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    edges: dict[str, bool] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[tuple[int, int, Any]]] = field(default_factory=dict)  # time, arrival, value
    derived_us: int = -1
    arrivals: int = 0

    def take(self, terminal: str, points: dict[str, Any], time_us: int) -> tuple[dict[str, Any], list[str]]:
        """The variables to record and the events raised."""
        out: dict[str, Any] = {}
        fed = self._points(terminal, points, time_us, out)
        if fed and time_us >= self.derived_us:
            self.derived_us = time_us
            self._derived(time_us, out)
        raised = self._events(time_us) if fed else []
        return {**self._late(terminal, points, time_us), **out}, raised

    def _fed_by(self, terminal: str, points: dict[str, Any]) -> list[Rule]:
        return [rule for rule in self.rules if rule.terminal == terminal and rule.point in points]

    def _points(self, terminal: str, points: dict[str, Any], time_us: int, out: dict[str, Any]) -> bool:
        fed = False
        for rule in self._fed_by(terminal, points):
            if time_us < self.times.get(rule.code, -1):
                continue
            fed = True
            self.times[rule.code] = time_us
            x = points[rule.point]
            if rule.kind == "EVNT":
                self.values["x of " + rule.code] = x
                continue
            self._set(rule, self._value(rule, x), time_us, out)
        return fed

    def _value(self, rule: Rule, x: Any) -> Any:
        return x if rule.expression is None else value_of(rule.expression, {**self.values, "x": x})

    def _set(self, rule: Rule, value: Any, time_us: int, out: dict[str, Any]) -> None:
        before = self.values.get(rule.code)
        is_same = before == value and isinstance(before, bool) == isinstance(value, bool)
        self.values[rule.code] = value
        if rule.cycled or not is_same:
            out[rule.code] = value
        self._sample(rule.code, time_us, value)

    def _sample(self, code: str, time_us: int, value: Any) -> None:
        self.arrivals += 1
        if value is not None and not isinstance(value, str):
            self.samples.setdefault(code, []).append((time_us, self.arrivals, +value))

    def _due(self, rule: Rule, time_us: int) -> bool:
        if not rule.interval_us:
            return True
        if time_us // rule.interval_us <= self.marks.get(rule.code, -1):
            return False
        self.marks[rule.code] = time_us // rule.interval_us
        return True

    def _derived(self, time_us: int, out: dict[str, Any]) -> None:
        for rule in self.rules:
            if rule.kind == "FUNC" and self._due(rule, time_us):
                self._set(rule, value_of(rule.expression, self.values), time_us, out)
                self.times[rule.code] = time_us
            if rule.kind == "STT":
                self._set(rule, self._statistic(rule, time_us), time_us, out)
                self.times[rule.code] = time_us

    def _statistic(self, rule: Rule, time_us: int) -> Any:
        step_us = max(1, rule.window_us // STEPS)
        first = time_us // step_us - STEPS
        found = sorted(each for each in self.samples.get(rule.of, ()) if first < each[0] // step_us)
        values = [value for _, _, value in found]
        if rule.fn == "count":
            return len(values)
        if not values:
            return None
        earliest = min(found, key=lambda each: each[:2])[2]
        results = {
            "avg": sum(values) / len(values),
            "sum": sum(values),
            "min": min(values),
            "max": max(values),
            "delta": values[-1] - earliest,
        }
        return results[rule.fn]

    def _events(self, time_us: int) -> list[str]:
        raised = []
        for rule in self.rules:
            if rule.kind == "EVNT" and self._due(rule, time_us):
                met = value_of(rule.expression, {**self.values, "x": self.values.get("x of " + rule.code)})
                if met and not self.edges.get(rule.code):
                    raised.append(rule.code)
                if met is not None:
                    self.edges[rule.code] = bool(met)
        return raised

    def _late(self, terminal: str, points: dict[str, Any], time_us: int) -> dict[str, Any]:
        """What an older message says by itself."""
        late = [
            rule for rule in self._fed_by(terminal, points) if rule.kind != "EVNT" and time_us < self.times[rule.code]
        ]
        if not late:
            return {}
        alone = Oracle([rule for rule in self.rules if rule.kind in ("STA", "FUNC") and not rule.interval_us])
        out, _ = alone.take(terminal, points, time_us)
        found = {code: value for code, value in out.items() if value is not None and time_us < self.times.get(code, -1)}
        for code, value in found.items():
            self._sample(code, time_us, value)
        return found
