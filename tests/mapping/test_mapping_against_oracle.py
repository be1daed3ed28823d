"""Random mappings and messages: the compiled engine says what a slow, plain interpreter says."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_oracle import Oracle, Rule, text, value_of
from mapping_rig import T0, Stand

from length import rounds
from terrazzo.expressions.expression import parse_expression

TERMINALS = ["t1", "t2"]
POINTS = ["p", "q", "deep.r"]
NAMES = ["A", "B", "C"]

numbers = st.integers(-100, 100) | st.integers(-400, 400).map(lambda number: number / 4)
wild = st.sampled_from([0, 0.0, -0.0, 1e308, -1e308, 5e-324, 2**62, -(2**63), 2**63 - 1, 63, 64])
values = numbers | st.booleans() | st.sampled_from(["on", "off", "7", ""]) | st.none()


def nodes(names: list[str], constants: Any) -> st.SearchStrategy[Any]:
    """Expressions over these names."""
    named = [st.sampled_from(names).map(lambda name: ("name", name))] if names else []
    leaves = st.one_of(
        *named,
        *named,
        constants.map(lambda number: ("number", min(abs(number), 2**63 - 1))),
        st.booleans().map(lambda flag: ("flag", flag)),
    )
    return st.recursive(leaves, lambda inner: _larger(inner, leaves), max_leaves=12)


def _larger(inner: Any, leaves: Any) -> st.SearchStrategy[Any]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "**"])
    comparisons = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    texts = st.sampled_from(["on", "off"]).map(lambda word: ("text", word))
    one, two = st.lists(inner, min_size=1, max_size=1), st.lists(inner, min_size=2, max_size=2)
    return st.one_of(
        st.tuples(st.just("reckon"), operators, inner, inner),
        st.tuples(st.just("compare"), comparisons, inner, inner | texts),
        st.tuples(st.just("logic"), st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("sign"), st.sampled_from(["-", "+"]), inner),
        st.tuples(st.just("if"), inner | texts, inner, inner),
        st.tuples(st.just("call"), st.sampled_from(["abs", "round", "floor", "ceil", "sqrt", "log", "exp"]), one),
        st.tuples(st.just("call"), st.sampled_from(["min", "max", "bit", "round"]), two),
    )


def alike(one: Any, other: Any) -> bool:
    """Equal, and of one kind."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-12)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@settings(max_examples=rounds(100, 1000), deadline=None)
@given(nodes(NAMES, numbers | wild), st.dictionaries(st.sampled_from(NAMES), values | wild))
def test_expressions(node: Any, names: dict[str, Any]) -> None:
    expression = parse_expression(text(node))
    expected = value_of(node, names)
    assert alike(expression.evaluate(names), expected), text(node)


@st.composite
def rules(draw: Any) -> list[Rule]:
    """A mapping: variables, then what follows from them, then events."""
    made: list[Rule] = []
    for number in range(draw(st.integers(1, 4))):
        names = ["x", *[f"S{each}" for each in range(number + 2)][:4]]
        known = [rule.code for rule in made]
        expression = draw(st.none() | nodes(["x", *known], numbers)) if names else None
        made.append(_fed(draw, f"S{number}", "STA", expression, cycled=draw(st.booleans())))
    for number in range(draw(st.integers(0, 3))):
        known = [rule.code for rule in made]
        if draw(st.booleans()):
            made.append(
                Rule(
                    f"W{number}",
                    "STT",
                    cycled=draw(st.booleans()),
                    window_us=draw(st.sampled_from([6, 60, 600])) * 1_000_000,
                    fn=draw(st.sampled_from(["avg", "sum", "min", "max", "count", "delta"])),
                    of=draw(st.sampled_from(known)),
                )
            )
        else:
            interval_us = draw(st.sampled_from([0, 0, 10_000_000]))
            cycled = bool(interval_us) or draw(st.booleans())
            made.append(
                Rule(
                    f"F{number}",
                    "FUNC",
                    expression=draw(nodes(known, numbers)),
                    cycled=cycled,
                    interval_us=interval_us,
                )
            )
    known = [rule.code for rule in made]
    for number in range(draw(st.integers(0, 2))):
        made.append(_fed(draw, f"E{number}", "EVNT", draw(nodes(["x", *known], numbers))))
    return made


def _fed(draw: Any, code: str, kind: str, expression: Any, **more: Any) -> Rule:
    terminal, point = draw(st.sampled_from(TERMINALS)), draw(st.sampled_from(POINTS))
    return Rule(code, kind, terminal, point, expression, **more)


messages = st.lists(
    st.tuples(
        st.sampled_from(TERMINALS),
        st.dictionaries(st.sampled_from(POINTS), values, max_size=3),
        st.integers(-3, 12),  # seconds since the newest message, so that some are late
    ),
    max_size=25,
)


def nested(points: dict[str, Any]) -> dict[str, Any]:
    """As a terminal sends it."""
    flat = {name: value for name, value in points.items() if "." not in name}
    return {**flat, "deep": {"r": points["deep.r"]}} if "deep.r" in points else flat


@settings(max_examples=rounds(25, 500), deadline=None)
@given(rules(), messages)
def test_mappings(made: list[Rule], sent: list[tuple[str, dict[str, Any], int]]) -> None:
    oracle, rows = Oracle(made), [rule.row(TERMINALS) for rule in made]
    stand = Stand(rows, terminals=TERMINALS)
    newest_s = 0
    for number, (terminal, points, ahead_s) in enumerate(sent):
        at_s = newest_s + ahead_s
        newest_s = max(newest_s, at_s)
        expected, raised = oracle.take(terminal, points, T0 + at_s * 1_000_000)
        found = stand.report(nested(points), at_s, terminal) or {}
        assert set(found) == set(expected), (rows, number)
        assert all(alike(found[code], value) for code, value in expected.items()), (rows, number)
        assert stand.events() == raised, (rows, number)
        if number == len(sent) // 2:
            stand = stand.restart(rows)
