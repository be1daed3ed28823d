"""``docs/architecture.md`` names what is there: files, folders, functions and classes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from layer_table import ROOT, TOUR, read_table

FOLDERS = {name: ROOT / package.root for name, package in read_table().packages.items()}
SPOKEN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FILE = re.compile(r"[\w./]+\.(py|md|toml)(::[\w.]+)?|[\w./]+/")
MODULE = re.compile(r"terrazzo(_\w+)?(\.\w+)+")
SECTION = re.compile(r"^\*\*`((?:terrazzo|terrazzo_broker)[\w.]*)`\*\*", re.MULTILINE)


def folder_of(package: str) -> Path:
    """A dotted name's folder; of a module, the folder that it is in."""
    path = FOLDERS[package.split(".")[0]] / package.replace(".", "/")
    return path if path.is_dir() else path.parent


def wrong_names(document: str) -> list[str]:
    """What the document names and nobody has. In a part's paragraph, a plain name is a file of that part."""
    wrong = []
    for paragraph in document.split("\n\n"):
        part = SECTION.match(paragraph)
        here = [folder_of(part[1])] if part else []
        here += [folder / "assembly" for folder in here if (folder / "assembly").is_dir()]
        wrong += [name for name in SPOKEN.findall(paragraph) if not _is_right(name, here)]
    return wrong


def _is_right(name: str, here: list[Path]) -> bool:
    if FILE.fullmatch(name):
        return _is_there(name, here)
    return not MODULE.fullmatch(name) or _is_module(name)


def _is_there(name: str, here: list[Path]) -> bool:
    file, _, inside = name.partition("::")
    places = [folder / file for folder in (*here, ROOT, *FOLDERS.values())]
    found = [place for place in places if place.exists()]
    return bool(found) and (not inside or _defines(found[0], inside))


def _defines(path: Path, inside: str) -> bool:
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    for name in inside.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = [node for node in body if isinstance(node, kinds) and node.name == name]
        if not found:
            return False
        body = found[0].body
    return True


def _is_module(name: str) -> bool:
    path = FOLDERS[name.split(".")[0]] / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_the_tour_names_what_is_there() -> None:
    document = TOUR.read_text(encoding="utf-8")
    assert wrong_names(document) == []
    assert len(SECTION.findall(document)) > 15
    assert document.count("::") > 40


@pytest.mark.parametrize(
    "text",
    [
        "`terrazzo/nowhere.py`",
        "`terrazzo/retry.py::Nothing`",
        "`terrazzo/ingest/pipeline.py::IngestPipeline.nothing`",
        "`terrazzo/nowhere/`",
        "`terrazzo.nowhere`",
        "`docs/nothing.md`",
        "**`terrazzo.ingest`** has `nothing.py`",
        "**`terrazzo.ingest`** has `login.py`",
    ],
)
def test_a_name_that_is_gone_is_found(text: str) -> None:
    assert len(wrong_names(f"before\n\n{text}\n\nafter")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "`terrazzo/ingest/pipeline.py::IngestPipeline.take`",
        "`terrazzo/ingest/`",
        "`terrazzo.ingest`",
        "`docs/configuration.md`",
        "**`terrazzo.ingest`** has `pipeline.py`",
        "`p2p/<terminal_id>`",
    ],
)
def test_a_name_that_is_there_is_fine(text: str) -> None:
    assert wrong_names(f"before\n\n{text}\n\nafter") == []
