"""Balances: coefficients are found, and what can't be told says why."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terrazzo.analysis.regression import fit


def test_coefficients_of_a_plane_are_found() -> None:
    columns = {"A": [float(n) for n in range(20)], "B": [float(n * n % 7) for n in range(20)]}
    columns["T"] = [3 + 2 * a - 0.5 * b for a, b in zip(columns["A"], columns["B"], strict=True)]
    found = fit("T", ["A", "B"], columns)
    said = json.loads(found.parameters())
    assert said.keys() == {"intercept", "coefficients", "points"}
    assert math.isclose(said["intercept"], 3, rel_tol=1e-6)
    assert math.isclose(said["coefficients"]["A"], 2, rel_tol=1e-6)
    assert math.isclose(said["coefficients"]["B"], -0.5, rel_tol=1e-6)
    assert (said["points"], found.correlation_text()) == (20, "1.000000")


def test_the_correlation_with_one_input_has_its_sign() -> None:
    assert fit("T", ["A"], {"T": [4, 3, 2, 1], "A": [1, 2, 3, 4]}).correlation_text() == "-1.000000"


def test_rows_in_which_a_code_has_no_number_are_left_out() -> None:
    columns: dict[str, list[Any]] = {"T": [1, None, "x", 4, 6, 9], "A": [1, 2, 3, None, 6, 9]}
    assert fit("T", ["A"], columns).points == 3


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"T": [], "A": []}, "points in common: 0, needed: 3"),
        ({"T": [1, 2], "A": [1, 2]}, "points in common: 2, needed: 3"),
        ({"T": [1, 2, 3], "A": [5, 5, 5]}, "A does not change"),
        ({"T": [5, 5, 5], "A": [1, 2, 3]}, "T does not change"),
        ({"T": [1, 2, 3], "A": [1e308, -1e308, 0]}, "numbers too large or too close to each other to reckon with"),
    ],
)
def test_what_can_not_be_told_says_why(columns: dict[str, list[Any]], reason: str) -> None:
    found = fit("T", ["A"], columns)
    assert (found.reason, found.correlation_text()) == (reason, "")
    assert json.loads(found.parameters())["reason"] == reason


def test_inputs_that_depend_on_each_other_have_no_coefficients() -> None:
    a = [1.0, 2.0, 3.0, 5.0, 8.0]
    found = fit("T", ["A", "B"], {"T": a, "A": a, "B": [2 * each + 1 for each in a]})
    assert (found.reason, found.coefficients) == ("the inputs depend on each other", {})


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63) | st.none() | st.booleans()


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
def test_no_numbers_make_it_fail(rows: list[tuple[Any, Any, Any]]) -> None:
    columns = {name: [row[place] for row in rows] for place, name in enumerate("TAB")}
    found = fit("T", ["A", "B"], columns)
    said = json.loads(found.parameters())
    assert found.correlation is None or -1.000001 <= found.correlation <= 1.000001
    assert bool(said.get("reason")) == (found.correlation is None)
