"""``logging.format = json``: one object a line, whatever a record holds, and nothing that a terminal would obey."""

from __future__ import annotations

import io
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running import serve
from terrazzo.cli.json_log import JsonFormatter

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0041]")


def line_of(message: Any, *args: Any, **options: Any) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("terrazzo.test")
    logger.addHandler(handler)
    logger.warning(message, *args, **options)
    return stream.getvalue()


def record_of(message: Any, *args: Any, **options: Any) -> dict[str, Any]:
    line = line_of(message, *args, **options)
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert not UNSEEN.search(line[:-1])
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_record() -> None:
    record = record_of("client %s is here", "a-1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("time"))
    assert record == {"level": "warning", "logger": "terrazzo.test", "message": "client a-1 is here"}


@pytest.mark.parametrize(
    "foreign",
    [
        'a\n{"level": "error", "message": "forged"}',
        '"}, {"',
        "\r\x1b[2Jgone\x9b31m\x7f",
        "abc\u202edcba\u2066x\u2069\u2028\u2029\x85",
        "zero\u200bwidth\ufeff \U000e0041",
        "\ud800",
        "Zürich 测试 😀 \\ \\u0041",
    ],
)
def test_text_of_others_comes_back_as_it_was(foreign: str) -> None:
    assert record_of("%s", foreign)["message"] == foreign


@given(st.text())
def test_any_text_comes_back_as_it_was(foreign: str) -> None:
    assert record_of("%s", foreign)["message"] == foreign


def test_what_people_read_stays_as_it_is() -> None:
    assert "Zürich 测试 😀" in line_of("Zürich 测试 😀")


def test_an_exception_is_part_of_the_record() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        told = record_of("failed", exc_info=True)["exception"]
    assert (told["type"], told["message"]) == ("ValueError", "two\nlines")
    assert told["traceback"].startswith("Traceback (most recent call last):\n")
    assert "exception" not in record_of("none", exc_info=False)
    assert "test_an_exception" in record_of("stack", stack_info=True)["stack"]


def test_fields_are_what_was_given_beside_the_message() -> None:
    given_ = {"terminal": "a-1", "count": 3, "part": {"x": [1.5, None, float("nan")]}, "other": Path("/x")}
    fields = record_of("x", extra=given_)["fields"]
    assert fields == {"terminal": "a-1", "count": 3, "part": {"x": [1.5, None, "nan"]}, "other": repr(Path("/x"))}


def test_a_message_whose_values_do_not_fit_is_told_all_the_same() -> None:
    assert record_of("%d reports", "many")["message"].startswith("%d reports (its values can't be put in: ")
    assert record_of({"no": "text"})["message"] == "{'no': 'text'}"


def test_the_platform_logs_so_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data" / "series").write_text("no folder: the start fails after it has logged")
    refused = serve(tmp_path / "data", TERRAZZO_LOGGING__FORMAT="json", TERRAZZO_LOGGING__LEVEL="info")
    assert refused.returncode == 2
    *logged, last = refused.stderr.splitlines()
    assert logged
    assert all(json.loads(line)["logger"].startswith("terrazzo") for line in logged)
    assert last.startswith("terrazzo: ")
