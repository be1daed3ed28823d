"""The data folder is its owner's alone: what was open is closed, links are left alone, and a walk has a bound."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from terrazzo_broker.access import folder_modes
from terrazzo_broker.access.folder_modes import close_to_others, find_exposed


def make(folder: Path) -> None:
    (folder / "series" / "deep").mkdir(parents=True)
    for name in ("terrazzo.db", "series/000001.sst", "series/deep/LOG"):
        (folder / name).write_text("x")
        (folder / name).chmod(0o664)
    for each in (folder, folder / "series", folder / "series" / "deep"):
        each.chmod(0o755)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_become_0700_and_files_0600(tmp_path: Path) -> None:
    make(tmp_path)
    assert close_to_others(tmp_path).closed == 6
    assert {mode(path) for path in tmp_path.rglob("*") if path.is_file()} == {0o600}
    assert {mode(path) for path in (tmp_path, *tmp_path.rglob("*")) if path.is_dir()} == {0o700}
    assert close_to_others(tmp_path).closed == 0


def test_links_are_not_followed(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    make(outside)
    data.mkdir(mode=0o755)
    (data / "folder").symlink_to(outside)
    (data / "file").symlink_to(outside / "terrazzo.db")
    assert close_to_others(data).closed == 1
    assert (mode(outside), mode(outside / "terrazzo.db"), mode(outside / "series")) == (0o755, 0o664, 0o755)


def test_a_name_that_has_become_a_link_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.write_text("x")
    outside.chmod(0o644)
    (data / "file").write_text("x")
    (data / "file").chmod(0o644)
    found = [*find_exposed(data)]
    (data / "file").unlink()
    (data / "file").symlink_to(outside)
    monkeypatch.setattr(folder_modes, "find_exposed", lambda *_, **__: iter(found))
    told = close_to_others(data)
    assert (told.refused, "file" in told.first_refused) == (1, True)
    assert mode(outside) == 0o644


def test_the_folder_is_closed_first_and_an_interrupted_walk_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)
    close = folder_modes._chmod
    for _ in range(6):
        done = 0

        def once(exposed: folder_modes.Exposed) -> None:
            nonlocal done
            done += 1
            if done > 1:
                raise KeyboardInterrupt
            close(exposed)

        with monkeypatch.context() as patched:
            patched.setattr(folder_modes, "_chmod", once)
            try:
                close_to_others(tmp_path)
            except KeyboardInterrupt:
                assert mode(tmp_path) == 0o700
    assert [*find_exposed(tmp_path)] == []


def test_a_walk_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make(tmp_path)
    told = close_to_others(tmp_path, most_entries=2)
    assert 1 <= told.closed <= 3
    assert mode(tmp_path) == 0o700
    assert "more than 2 files" in caplog.text


@pytest.mark.skipif(os.getuid() == 0, reason="root may change every mode")
def test_modes_that_are_not_ours_to_change_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert close_to_others(Path("/etc"), most_entries=1).refused
    assert "chown them" in caplog.text


def test_what_can_not_be_changed_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    told = close_to_others(tmp_path)
    assert (told.closed, told.refused) == (0, 6)
    assert len(caplog.records) == 1
    assert "6 files and folders can't be changed" in caplog.text
    assert "chown" in caplog.text
