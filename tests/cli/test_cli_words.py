"""What a person sees in the first hour says what happened and what to do next."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from running import Platform, ServerProcess
from support import free_port
from terrazzo.cli.shell.program import make_app
from terrazzo.cli.start_checks import OTHER_DATABASE, OTHER_FOLDER
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
    assert f"  console    {platform.url}/\n" in greeting
    assert f"  documents  {platform.url}/docs\n" in greeting


def refusal(*arguments: str) -> str:
    """The one line of a command that can't do what it is asked."""
    command = [sys.executable, "-m", "terrazzo", *arguments]
    free = {"TERRAZZO_WEBSOCKET__PORT": "0", "TERRAZZO_MQTT__WEBSOCKET_PORT": "0"}  # the usual ones may be somebody's
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **free})
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("terrazzo: ")]
    return line


def test_a_folder_that_cannot_be_made() -> None:
    """Root may write everywhere, says the system, and then it can't."""
    line = refusal("serve", "--data", "/proc/terrazzo-data", "--http-port", "0", "--mqtt-port", "0")
    assert line.startswith("terrazzo: data.dir: /proc/")
    assert line.endswith(f"; {OTHER_FOLDER}")


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refusal("serve", "--data", str(tmp_path / "file" / "sub"), "--http-port", "0", "--mqtt-port", "0")
    assert line == f"terrazzo: data.dir: {tmp_path / 'file'} is not a folder; {OTHER_FOLDER}"


def test_a_database_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERRAZZO_DATABASE__URL", f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    line = refusal("serve", "--data", str(tmp_path / "data"), "--http-port", "0", "--mqtt-port", "0")
    assert line.startswith("terrazzo: database.url: ")
    assert line.endswith(f"; {OTHER_DATABASE}")


def test_a_store_that_is_away_is_told_beside_being_ready(tmp_path: Path) -> None:
    away = {"TERRAZZO_STORE__KIND": "influxdb", "TERRAZZO_STORE__URL": f"http://127.0.0.1:{free_port()}"}
    free = {f"TERRAZZO_{name}": "0" for name in ("HTTP__PORT", "WEBSOCKET__PORT", "MQTT__PORT", "MQTT__WEBSOCKET_PORT")}
    log, command = tmp_path / "log", [sys.executable, "-m", "terrazzo", "serve", "--data", str(tmp_path / "data")]
    with ServerProcess(command, log=log, env=free | away, loaded=True) as server:
        server.wait_ready(lambda: "  data  " in log.read_text(), timeout_s=60)
        greeting = log.read_text()
    _, _, after = greeting.partition("Terrazzo is ready.\n")
    first, _, rest = after.partition("\n")
    assert first.startswith(f"  but the time series are away: InfluxDB at {away['TERRAZZO_STORE__URL']}")
    assert "start InfluxDB, or correct store.url\n  console    " in rest


def test_a_configuration_that_is_away_or_no_toml(tmp_path: Path) -> None:
    away, broken = tmp_path / "none.toml", tmp_path / "broken.toml"
    broken.write_text("[http\n")
    with pytest.raises(ConfigError, match="No such file or directory; name a file that can be read, or leave it out"):
        load_config(away, {})
    with pytest.raises(ConfigError, match=r"line 1, column 6\); docs/configuration.md shows how keys are written"):
        load_config(broken, {})


def every_command(command: Any, path: str = "terrazzo") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from every_command(child, f"{path} {name}")


def test_each_command_and_option_says_what_it_does() -> None:
    found = dict(every_command(get_command(make_app())))
    assert len(found) > 15
    for path, command in found.items():
        assert re.match(r"[A-Z].*\.$", (command.help or "").strip().splitlines()[0]) or ";" in command.help, path
        for each in command.params:
            assert path in ("terrazzo simulate", "terrazzo bench") or (each.help or "").strip(), f"{path} {each.opts}"


def test_help_of_simulated_terminals_names_the_command_that_was_given() -> None:
    command = [sys.executable, "-m", "terrazzo", "simulate"]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.startswith("usage: terrazzo simulate [-h] ")
    assert "report until SIGTERM or Ctrl-C." in shown
    wrong = subprocess.run([*command, "--qos", "7"], capture_output=True, text=True, timeout=60)
    assert (wrong.returncode, "terrazzo simulate: error: argument --qos: invalid choice" in wrong.stderr) == (2, True)
