"""An exception that a function has under a name and raises refers to itself: by its traceback, the frame and that name.

What the frame has, such as a payload of a megabyte, stays until the garbage collector comes, which is seldom. So the
name is deleted: ``try: raise found`` and ``finally: del found``. The names of ``except`` clauses are, by Python.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_names_of_raised_exceptions_are_deleted() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for package in ("platform/terrazzo", "broker/terrazzo_broker", "adapters/terrazzo_adapters")
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, name in kept(ast.parse(path.read_text()))
    ]
    assert not found, f"try: raise, finally: del: {found}"


def test_a_name_that_is_kept_is_found() -> None:
    raised = "def f(found):\n    if isinstance(found, Exception):\n        raise found\n"
    assert list(kept(ast.parse(raised))) == [(3, "found")]
    deleted = raised.replace(
        "        raise found\n", "        try:\n            raise found\n        finally:\n            del found\n"
    )
    assert not list(kept(ast.parse(deleted)))
    caught = "def f():\n    try:\n        g()\n    except OSError as error:\n        raise error from None\n"
    assert not list(kept(ast.parse(caught)))
    assert not list(kept(ast.parse("def f():\n    raise Refusal\n")))


def kept(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines that raise what a parameter or a local name has, where nothing deletes that; with the name."""
    for function in ast.walk(tree):
        if isinstance(function, Function):
            own = list(_own(function))
            names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
            names |= {each.id for each in own if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
            names -= {each.id for each in own if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Del)}
            names -= {each.name for each in own if isinstance(each, ast.ExceptHandler) and each.name}
            for each in own:
                if isinstance(each, ast.Raise) and isinstance(each.exc, ast.Name) and each.exc.id in names:
                    yield each.lineno, each.exc.id


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, Function | ast.Lambda):
            yield node
            yield from _own(node)
