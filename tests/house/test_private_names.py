"""What a dependency does not promise is not used: no name of its own that begins with an underscore."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("platform", "adapters", "broker", "simulators")
DEPENDENCIES = (
    *("aiohttp", "aiosmtplib", "aiosqlite", "alembic", "argon2", "asyncpg", "cryptography", "influxdb_client"),
    *("joserfc", "jwt", "msgpack", "msgspec", "mqtt5", "numpy", "paho", "prometheus_client", "rich", "rocksdict"),
    *("scramp", "sqlalchemy", "typer", "uvloop"),
)
DOCUMENTED = {"_asdict", "_replace", "_fields", "_make", "_current_frames"}  # of named tuples; of sys
BY_TEXT = {"getattr", "setattr", "hasattr", "delattr", "attrgetter"}
_PRIVATE = re.compile(r"_[a-z]\w*")


def is_private(name: str) -> bool:
    return _PRIVATE.fullmatch(name) is not None


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, itself first."""
    return tuple(ast.walk(ast.parse(source)))


def touched(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int, bool]]:
    """Each private attribute with its line, and whether it is of ``self``, ``cls`` or ``super()``."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, node.lineno, _is_own(node.value)
        elif isinstance(node, ast.Call) and _name(node.func) in BY_TEXT:
            owner = node.args[0] if node.args else node
            for text in node.args:
                if isinstance(text, ast.Constant) and isinstance(text.value, str) and is_private(text.value):
                    yield text.value, node.lineno, _is_own(owner)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_own(node: ast.AST) -> bool:
    return _name(node) in ("self", "cls") or (isinstance(node, ast.Call) and _name(node.func) == "super")


def defined(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The private names that a module gives to what is its own."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def bases(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.ClassDef, type]]:
    """Each class with each class of a dependency that it inherits from directly."""
    imported: dict[str, object] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in DEPENDENCIES:
            imported |= {each.asname or each.name: _imported(node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            for each in node.names:
                if each.name.split(".")[0] in DEPENDENCIES:
                    module = importlib.import_module(each.name if each.asname else each.name.split(".")[0])
                    imported[each.asname or module.__name__] = module
    for node in nodes:
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            found = _resolve(base, imported)
            if isinstance(node, ast.ClassDef) and isinstance(found, type):
                yield node, found


def _imported(module: str, name: str) -> object:
    """A name of a module, or a module of a package."""
    found = getattr(importlib.import_module(module), name, None)
    return importlib.import_module(f"{module}.{name}") if found is None else found


def _resolve(node: ast.AST, imported: dict[str, object]) -> object:
    if isinstance(node, ast.Subscript):
        return _resolve(node.value, imported)
    if isinstance(node, ast.Attribute):
        return getattr(_resolve(node.value, imported), node.attr, None)
    return imported.get(node.id) if isinstance(node, ast.Name) else None


@cache
def private_names(base: type) -> frozenset[str]:
    """The private attributes of a class and of its instances."""
    names: set[str] = set()
    for each in base.__mro__:
        names |= {name for name in dir(each) if is_private(name)} if each.__module__ != builtins.__name__ else set()
        if each.__module__.split(".")[0] in DEPENDENCIES:
            with suppress(OSError):  # compiled
                names |= set(re.findall(r"self\.(_[a-z]\w*)", inspect.getsource(each)))
    return frozenset(names)


def used(source: str, ours: set[str]) -> list[str]:
    """The private names of dependencies that a module uses; ``ours`` are private names of our own classes."""
    nodes = nodes_of(source)
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    found = []
    for node in imports:
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for name in (each.name for each in node.names):
            path = [*module.split("."), *name.split(".")] if module else name.split(".")
            if path[0] in DEPENDENCIES and any(map(is_private, path)):
                found.append(f"{node.lineno}: import {'.'.join(path)}")
    mine = ours | set(defined(nodes)) | DOCUMENTED
    if any(_root(node) in DEPENDENCIES for node in imports):
        found += [f"{line}: {name}" for name, line, is_own in touched(nodes) if not is_own and name not in mine]
    for node, base in bases(nodes):
        theirs = private_names(base)
        found += [f"{line}: {name} of {base.__name__}" for name, line, _ in touched(ast.walk(node)) if name in theirs]
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        found += [f"{each.lineno}: def {each.name}" for each in methods if each.name in theirs]
    return found


def _root(node: ast.Import | ast.ImportFrom) -> str:
    name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
    return (name or "").split(".")[0]


def test_no_private_name_of_a_dependency_is_used() -> None:
    sources = {path: path.read_text("utf-8") for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}
    ours = {name for source in sources.values() for name in defined(nodes_of(source)) if is_private(name)}
    assert len(sources) > 100
    assert [f"{path.relative_to(ROOT)}:{each}" for path, source in sources.items() for each in used(source, ours)] == []


@pytest.mark.parametrize(
    "line",
    [
        "from aiohttp.web_app import _cached_build_middleware",
        "from sqlalchemy.sql._typing import ColumnExpressionArgument",
        "import uvloop._version",
        "import aiohttp\ndef f(request: aiohttp.web.Request): return request._task",
        "import aiohttp\ndef f(request): return getattr(request, '_task')",
        "from aiohttp import web\nclass C(web.RequestHandler):\n def _process_keepalive(self): pass",
        "from aiohttp import web\nclass C(web.RequestHandler):\n def f(self): self._next_keepalive_close_time = 1",
        "from aiohttp import web\nclass C(web.RequestHandler):\n def f(self): setattr(self, '_keepalive', 1)",
        "from aiohttp.web import StreamResponse\nclass C(StreamResponse):\n def f(self): super()._start()",
        "from prometheus_client import Counter\nclass C(Counter):\n def f(self): return self._value",
        "from paho.mqtt.client import Client\ndef f(client: Client): return client._out_messages",
    ],
)
def test_private_names_are_found(line: str) -> None:
    assert used(line, set()) != []


@pytest.mark.parametrize(
    "line",
    [
        "from aiohttp import web\nclass C(web.RequestHandler):\n def f(self): self._doorkeeper = 1",
        "from aiohttp import web\nclass C(web.Request):\n def f(self, other): self._mine = other._mine",
        "from sqlalchemy import Row\ndef f(row: Row): return row._asdict()",
        "import re\ndef f(pattern): return pattern._anything",
        "from __future__ import annotations",
    ],
)
def test_our_own_are_not(line: str) -> None:
    assert used(line, set()) == []
