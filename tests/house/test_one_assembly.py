"""Only one module of the tests knows the platform's assembly: what others start is what users start."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
ALLOWED = {
    "own_platform.py",
    "platform/test_platform_metric_names.py",  # starts nothing
}
ASSEMBLY = ("terrazzo.runtime.assembly", "terrazzo.runtime.serve", "terrazzo.runtime.process")


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_assembly_is_imported_in_one_place() -> None:
    found = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if any(name == each or name.startswith(f"{each}.") for name in imports(path) for each in ASSEMBLY)
    }
    assert found == ALLOWED
