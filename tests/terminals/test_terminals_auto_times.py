"""The file of ``auto`` logins: read back after a crash, kept short, never in the way of a login."""

from __future__ import annotations

import errno
import os
import stat

from terrazzo import line_file
from terrazzo.terminals.auto_times import KEPT_S, AutoTimes

NOW_S = 1_780_000_000


def test_it_is_read_back_without_having_been_closed(tmp_path):
    path = tmp_path / "auto-logins"
    first = AutoTimes(path, now_s=NOW_S)
    first.accept("t1", NOW_S, now_s=NOW_S)
    first.accept("a terminal", NOW_S - 5, now_s=NOW_S)
    first.accept("t1", NOW_S + 1, now_s=NOW_S)
    second = AutoTimes(path, now_s=NOW_S + 10)
    assert (second.last("t1"), second.last("a terminal"), second.last("t2")) == (NOW_S + 1, NOW_S - 5, 0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first.close()
    second.close()


def test_what_cannot_matter_any_more_is_left_out(tmp_path):
    path = tmp_path / "auto-logins"
    times = AutoTimes(path, now_s=NOW_S)
    times.accept("old", NOW_S, now_s=NOW_S)
    times.close()
    AutoTimes(path, now_s=NOW_S + KEPT_S + 1).close()
    assert path.read_text() == ""


def test_broken_lines_are_passed_over(tmp_path):
    path = tmp_path / "auto-logins"
    path.write_bytes(f"\n{NOW_S}\nx t2\n\xff\xfe\n{NOW_S} t1\n{NOW_S + 1} t".encode("latin-1"))
    times = AutoTimes(path, now_s=NOW_S)
    assert times.last("t1") == NOW_S
    times.close()


def test_the_file_stays_short(tmp_path, monkeypatch):
    monkeypatch.setattr(line_file, "_COMPACT_LINES", 100)
    path = tmp_path / "auto-logins"
    times = AutoTimes(path, now_s=NOW_S)
    for step in range(1000):
        times.accept(f"t{step % 10}", NOW_S + step, now_s=NOW_S + step)
        assert path.read_text().count("\n") <= 121
    times.close()
    again = AutoTimes(path, now_s=NOW_S + 1000)
    assert [again.last(f"t{number}") for number in range(10)] == [NOW_S + 990 + number for number in range(10)]
    again.close()


def test_a_full_disk_does_not_keep_terminals_out(tmp_path, monkeypatch, caplog):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    times = AutoTimes(tmp_path / "auto-logins", now_s=NOW_S)
    monkeypatch.setattr(os, "write", full)
    times.accept("t1", NOW_S, now_s=NOW_S)
    monkeypatch.undo()
    assert times.last("t1") == NOW_S
    assert "No space left" in caplog.text
    times.close()
