"""Text from outside in a log line: visible, on one line, and without a meaning for a terminal."""

from __future__ import annotations

import io
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo_broker.log_text import VisibleFormatter, visible

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING terrazzo.test: ")


def logged(message: str, *args: object, error: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(VisibleFormatter())
    logger = logging.Logger("terrazzo.test")
    logger.addHandler(handler)
    logger.warning(message, *args, exc_info=error)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("a\n2026-01-01 00:00:00,000 ERROR terrazzo: forged", "a\\n2026-01-01 00:00:00,000 ERROR terrazzo: forged"),
        ("\r\x1b[2Jgone", "\\r\\x1b[2Jgone"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("Zürich 测试 😀", "Zürich 测试 😀"),
    ],
)
def test_what_a_reader_would_not_see_is_written_out(foreign: str, shown: str) -> None:
    assert visible(foreign) == shown
    line = logged("client %s is here", foreign)
    assert line.splitlines() == [line.rstrip("\n")]
    assert line.endswith(f"client {shown} is here\n")


@given(st.text())
def test_a_record_is_one_line_of_printable_characters(foreign: str) -> None:
    line = logged("client %s", foreign)
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert LINE.match(line)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e]", line[:-1])
    line.encode()


def test_a_traceback_keeps_its_lines_and_can_not_pass_for_records() -> None:
    forged = "2026-01-01 00:00:00,000 ERROR terrazzo: forged"
    try:
        raise ValueError(f"client\n{forged}\x1b[1m")
    except ValueError as error:
        lines = logged("failed", error=error).splitlines()
    assert LINE.match(lines[0])
    assert lines[1] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in lines[1:])
    assert f"    {forged}\\x1b[1m" in lines
