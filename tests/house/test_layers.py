"""The layers of ``docs/layers.toml``: arrows point down, each module has its place, no circles, sizes hold."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from import_arrows import Arrow, arrows_of, broken_arrows, circle_text, circles, modules_of, unplaced
from layer_table import BEGIN, END, ROOT, TOUR, LayerTable, parse_table, read_table, with_drawing

MODULES_IN_FOLDER_MAX = 25
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60

TABLE = read_table()
MODULES = modules_of(ROOT, TABLE)


@pytest.fixture(scope="module")
def arrows() -> list[Arrow]:
    return arrows_of(MODULES, ROOT)


def test_each_module_has_one_place() -> None:
    assert unplaced(MODULES, TABLE) == []


def test_arrows_point_down(arrows: list[Arrow]) -> None:
    broken = broken_arrows(arrows, TABLE)
    assert not broken, "\n".join(broken)


def test_nothing_goes_in_circles(arrows: list[Arrow]) -> None:
    found = circles(arrows)
    new = [circle_text(circle, arrows) for circle in found if not _is_known(circle)]
    assert not new, "\n".join(new)
    undone = [package for package in TABLE.known_circles if not any(_lies_in(package, circle) for circle in found)]
    assert undone == [], "no circle is left there: take the entry out of docs/layers.toml"


def _is_known(circle: list[str]) -> bool:
    return any(_lies_in(package, circle) for package in TABLE.known_circles)


def _lies_in(package: str, circle: list[str]) -> bool:
    return all(f"{module}.".startswith(f"{package}.") for module in circle)


def test_the_tour_shows_the_table() -> None:
    document = TOUR.read_text(encoding="utf-8")
    assert document == with_drawing(document, TABLE), "python tests/house/layer_table.py brings it up to date"


def test_no_folder_is_crowded() -> None:
    folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in MODULES.values())
    for folder in [folder for folder in folders if folder.endswith("/versions")]:
        del folders[folder]  # schema changes: one is added for each, none is ever taken away
    assert {folder: count for folder, count in folders.items() if count > MODULES_IN_FOLDER_MAX} == {}


def test_no_module_is_long() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in MODULES.values()}
    assert {path: count for path, count in lines.items() if count > MODULE_LINES_MAX} == {}


def test_no_function_is_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


# The checks above on planted trees: each can fail, and says where.

PLANTED_TABLE = """
[packages.house]
root = "platform"
imports = ["cellar.door"]
says = ""

[packages.cellar]
root = "broker"
imports = []
says = ""

[composition]
"house.attic" = ["cellar"]

[apart]
"house.tent" = ["house.attic"]

