"""``make torture``'s kills, full and slow disks in short; what it counts, and that it goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torture
from disk_rounds import ENOUGH, fill_again_and_again, slow_again_and_again
from kill_rounds import kill_again_and_again
from outcomes import Broken, Outcome, read_outcome, table
from test_acknowledged_is_stored import TERMINALS
from unsynced_mount import mounted, require_fuse, set_full, set_slow

from length import rounds

ROUNDS = rounds(2, 10)

pytestmark = pytest.mark.timeout(500)


def test_kills_take_no_reading_session_retained_message_or_command(tmp_path: Path) -> None:
    found = kill_again_and_again(tmp_path, ROUNDS, first=0)
    assert (found.rounds, found.lost, found.doubled) == (ROUNDS, 0, 0)
    assert found.acknowledged >= ENOUGH * len(TERMINALS) * ROUNDS


def test_a_full_disk_is_told_takes_nothing_and_goes_on_by_itself(tmp_path: Path) -> None:
    require_fuse()
    found = fill_again_and_again(tmp_path, ROUNDS, first=0)
    assert (found.rounds, found.lost, found.doubled) == (ROUNDS, 0, 0)
    assert found.silent_s > 0.5, "it was full"


def test_with_a_slow_disk_everything_is_acknowledged_later(tmp_path: Path) -> None:
    require_fuse()
    found = slow_again_and_again(tmp_path, 1, first=0)
    assert (found.rounds, found.lost, found.doubled) == (1, 0, 0)
    assert found.silent_s > 0.1, "a sync alone takes so long"
    assert found.found, "the event loop was looked at"


def test_a_full_disk_takes_what_is_written_over_and_a_slow_one_is_slow(tmp_path: Path) -> None:
    require_fuse()
    before = tmp_path / "before"
    before.mkdir()
    (before / "old").write_bytes(b"old")
    with mounted(tmp_path / "disk", before) as mount:
        set_full(mount, True)
        with (mount / "old").open("r+b") as old:
            old.write(b"new")
        for name in ("old", "more"):
            with pytest.raises(OSError, match="No space left"), (mount / name).open("ab") as file:
                file.write(b"x")
        with pytest.raises(OSError, match="No space left"):
            (mount / "folder").mkdir()
        set_full(mount, False)
        set_slow(mount, 10)
        (mount / "more").write_bytes(b"x")
        assert (mount / "old").read_bytes() == b"new"


def test_what_is_done_is_kept_and_a_broken_promise_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began: list[int] = []

    def run(work: Path, count: int, *, first: int, told: bool) -> Outcome:
        began.append(first)
        if first == 4 and began.count(4) == 1:
            raise Broken("two are lost", lost=2)
        return Outcome(rounds=count, acknowledged=100 * count, silent_s=float(first), found={"x": {"seen": 1}})

    monkeypatch.setattr(torture, "DONE", tmp_path)
    monkeypatch.setitem(torture.KINDS, "kill", torture.Kind(run, at_once=2))
    assert not torture.go_on("kill", 7)
    assert "two are lost" in (told := capsys.readouterr()).err
    assert "kill: 2 lost, 0 doubled" in told.out
    assert read_outcome(tmp_path / "kill.json").rounds == 4
    assert torture.go_on("kill", 7)
    assert began == [0, 2, 4, 4, 6]
    done = read_outcome(tmp_path / "kill.json")
    assert table({"kill": done}).splitlines()[2:] == [
        "| kill | 7 | 700 | 0 | 0 | 6.0 | 0.0 |",
        "",
        "| kill | found, and how often |",
        "|---|---|",
        "| x | seen: 4 |",
    ]
    assert torture.go_on("kill", 7)
    assert len(began) == 5, "all of them are done"
    assert torture.go_on("kill", 1, again=True)
    assert began[5:] == [0]
    (tmp_path / "kill.json").write_text('{"readings": 1}')
    assert read_outcome(tmp_path / "kill.json") == Outcome()
