"""Each parser of the product is in the table, or excused with a reason.

A parser is a regular expression, a method ``parse`` of a class, a function of a module whose name begins with one of
``_VERBS``, a method of such a name that takes a text or bytes first, one with a name in ``_TAKES`` that takes bytes,
and whatever takes first what ``_GIVEN`` names: those come from outside. A new one goes into
tests/parsers/parsers_of_....py, or with a reason into parser_excuses.py there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from parser_excuses import EXCUSED
from parser_table import PARSERS

ROOT = Path(__file__).parents[2]
_FOLDERS = {"platform": "terrazzo", "broker": "terrazzo_broker", "adapters": "terrazzo_adapters"}
_VERBS = re.compile(r"_?(parse|read|decode|split|scan|unpack)(_|$)")
_TAKES = re.compile(r"_?(feed|receive|step|take)(_|$)")
_GIVEN = {
    "accept",
    "authorization",
    "content_type",
    "cookie",
    "der",
    "header",
    "headers",
    "id_token",
    "origin",
    "payload",
}
_GIVEN |= {"pem", "sealed"}
_TEXT, _BYTES = re.compile(r"(str|bytes)\b|Mapping\[str, str\]"), re.compile(r"(str \| )?bytes\b")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, ast.Module]:
    """Name and syntax tree of each module of the product."""
    found = {}
    for folder, package in _FOLDERS.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__")
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def parsers_in(tree: ast.Module) -> Iterator[str]:
    """The names of the parsers in a module; of a pattern the name that it is given."""
    for node in tree.body:
        if isinstance(node, _Function) and (_VERBS.match(node.name) or _takes_what_is_foreign(node)):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, _Function) and (each.name == "parse" or _is_parsing_method(each)):
                    yield f"{node.name}.{each.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "re":
                yield _name_of(tree, node)


def _first_of(function: _Function) -> tuple[str, str]:
    """The name and the annotation of what a function or method takes first."""
    given = [each for each in function.args.args if each.arg not in ("self", "cls")]
    if not given or given[0].annotation is None:
        return "", ""
    return given[0].arg, ast.unparse(given[0].annotation)


def _takes_what_is_foreign(function: _Function) -> bool:
    name, annotation = _first_of(function)
    return name in _GIVEN and bool(_TEXT.match(annotation)) and not function.name.startswith(("write", "encode"))


def _is_parsing_method(method: _Function) -> bool:
    _, annotation = _first_of(method)
    reads, takes = _VERBS.match(method.name), _TAKES.match(method.name)
    is_parser = (reads and _TEXT.match(annotation)) or (takes and _BYTES.match(annotation))
    return bool(is_parser) or _takes_what_is_foreign(method)


def _name_of(tree: ast.Module, call: ast.Call) -> str:
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    return f"re.{ast.unparse(call.func).removeprefix('re.')}"


@cache
def found() -> set[str]:
    return {f"{module}:{name}" for module, tree in modules().items() for name in parsers_in(tree)}


def test_each_parser_is_in_the_table_or_excused() -> None:
    listed = {name for parser in PARSERS for name in parser.covers}
    missing = {
        name for name in found() - listed if name not in EXCUSED and f"{name.partition(':')[0]}:*" not in EXCUSED
    }
    assert sorted(missing) == [], "list them in tests/parsers/parsers_of_....py, with their worst inputs"


def test_what_is_excused_is_there_and_not_in_the_table() -> None:
    names = found()
    modules_ = {name.partition(":")[0] for name in names}
    gone = [each for each in EXCUSED if each not in names and not (each.endswith(":*") and each[:-2] in modules_)]
    assert gone == []
    assert EXCUSED.keys() & {name for parser in PARSERS for name in parser.covers} == set()
    assert all(len(reason) > 10 for reason in EXCUSED.values())


def test_what_the_table_covers_is_there() -> None:
    trees = modules()
    for name in sorted({name for parser in PARSERS for name in parser.covers}):
        module, _, wanted = name.partition(":")
        owner, _, method = wanted.rpartition(".")
        tree = trees[module]
        names = {getattr(node, "name", "") for node in tree.body} | set(parsers_in(tree))
        if method and owner:
            classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
            names |= {f"{owner}.{getattr(each, 'name', '')}" for node in classes for each in node.body}
            names |= {f"{owner}.parse" for node in classes if method == "parse"}  # inherited
        assert wanted in names, name


def test_a_new_parser_is_found() -> None:
    tree = ast.parse(
        "import re\n_A = re.compile('a+b')\ndef parse_it(text): return re.split(',', text)\n"
        "class Field(Parsed):\n def parse(cls): ...\nasync def _read_all(): ...\ndef reader(): ...\n"
        "class Lines:\n def feed(self, data: bytes): ...\n def feed_all(self, some: int): ...\n"
        " def read_token(self, token: str): ...\n def read(self, rows: Sequence[str]): ...\n"
        " def take(self, name: str): ...\n"
        "def is_of_host(origin: str, host: str): ...\ndef named(host: str): ...\n"
        "def first_of(headers: Mapping[str, str]): ...\n"
    )
    found_ = {"_A", "parse_it", "re.split", "Field.parse", "_read_all", "Lines.feed", "Lines.read_token", "is_of_host"}
    assert set(parsers_in(tree)) == found_ | {"first_of"}
