"""A report of a test reaches the process that prints it, whatever text it shows."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("told", ["a", "\udce9", "line\n\ud800 end"])
def test_text_that_is_no_utf_8_can_be_told(pytestconfig: pytest.Config, told: str) -> None:
    report = pytest.TestReport(
        nodeid="a",
        location=("a.py", 1, "a"),
        keywords={told: 1},
        outcome="failed",
        longrepr=told,
        when="call",
        sections=[("Captured log call", told)],
    )
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    json.dumps(data, ensure_ascii=False).encode()
    assert data["longrepr"] == told.encode(errors="backslashreplace").decode()
    again = pytestconfig.hook.pytest_report_from_serializable(config=pytestconfig, data=data)
    assert again.sections == [("Captured log call", data["longrepr"])]
