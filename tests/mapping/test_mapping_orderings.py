"""Orderings of texts: as Python's for what is short, and no dearer for what is long."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapping_rig import Stand

from terrazzo.expressions.expression import parse_expression
from terrazzo.expressions.functions import ORDERED_CHARS

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(-3, 3),
    st.text(alphabet="ab\u4e00\U0001f600", max_size=3),
)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
SAME = "\u4e00" * ORDERED_CHARS


def known(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if left is None or right is None:
        raise TypeError
    return compare(left, right)


def expected(first: str, second: str, a: Any, b: Any, c: Any) -> Any:
    """``a first b second c`` as the language has it: null where what is needed is missing or can't be ordered."""
    try:
        if not known(OPERATORS[first], a, b):
            return False
        return known(OPERATORS[second], b, c)
    except TypeError:
        return None


def evaluated(text: str, **values: Any) -> Any:
    return parse_expression(text).evaluate(values)


@given(st.sampled_from(sorted(OPERATORS)), VALUES, VALUES)
def test_two_are_ordered_as_they_are_in_python(sign: str, a: Any, b: Any) -> None:
    try:
        wanted = known(OPERATORS[sign], a, b)
    except TypeError:
        wanted = None
    assert evaluated(f"A {sign} B", A=a, B=b) == wanted
    assert evaluated(f"(A if true else B) {sign} B", A=a, B=b) == wanted, "of what is computed too"


@given(st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(["<", "<=", ">", ">="]), VALUES, VALUES, VALUES)
def test_chains_are_ordered_as_they_are_in_python(first: str, second: str, a: Any, b: Any, c: Any) -> None:
    wanted = expected(first, second, a, b, c)
    assert evaluated(f"A {first} B {second} C", A=a, B=b, C=c) == wanted
    assert evaluated(f"A {first} (B if true else A) {second} C", A=a, B=b, C=c) == wanted
    assert evaluated(f"not (A {first} B {second} C)", A=a, B=b, C=c) == (None if wanted is None else not wanted)


@given(st.lists(VALUES, min_size=3, max_size=3))
def test_the_least_and_the_greatest(values: list[Any]) -> None:
    a, b, c = values
    for name, find in (("min", min), ("max", max)):
        try:
            wanted = find(values)
        except TypeError:
            wanted = None
        assert evaluated(f"{name}(A, B, C)", A=a, B=b, C=c) == wanted


@pytest.mark.parametrize(
    ("left", "right", "is_less"),
    [
        ("a" * 500, "b" * 500, True),
        ("a" * 127 + "b", "a" * 127 + "c" * 300, True),
        ("\u4e00" * 127 + "\u4e02", "\u4e00" * 127 + "\u4e01" * 300, False),
        (SAME, SAME + "a", True),
        (SAME + "a", SAME, False),
        (SAME + "a", SAME + "b", None),
        (SAME + "a" * 900, SAME + "a" * 900, False),
    ],
)
def test_long_texts_go_by_how_they_begin(left: str, right: str, is_less: bool | None) -> None:
    assert evaluated("A < B", A=left, B=right) is is_less
    assert evaluated("A < B <= B", A=left, B=right) is is_less
    assert evaluated("min(A, B) == A", A=left, B=right) is (None if is_less is None else is_less or left == right)
    assert evaluated("A <= B", A=left, B=right) is (is_less if left != right else True)
    assert evaluated("A == B", A=left, B=right) is (left == right)


@pytest.mark.parametrize("wide", ["x", "\u4e00", "\U0001f600"])
def test_long_texts_are_ordered_in_no_more_time_than_short_ones(wide: str) -> None:
    parts = " or ".join(["A > B", "not B >= min(A, B)", "A > B > B"] * 13)
    rows = [["A", "", "", "STA", "t1.a", ""], ["B", "", "", "STA", "t1.b", ""]]
    stand = Stand(rows + [[f"F{number}", "", "", "FUNC", "", parts] for number in range(200)])
    begin = wide * (ORDERED_CHARS - 1)
    spent_s = []
    for second in range(1, 7):
        points = {"a": begin + "a" + wide * 3_900 + "x" * (second % 2), "b": begin + "\U0001f601" + wide * 3_900}
        began_s = time.thread_time()
        stand.report(points, second)
        spent_s.append(time.thread_time() - began_s)
    assert min(spent_s) < 0.02, "character by character it took 40 ms and more"
