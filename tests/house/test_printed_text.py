"""Commands print by ``terrazzo.cli.shown`` alone, so that what others have written is visible, and no markup."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

CLI = Path(__file__).parents[2] / "platform/terrazzo/cli"
OWN_TEXT = {
    "shown.py": "the functions themselves",
    "shell/program.py": "the version",
    "serve.py": "addresses and paths of this machine's configuration",
    "shell/completion.py": "a script of ours, which has lines",
}


def calls(path: Path) -> Iterator[tuple[int, str, ast.Call]]:
    """Each call of a module with its line and the last part of the function's name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield node.lineno, name, node


def is_shown(argument: ast.expr) -> bool:
    """Whether what a table or console of rich is given is a cell, a table or a text of ours."""
    if isinstance(argument, ast.Starred):
        argument = argument.value
    if isinstance(argument, ast.Call):
        name = getattr(argument.func, "id", "")
        return name == "cell" or (name == "map" and getattr(argument.args[0], "id", "") == "cell")
    return isinstance(argument, ast.Constant) or getattr(argument, "id", "") == "table"


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(CLI.rglob("*.py")):
        yield path.relative_to(CLI).as_posix(), path


def test_nothing_is_printed_past_them() -> None:
    found = [
        f"{name}:{line}"
        for name, path in modules()
        for line, called, call in calls(path)
        if called in ("print", "echo", "secho")
        and isinstance(call.func, ast.Name | ast.Attribute)
        and not (called == "print" and isinstance(call.func, ast.Attribute))
        and name not in OWN_TEXT
    ]
    assert found == [], "say, print_json or cell of terrazzo.cli.shown"


def test_rich_is_given_no_markup_of_others() -> None:
    found = [
        f"{name}:{line}"
        for name, path in modules()
        for line, called, call in calls(path)
        if called == "add_row" or (called == "print" and isinstance(call.func, ast.Attribute))
        if not all(map(is_shown, call.args))
    ]
    assert found == [], "cell of terrazzo.cli.shown"


def test_what_is_excused_is_there() -> None:
    assert {name for name, _ in modules()} >= OWN_TEXT.keys()
