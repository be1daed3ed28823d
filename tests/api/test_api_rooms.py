"""Arrows inside ``terrazzo.api`` point down: each room imports those below it and itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import terrazzo.api

ROOT = Path(terrazzo.api.__file__).parent
ROOMS = ("kernel", "operations", "paths", "openapi", "transports")
"""From the ground."""


def rooms_imported(source: str) -> Iterator[str]:
    """The rooms of ``terrazzo.api`` that a module imports, imports for types among them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        else:
            continue
        for module in modules:
            if module.startswith("terrazzo.api."):
                yield module.split(".")[2]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_is_below_it(room: str) -> None:
    below = set(ROOMS[: ROOMS.index(room) + 1])
    upward = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for other in rooms_imported(path.read_text(encoding="utf-8"))
        if other not in below
    ]
    assert upward == []


def test_there_are_no_other_rooms() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(ROOMS)
    assert [path.name for path in ROOT.glob("*.py")] == ["__init__.py"]


def test_imports_are_found_in_all_their_forms() -> None:
    lines = ["import terrazzo.api.paths.table", "from terrazzo.api import openapi"]
    lines += ["def f():", "    from terrazzo.api.kernel import fields"]
    assert list(rooms_imported("\n".join(lines))) == ["paths", "openapi", "kernel"]
