"""What a person sees in the first hour says what happened and what to do next."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from running import Platform
from support import free_port
from terrazzo.cli import make_app
from terrazzo.config.sections import ConfigError, load_config

ROOT = Path(__file__).parents[2]
OLD = """#!/bin/sh
exec {python} -c 'import sys; code = sys.argv[1]; sys.version_info = (3, 9, 2); exec(code)' "$2"
"""


def test_an_old_python_is_named_and_how_to_name_another(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "python3"
    old.write_text(OLD.format(python=sys.executable))
    old.chmod(0o755)
    done = subprocess.run(
        ["make", "install", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Terrazzo")]
    assert line.startswith("Terrazzo needs Python 3.11 or newer, and ")
    assert line.endswith(" is 3.9: name another one, as in make run PYTHON=python3.12")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("variable", "ends"),
    [
        ("TERRAZZO_HTTP__PROT", "did you mean http.port?"),
        ("TERRAZZO_HTTP__XYZZY", "docs/configuration.md lists all keys"),
        ("TERRAZZO_XYZZY__PORT", "docs/configuration.md lists all keys"),
    ],
)
def test_a_wrong_key_leads_on(variable: str, ends: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {variable: "1"})
    assert str(refused.value).endswith(ends)


def test_help_says_where_to_begin() -> None:
    command = get_command(make_app())
    assert "terrazzo serve --demo" in str(command.epilog)
    assert "terrazzo doctor" in str(command.epilog)


def export(*options: str) -> str:
    """What a command says that asks a platform and is refused."""
    command = [sys.executable, "-m", "terrazzo", "export", "records", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_a_bad_token_and_a_platform_that_is_away(tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    away = export("--url", nowhere, "--token", "x")
    assert away.endswith("; start the platform, or say with --url where it is")
    with Platform(tmp_path / "data") as platform:
        refused = export("--url", platform.url, "--token", "not-a-token")
        assert re.match(r"terrazzo: 10402 ", refused)
        assert refused.endswith("; give a token that is good with --token, or a user with --user")
        greeting = platform.log.read_text()
    assert f"  documents  {platform.url}/docs\n" in greeting
