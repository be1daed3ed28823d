"""Heavy libraries are imported on a thread: an import in a coroutine holds the event loop, numpy's for 100 ms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

APART = ("cli", "runtime")  # a process of its own, or a start: nobody is served yet


def test_coroutines_import_on_a_thread() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for package in ("platform/terrazzo", "adapters/terrazzo_adapters")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not set(APART) & set(path.parts)
        for line, module in imported_in_the_loop(ast.parse(path.read_text()))
    ]
    assert not found, f'first: await asyncio.to_thread(import_module, "..."): {found}'


def test_an_import_in_a_coroutine_is_found() -> None:
    late = "async def f():\n    from a.b import c\n"
    first = '    await asyncio.to_thread(import_module, "a.b")\n'
    assert list(imported_in_the_loop(ast.parse(late))) == [(2, "a.b")]
    assert not list(imported_in_the_loop(ast.parse(late.replace("\n", "\n" + first, 1))))
    assert not list(imported_in_the_loop(ast.parse("async def f():\n    def g():\n        import a\n")))


def imported_in_the_loop(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines of imports in coroutines, with the module, unless a thread has imported it before."""
    for function in ast.walk(tree):
        if isinstance(function, ast.AsyncFunctionDef):
            own = list(_own(function))
            before = {node.args[1].value for node in own if _is_on_a_thread(node)}
            for node in own:
                if isinstance(node, ast.ImportFrom) and node.module not in before:
                    yield node.lineno, node.module or ""
                elif isinstance(node, ast.Import):
                    yield node.lineno, node.names[0].name


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _own(node)


def _is_on_a_thread(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "to_thread"
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == "import_module"
    )
