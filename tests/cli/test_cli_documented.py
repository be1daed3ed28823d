"""Each command and option is in docs/cli.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from terrazzo.cli.shell.program import make_app

DOCUMENT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
EVERYWHERE = {"--config", "--data", "--help"}


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from commands(child, f"{path} {name}")


def section(path: str) -> str:
    for heading in ("## ", "### "):
        for title in (f"{heading}`{path}`\n", f"{heading}`{path} "):
            if f"\n{title}" in DOCUMENT:
                return DOCUMENT.split(f"\n{title}")[1].split(f"\n{heading}")[0]
    raise AssertionError(f"docs/cli.md has no section on {path}")


def test_each_command_and_option_is_documented() -> None:
    found = dict(commands(get_command(make_app()), "terrazzo"))
    assert {"terrazzo doctor", "terrazzo user add", "terrazzo user list"} <= set(found)
    for path, command in found.items():
        text = section(path)
        for parameter in command.params:
            options = [option for option in parameter.opts if option.startswith("--")]
            assert not options or options[0] in EVERYWHERE or f"`{options[0]}" in text, f"{path} {options}"


def test_every_command_says_what_it_does() -> None:
    for path, command in commands(get_command(make_app()), "terrazzo"):
        assert command.help, path
        assert all(parameter.help for parameter in command.params if parameter.opts[0].startswith("-")), path
