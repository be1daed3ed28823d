"""``--json`` on each command that prints, exit statuses as docs/cli.md has them, no colours where nobody looks on."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from loaded_process import run_loaded_text
from rules.rule_stand import BY
from running import Platform
from support import free_port
from terrazzo.cli.shell.program import make_app

DOCUMENT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
WITHOUT = {
    "terrazzo serve": "its log is JSON with logging.format",
    "terrazzo simulate": "is another program, with options of its own",
    "terrazzo bench": "is another program, whose --json names a file",
    "terrazzo mcp": "speaks JSON anyway",
    "terrazzo completion": "prints a script",
    "terrazzo export records": "prints the file, whose --format may be json",
    "terrazzo export grid": "prints the file, whose --format may be jsonl",
    "terrazzo export mosaic": "prints the file, whose --format may be jsonl",
}
"""Commands without ``--json``, and why."""


def commands(command: Any = None, path: str = "terrazzo") -> Iterator[tuple[str, Any]]:
    command = command or get_command(make_app())
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from commands(child, f"{path} {name}")


def test_each_command_that_prints_has_it() -> None:
    found = dict(commands())
    without = {
        path for path, command in found.items() if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == set(WITHOUT)
    assert len(found) - len(without) >= 15


def statuses() -> dict[int, set[str]]:
    """The commands that docs/cli.md names for each exit status; of those for all nothing."""
    table = DOCUMENT.split("## Exit statuses\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]*) \|$", table, re.MULTILINE)
    return {int(status): set(re.findall(r"`([^`]+)`", names)) for status, names in rows}


def test_the_table_of_exit_statuses_names_who_may_end_with_1() -> None:
    ends = re.compile(r"typer\.Exit\((?!\))|abort=True")
    may = {
        path
        for path, command in commands()
        if command.callback is not None and ends.search(inspect.getsource(sys.modules[command.callback.__module__]))
    }
    listed = statuses()
    assert set(listed) == {0, 1, 2, 130}
    groups = {path for path in may if not path.startswith("terrazzo user ") or path == "terrazzo user delete"}
    assert {f"terrazzo {name}" for name in listed[1]} == groups - {"terrazzo restore"} | {"terrazzo bench"}
    # restore stands beside backup; bench is another program, whose exit statuses have tests of their own


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("json") / "data") as running:
        yield running.login()


def run(platform: Platform, *arguments: str, status: int = 0, given: str = "", data: bool = True) -> Any:
    """What a command prints with ``--json``: one document, and nothing beside it."""
    folder = ("--data", str(platform.data)) if data else ("--url", platform.url)
    env = {**os.environ, **platform.environment} | ({} if data else {"TERRAZZO_TOKEN": str(platform.token)})
    done = run_loaded_text(["-m", "terrazzo", *arguments, "--json", *folder], env=env, given=given)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_users(platform: Platform) -> None:
    added = run(platform, "user", "add", "json-user", "--generate")
    assert added.keys() == {"done", "id", "username", "password"}
    assert (added["username"], len(added["password"])) == ("json-user", 16)
    assert "json-user" in {row["username"] for row in run(platform, "user", "list")}
    assert run(platform, "user", "password", "json-user", "--password-stdin", given="a long new password\n") == {
        "done": "changed the password of json-user",
        "id": added["id"],
        "username": "json-user",
    }
    for words in (("deactivate",), ("activate",), ("delete", "--yes")):
        assert run(platform, "user", *words, "json-user")["id"] == added["id"]


def test_backups_and_their_restoring(platform: Platform, tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    assert run(platform, "backup", "list", target) == {"target": target, "backups": []}
    made = run(platform, "backup", target)
    assert made.keys() >= {"target", "id", "size", "put_bytes", "took_s", "held_ms", "keys"}
    (listed,) = run(platform, "backup", "list", target)["backups"]
    assert (listed["id"], listed["size"]) == (made["id"], made["size"])
    verified = run(platform, "backup", "verify", target)
    assert (verified["id"], verified["whole"], verified["wrong"]) == (made["id"], True, [])
    env = {**os.environ, **platform.environment}
    restored = run_loaded_text(
        ["-m", "terrazzo", "restore", target, "--json", "--data", str(tmp_path / "new")], env=env
    )
    assert json.loads(restored.stdout) == {
        "id": made["id"],
        "data_dir": str(tmp_path / "new"),
        "keys": made["keys"],
        "left_out": [],
    }


def test_records_replays_refusals_and_keys(platform: Platform) -> None:
    good = "name\nconfig-1\n"
    imported = run(platform, "import", "-", "--entity", "terminal_configs", given=good, data=False)
    assert (imported["total"], imported["created"], imported["errors"]) == (1, 1, [])
    bad = run(platform, "import", "-", "--entity", "terminals", given="uid,name\n,x\n", data=False, status=1)
    assert bad["errors"][0].keys() >= {"row", "column", "reason"}
    platform.add_terminal("json-1", platform.add_config("other"))
    thing = platform.call("create_mapping", name="m", script=[["T", "", "", "STA", "$AdapterID-1.t", ""]], **BY)["uid"]
    thing = platform.call("create_object", name="o", mapping_id=thing, terminal_list=["json-1"])["uid"]
    replayed = run(platform, "replay", thing, "--from", "2026-01-01 00:00:00", "--dry-run", data=False)
    assert (replayed["state"], replayed["dry_run"]) == ("done", 1)
    assert run(platform, "terminal", "why", "json-1")["terminal_id"] == "json-1"
    rotated = run(platform, "keys", "rotate", "--secrets")
    assert (rotated["token_key"], rotated["secrets"]["unreadable_count"]) == (None, 0)


def test_the_doctor_and_no_colours_where_nobody_looks_on(tmp_path: Path) -> None:
    env = {**os.environ, "TERRAZZO_HTTP__PORT": str(free_port()), "TERM": "xterm-256color"}
    env = {name: value for name, value in env.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    command = ["-m", "terrazzo", "doctor", "--data", str(tmp_path / "data")]
    plain = run_loaded_text(command, env=env)
    assert "\x1b" not in plain.stdout + plain.stderr
    assert "package" in plain.stdout
    told = json.loads(run_loaded_text([*command, "--json"], env=env).stdout)
    assert {"level", "part", "found", "advice"} == set(told[0])
    assert {each["level"] for each in told} <= {"ok", "warn", "fail"}
    broken = run_loaded_text([*command, "--json"], env=env | {"TERRAZZO_HTTP__PORT": "x"})
    assert (broken.returncode, json.loads(broken.stdout)[0]["level"]) == (1, "fail")
    wrong = run_loaded_text([*command, "--xyzzy"], env=env)
    assert (wrong.returncode, "\x1b" in wrong.stderr) == (2, False)


ASKS = {
    "bash": ({"COMP_WORDS": "terrazzo ba", "COMP_CWORD": "1"}, "backup"),
    "zsh": ({"_TYPER_COMPLETE_ARGS": "terrazzo user a"}, "activate"),
    "fish": ({"_TYPER_COMPLETE_ARGS": "terrazzo doctor --j", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "--json"),
}


@pytest.mark.parametrize("shell", ASKS)
def test_what_a_shell_asks_is_completed(shell: str) -> None:
    script = run_loaded_text(["-m", "terrazzo", "completion", shell], env=dict(os.environ)).stdout
    assert f"_TERRAZZO_COMPLETE=complete_{shell}" in script
    asked, expected = ASKS[shell]
    env = {**os.environ, "_TERRAZZO_COMPLETE": f"complete_{shell}", **asked}
    done = subprocess.run([sys.executable, "-m", "terrazzo"], env=env, capture_output=True, text=True, timeout=60)
    assert expected in done.stdout, done.stderr


def test_bash_itself_completes(tmp_path: Path) -> None:
    """The script in a real shell, with a program of that name in its path."""
    program = tmp_path / "terrazzo"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m terrazzo "$@"\n')
    program.chmod(0o755)
    lines = (
        'eval "$(terrazzo completion bash)"; COMP_WORDS=(terrazzo user pass); COMP_CWORD=2;'
        ' _terrazzo_completion terrazzo; echo "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", lines], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["password"], done.stderr
