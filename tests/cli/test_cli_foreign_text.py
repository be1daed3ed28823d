"""What others have written steers no operator's terminal, and is no markup, whichever command prints it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrated import first_start, seed
from terrazzo.cli.shell.program import make_app
from terrazzo.cli.shown import cell, say

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
NAMES = ("[red]x[/red]", "[link=http://x]y", "[/]", f"bob{ESCAPE}", "\u202etac", "line\nanother")


def typed(*words: str | Path) -> str:
    """What a command prints, whatever it ends with."""
    before = os.umask(0o022)
    try:
        told = CliRunner().invoke(make_app(), [str(word) for word in words], env={"COLUMNS": "250"})
    finally:
        os.umask(before)  # commands set one of their own
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    return told.output


def steers(text: str) -> list[str]:
    """The characters that a terminal would obey."""
    return [char for char in text if char != "\n" and (ord(char) < 32 or "\x7f" <= char <= "\x9f" or char == "\u202e")]


def test_names_of_users_are_shown_as_they_are(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seed(data, first_start)
    names = NAMES[:3]
    said = [typed("user", "add", name, "--generate", "--data", data) for name in names]
    said += [typed("user", "deactivate", name, "--data", data) for name in names]
    listed = typed("user", "list", "--data", data)
    for name, text in zip(names * 2, said, strict=True):
        assert name in text
        assert name in listed


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder of backups to which somebody has written what is no backup of ours."""
    target = tmp_path / "backups"
    (target / "backups").mkdir(parents=True)
    manifest = {
        "format": 1,
        "id": f"20260101T000000Z{ESCAPE}",
        "began_us": 0,
        "held_ms": 0.0,
        "version": f"1{ESCAPE}",
        "database": "sqlite",
        "store": "embedded",
        "keys": f"left out{ESCAPE}",
        "files": [{"path": f"a{ESCAPE}", "size": 1, "sha256": "0" * 64}],
    }
    (target / "backups/20260101T000000Z.json").write_text(json.dumps(manifest))
    (target / "backups/20260102T000000Z.json").write_text(json.dumps({**manifest, "files": [f"\x1b[2J{'x' * 9}"]}))
    (target / "backups/20260103T000000Z.json").write_text(json.dumps({**manifest, "files": []}))
    return target


def test_what_somebody_wrote_into_a_backup_is_shown_visibly(planted: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    listed = typed("backup", "list", planted, "--data", data)
    assert "\\x1b]0;owned\\x07" in listed
    wrong = typed("backup", "verify", planted, "--id", "20260101T000000Z", "--data", data)
    assert "its content is missing" in wrong
    restored = typed("restore", planted, "--id", "20260103T000000Z", "--data", data)
    assert "restored" in restored
    assert not steers(listed + wrong + restored)


@pytest.mark.parametrize("name", NAMES)
def test_a_line_is_one_line_and_visible(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(name)
    say(name, to_stderr=True)
    said = capsys.readouterr()
    assert said.out == said.err
    assert said.out.count("\n") == 1
    assert not steers(said.out)
    assert str(cell(name)) == said.out[:-1]
