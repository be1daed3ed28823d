"""Finds functions, classes, methods and constants of the product that no product file names.

``python tests/house/dead_code.py`` (part of ``make lint``) lists them and exits 1 when there are any. Tests are no
users. A name at the top of a module is used where it is loaded in its own module outside its own body, imported from
there, or read as an attribute; a method where an attribute or a text of its name is somewhere. What follows
from a rule of a library or belongs to others is allowed by rule, the few others one by one, with a reason.
Fields are not looked at: Structs, dataclasses and counters are read as wholes (encoded, shown as metrics).
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("platform", "broker", "adapters", "simulators", "benchmarks")

REGISTERING = {"command", "callback", "fixture", "compiles", "listens_for", "overload"}
"""Decorators that hand a function to a library, which calls it."""

PUBLIC = ("terrazzo/client/", "terrazzo_broker/__init__.py", "terrazzo_simulators/live_fleet.py")
"""What programs of others name: the client, the broker as a library, the fleet of the pytest plugin."""

ALLOWED = {
    "COMMAND_REASONS": "what the console has words for, which a test holds against each other",
    "CAMPAIGN_REASONS": "what the console has words for, which a test holds against each other",
    "FIT_REASONS": "what the console has words for, which a test holds against each other",
    "REPLAY_REASONS": "what the console has words for, which a test holds against each other",
    "MESSAGE_REASONS": "what the console has words for, which a test holds against each other",
    "PROVIDER_REASONS": "what the console has words for, which a test holds against each other",
    "BRIDGE_REASONS": "what the console has words for, which a test holds against each other",
    "requests_read": "which way requests went, for tests that hold the ways against each other",
    "ConsoleHook": "hatch finds it",
    "dependencies": "hatch calls it",
    "initialize": "hatch calls it",
    "intake_paused": "one of the names that Broker has for whoever embeds it",
    "set_parser": "aiohttp calls it",
    "do_handshake": "paho calls it",
    "load_dialect_impl": "SQLAlchemy calls it",
    "process_bind_param": "SQLAlchemy calls it",
    "self_group": "SQLAlchemy calls it",
    "executemany": "SQLAlchemy calls it",
    "emit": "logging calls it",
    "formatMessage": "logging calls it",
    "formatException": "logging calls it",
    "formatStack": "logging calls it",
}

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Defined:
    """One definition.

    Attributes:
        own_loaded: how often its own body (or its assignment) loads the name.
        own_spoken: how often it says it as an attribute or a text.
    """

    path: str
    line: int
    kind: str
    name: str
    own_loaded: int
    own_spoken: int


@dataclass(frozen=True, slots=True)
class Source:
    """One file: what it defines, and how often it says each name."""

    path: str
    defined: tuple[Defined, ...]
    loaded: Counter[str]
    spoken: Counter[str]
    """Attributes, keywords, imports, and texts that are a name."""


def read_source(path: str, text: str) -> Source:
    """Reads one file's text."""
    tree = ast.parse(text)
    loaded, spoken = _said(tree)
    if path.endswith("__init__.py"):
        spoken = _said_by_package(tree)
    return Source(path, tuple(_definitions(path, tree)), loaded, spoken)


def _definitions(path: str, tree: ast.Module) -> Iterator[Defined]:
    for node in tree.body:
        if isinstance(node, Definition):
            yield from _definition(path, node, is_method=False)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield _defined(path, node, "constant", target.id)


def _defined(path: str, node: ast.stmt, kind: str, name: str) -> Defined:
    loaded, spoken = _said(node)
    return Defined(path, node.lineno, kind, name, loaded[name], spoken[name])


def _definition(path: str, node: Definition, *, is_method: bool) -> Iterator[Defined]:
    kind = "class" if isinstance(node, ast.ClassDef) else "method" if is_method else "function"
    if not any(_name_of(decorator) in REGISTERING for decorator in node.decorator_list):
        yield _defined(path, node, kind, node.name)
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            if isinstance(inner, Definition):
                yield from _definition(path, inner, is_method=True)


def _name_of(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _said(tree: ast.AST) -> tuple[Counter[str], Counter[str]]:
    """How often each name is loaded, and how often it is spoken.

    Texts may be types (``Annotated["X", ...]``, ``TypeVar(bound="X")``, ``cast("X", y)``) as well as attributes' names.
    """
    loaded, spoken = Counter[str](), Counter[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=context):
                loaded[name] += not isinstance(context, ast.Store)
            case ast.Attribute(attr=name, ctx=context):
                spoken[name] += not isinstance(context, ast.Store)
            case ast.Constant(value=str(text)) if text.isidentifier():
                spoken[text] += 1
                loaded[text] += len(text) < 200
            case ast.ImportFrom(names=names):
                spoken.update(each.name for each in names)
    return loaded, spoken


def _said_by_package(tree: ast.AST) -> Counter[str]:
    """A package passes names on: what its ``__init__`` imports and lists is used where somebody takes it from there."""
    nodes = list(ast.walk(tree))
    return Counter(node.id for node in nodes if isinstance(node, ast.Name)) + Counter(
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    )


def dead(sources: Iterable[Source]) -> list[Defined]:
    """What nothing names, in the order of the files; what is allowed by name is among it."""
    files = list(sources)
    spoken: Counter[str] = Counter()
    for file in files:
        spoken.update(file.spoken)
    unused = [one for file in files for one in file.defined if not _is_used(one, file, spoken)]
    return [one for one in unused if not _is_for_others(one)]


def _is_used(one: Defined, file: Source, spoken: Mapping[str, int]) -> bool:
    is_spoken = spoken.get(one.name, 0) > one.own_spoken
    return is_spoken or (one.kind != "method" and file.loaded[one.name] > one.own_loaded)


def _is_for_others(one: Defined) -> bool:
    is_special = one.name.startswith("__") and one.name.endswith("__")
    return is_special or any(part in one.path for part in PUBLIC)


def product_files() -> Iterator[Path]:
    """The product's files; schema changes are Alembic's to read, docs are made by hand."""
    for folder in PRODUCT:
        yield from (
            path for path in sorted((ROOT / folder).rglob("*.py")) if not {"migrations", "node_modules"} & {*path.parts}
        )


def dead_product() -> list[str]:
    """What is dead in this checkout and what is allowed without need, a line each."""
    sources = [read_source(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in product_files()]
    found = dead(sources)
    new = [one for one in found if one.name not in ALLOWED]
    unneeded = sorted(ALLOWED.keys() - {one.name for one in found})
    return [
        *(f"{one.path}:{one.line}: {one.kind} {one.name}: no product file names it" for one in new),
        *(f"tests/house/dead_code.py: {name} is used or gone: take it out of ALLOWED" for name in unneeded),
    ]


if __name__ == "__main__":
    sys.exit("\n".join(dead_product()) or 0)