[layers]
house = [
    { name = "ground", rooms = ["hall", "kitchen", "tent"], says = "" },
    { name = "top", rooms = ["attic", "kitchen.shelf"], says = "" },
]
"""
TREE = {
    "platform/house/__init__.py": "",
    "platform/house/hall.py": "",
    "platform/house/tent/__init__.py": "",
    "platform/house/tent/pole.py": "",
    "platform/house/kitchen/__init__.py": "",
    "platform/house/kitchen/stove.py": "",
    "platform/house/kitchen/shelf.py": "",
    "platform/house/attic.py": "",
    "broker/cellar/__init__.py": "",
    "broker/cellar/door.py": "",
    "broker/cellar/wine.py": "",
}


class Planted:
    def __init__(self, root: Path, changed: dict[str, str], table: str = PLANTED_TABLE) -> None:
        for name, text in (TREE | changed).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.table: LayerTable = parse_table(table)
        self.modules = modules_of(root, self.table)
        self.arrows: list[Arrow] = arrows_of(self.modules, root)

    def faults(self) -> list[str]:
        return broken_arrows(self.arrows, self.table)


@pytest.mark.parametrize(
    ("path", "line", "fault"),
    [
        ("house/hall.py", "import house.attic", "'top' lies above"),
        ("house/hall.py", "from house import attic", "'top' lies above"),
        ("house/hall.py", "from house.attic import beam", "'top' lies above"),
        ("house/hall.py", "from .attic import beam", "'top' lies above"),
        ("house/hall.py", "from house import kitchen", "house.kitchen is beside it"),
        ("house/kitchen/stove.py", "from .shelf import pan", "'top' lies above"),
        ("house/kitchen/stove.py", "from ..attic import beam", "'top' lies above"),
        ("house/attic.py", "from house.kitchen.shelf import pan", "house.kitchen.shelf is beside it"),
        ("house/hall.py", "import cellar.wine", "house.hall may not import cellar.wine"),
        ("house/hall.py", "from cellar import wine", "house.hall may not import cellar.wine"),
        ("house/hall.py", "from cellar import bottle", "house.hall may not import cellar"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "def f():\n    {}", "if TYPE_CHECKING:\n    {}"])
def test_an_arrow_that_points_up_is_told_with_its_line(
    tmp_path: Path, path: str, line: str, fault: str, around: str
) -> None:
    text = around.format(line)
    found = Planted(tmp_path, {f"platform/{path}": text}).faults()
    assert len(found) == 1
    assert found[0].startswith(f"platform/{path}:{text.count(chr(10)) + 1}: {line}\n")
    assert fault in found[0]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("house/attic.py", "from house.hall import coat"),
        ("house/attic.py", "from house import kitchen"),
        ("house/attic.py", "import cellar.wine"),
        ("house/hall.py", "from cellar.door import lock"),
        ("house/kitchen/stove.py", "from house.kitchen import pot"),
        ("house/kitchen/shelf.py", "from .stove import pot"),
        ("house/hall.py", "import os.path"),
    ],
)
def test_an_arrow_that_points_down_is_fine(tmp_path: Path, path: str, line: str) -> None:
    assert Planted(tmp_path, {f"platform/{path}": line}).faults() == []


def test_what_stands_apart_imports_nothing_and_has_named_users(tmp_path: Path) -> None:
    changed = {
        "house/tent/pole.py": "from house.tent import peg\nfrom cellar.door import lock",
        "house/kitchen/shelf.py": "from house.tent import pole",
        "house/attic.py": "from house.tent import pole",
    }
    planted = Planted(tmp_path, {f"platform/{path}": text for path, text in changed.items()})
    assert planted.faults() == [
        "platform/house/kitchen/shelf.py:1: from house.tent import pole\n    house.tent is for house.attic alone",
        "platform/house/tent/pole.py:2: from cellar.door import lock\n    house.tent imports nothing of ours",
    ]


def test_the_broker_below_imports_nothing(tmp_path: Path) -> None:
    found = Planted(tmp_path, {"broker/cellar/wine.py": "import house.hall"}).faults()
    assert found == ["broker/cellar/wine.py:1: import house.hall\n    cellar.wine may not import house.hall"]


def test_a_new_room_needs_a_place_and_an_old_entry_goes(tmp_path: Path) -> None:
    new = Planted(tmp_path, {"platform/house/garage.py": ""})
    assert unplaced(new.modules, new.table) == ["house.garage has no layer in the table of house"]
    moved = parse_table(PLANTED_TABLE.replace('"hall"', '"hall", "lobby", "attic"'))
    assert unplaced(new.modules, moved) == [
        "house.attic stands twice in the table",
        "house.lobby is in the table and not in the tree",
        "house.garage has no layer in the table of house",
    ]


def test_a_circle_is_told_with_its_imports(tmp_path: Path) -> None:
    planted = Planted(
        tmp_path,
        {
            "broker/cellar/door.py": "def f():\n    from cellar.wine import x",
            "broker/cellar/wine.py": "from cellar import bottle",
            "broker/cellar/__init__.py": "from cellar import door",
            "platform/house/attic.py": "from house import hall",
        },
    )
    (circle,) = circles(planted.arrows)
    assert circle == ["cellar", "cellar.door", "cellar.wine"]
    assert circle_text(circle, planted.arrows).splitlines()[1:] == [
        "    broker/cellar/__init__.py:1: from cellar import door",
        "    broker/cellar/door.py:2: from cellar.wine import x",
        "    broker/cellar/wine.py:1: from cellar import bottle",
    ]


@pytest.mark.parametrize("modules", [2, 3, 4])
def test_circles_of_any_size_are_found(tmp_path: Path, modules: int) -> None:
    ring = {f"broker/cellar/m{n}.py": f"from cellar import m{(n + 1) % modules}" for n in range(modules)}
    planted = Planted(tmp_path, {**ring, "broker/cellar/door.py": "from cellar import m0, wine"})
    found = circles(planted.arrows)
    assert found == [[f"cellar.m{n}" for n in range(modules)]]
    assert "broker/cellar/m0.py:1: from cellar import m1" in circle_text(found[0], planted.arrows)
    assert "door" not in circle_text(found[0], planted.arrows)


def test_two_circles_stay_two(tmp_path: Path) -> None:
    texts = {"a": "b", "b": "a", "c": "d, a", "d": "c"}
    planted = Planted(tmp_path, {f"broker/cellar/{name}.py": f"from cellar import {to}" for name, to in texts.items()})
    assert circles(planted.arrows) == [["cellar.a", "cellar.b"], ["cellar.c", "cellar.d"]]


def test_the_drawing_takes_the_place_of_the_old_one() -> None:
    document = f"before\n{BEGIN}yesterday\n{END}after\n"
    made = with_drawing(document, parse_table(PLANTED_TABLE))
    assert made.startswith(f"before\n{BEGIN}")
    assert made.endswith(f"{END}after\n")
    assert "yesterday" not in made
    assert "| top            | attic  kitchen.shelf" in made
    assert made == with_drawing(made, parse_table(PLANTED_TABLE))
