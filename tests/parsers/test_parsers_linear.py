"""Each parser of foreign input takes time in proportion to the input, however it is made.

CPU time, on sizes that grow fourfold up to the largest body of a request. What is quadratic takes 16 times as long each
time and minutes in the end; what is linear takes milliseconds, so that no busy machine makes a difference.
"""

from __future__ import annotations

import gc
import re
import time
from contextlib import suppress
from typing import Any

import pytest
from parser_kinds import Parser
from parser_table import PARSERS

_MOST_GROWTH = 10  # of four times the size
_MOST_S = 4.0  # of the largest

CASES = [
    pytest.param(parser, number, id=f"{parser.name}-{number}")
    for parser in PARSERS
    for number in range(len(parser.worst))
]


def seconds(parser: Parser[Any], given: Any) -> float:
    """The CPU time of one run."""
    gc.disable()  # what it would look through is whatever this process has run before
    try:
        start_s = time.thread_time()
        with suppress(*parser.raises):
            parser.run(given)
        return time.thread_time() - start_s
    finally:
        gc.enable()


@pytest.mark.parametrize(("parser", "number"), CASES)
def test_it_takes_time_in_proportion(parser: Parser[Any], number: int) -> None:
    before_s = 0.0
    for size in parser.sizes:
        took_s = seconds(parser, parser.worst[number](size))
        most_s = min(_MOST_S, max(before_s, parser.floor_s) * _MOST_GROWTH)
        assert took_s < most_s, f"{size} took {took_s:.2f} s, the size before {before_s:.2f} s"
        before_s = took_s


def test_what_is_quadratic_is_found() -> None:
    careless = re.compile(r"\.+;").search
    shape = {"covers": ("here:careless",), "worst": (lambda n: "." * n,), "samples": (".",)}
    parser = Parser(run=careless, most=2**16, floor_s=0.01, **shape)  # a tenth of a second for the smallest
    with pytest.raises(AssertionError, match="took"):
        test_it_takes_time_in_proportion(parser, 0)
