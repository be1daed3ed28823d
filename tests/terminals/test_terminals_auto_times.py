"""The file of ``auto`` logins: read back after a crash, kept short, never in the way of a login."""

from __future__ import annotations

import errno
import os
import stat

from terrazzo import line_file
from terrazzo.terminals.auto_times import KEPT_S, AutoTimes

NOW_MS = 1_780_000_000_000


def test_it_is_read_back_without_having_been_closed(tmp_path):
    path = tmp_path / "auto-logins"
    first = AutoTimes(path, now_ms=NOW_MS)
    first.accept("t1", NOW_MS, now_ms=NOW_MS)
    first.accept("a terminal", NOW_MS - 5, now_ms=NOW_MS)
    first.accept("t1", NOW_MS + 1, now_ms=NOW_MS)
    second = AutoTimes(path, now_ms=NOW_MS + 10)
    assert (second.last_ms("t1"), second.last_ms("a terminal"), second.last_ms("t2")) == (NOW_MS + 1, NOW_MS - 5, 0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first.close()
    second.close()


def test_what_cannot_matter_any_more_is_left_out(tmp_path):
    path = tmp_path / "auto-logins"
    times = AutoTimes(path, now_ms=NOW_MS)
    times.accept("old", NOW_MS, now_ms=NOW_MS)
    times.close()
    AutoTimes(path, now_ms=NOW_MS + KEPT_S * 1_000 + 1).close()
    assert path.read_text() == ""


def test_broken_lines_are_passed_over(tmp_path):
    path = tmp_path / "auto-logins"
    path.write_bytes(f"\n{NOW_MS}\nx t2\n\xff\xfe\n{NOW_MS} t1\n{NOW_MS + 1} t".encode("latin-1"))
    times = AutoTimes(path, now_ms=NOW_MS)
    assert times.last_ms("t1") == NOW_MS
    times.close()


def test_the_file_stays_short(tmp_path, monkeypatch):
    monkeypatch.setattr(line_file, "_COMPACT_LINES", 100)
    path = tmp_path / "auto-logins"
    times = AutoTimes(path, now_ms=NOW_MS)
    for step in range(1000):
        times.accept(f"t{step % 10}", NOW_MS + step, now_ms=NOW_MS + step)
        assert path.read_text().count("\n") <= 121
    times.close()
    again = AutoTimes(path, now_ms=NOW_MS + 1000)
    assert [again.last_ms(f"t{number}") for number in range(10)] == [NOW_MS + 990 + number for number in range(10)]
    again.close()


def test_a_full_disk_does_not_keep_terminals_out(tmp_path, monkeypatch, caplog):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    times = AutoTimes(tmp_path / "auto-logins", now_ms=NOW_MS)
    monkeypatch.setattr(os, "write", full)
    times.accept("t1", NOW_MS, now_ms=NOW_MS)
    monkeypatch.undo()
    assert times.last_ms("t1") == NOW_MS
    assert "No space left" in caplog.text
    times.close()


def test_seconds_of_former_versions_are_read_as_what_they_are(tmp_path):
    path = tmp_path / "auto-logins"
    path.write_text(f"{NOW_MS // 1_000} t1\n{NOW_MS + 5} t1\n{NOW_MS // 1_000 + 1} t2\n")
    times = AutoTimes(path, now_ms=NOW_MS)
    assert (times.last_ms("t1"), times.last_ms("t2")) == (NOW_MS + 5, NOW_MS + 1_000)
    times.close()
