"""Log lines that peers can provoke: one of a kind in an interval, and the next tells how many it stands for."""

from __future__ import annotations

import logging

import pytest

from terrazzo_broker.limited_log import RateLimit, limited_logger


@pytest.fixture
def lines():
    """A logger with a clock of its own: ``lines.now_s``, ``lines.log``, ``lines.written``."""

    class Lines(logging.Handler):
        now_s = 100.0

        def emit(self, record: logging.LogRecord) -> None:
            self.written.append(record.getMessage())

    handler = Lines()
    handler.written = []
    handler.log = logging.Logger("test")
    handler.log.addHandler(handler)
    handler.log.addFilter(RateLimit(10.0, lambda: handler.now_s))
    return handler


def test_one_of_a_kind_in_an_interval(lines):
    for number in range(5):
        lines.log.warning("%s: refused", number)
        lines.log.warning("other %d", number)
    assert lines.written == ["0: refused", "other 0"]
    lines.now_s = 109.9
    lines.log.warning("%s: refused", "late")
    assert len(lines.written) == 2
    lines.now_s = 110.0
    lines.log.warning("%s: refused", "next")
    lines.log.warning("%s: refused", "again")
    assert lines.written[2:] == ["next: refused (and 5 more like it before)"]
    lines.now_s = 120.0
    lines.log.warning("%s: refused", "x")
    lines.now_s = 130.0
    lines.log.warning("%s: refused", "y")
    assert lines.written[3:] == ["x: refused (and 1 more like it before)", "y: refused"]


def test_memory_is_bounded(lines):
    for number in range(10_000):
        lines.log.warning(f"template {number}")
    (limit,) = lines.log.filters
    assert len(limit._seen) <= 256
    assert len(lines.written) == 10_000


def test_a_logger_is_limited_once():
    assert limited_logger("terrazzo_broker.admission") is limited_logger("terrazzo_broker.admission")
    assert len(logging.getLogger("terrazzo_broker.admission").filters) == 1
