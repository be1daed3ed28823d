"""``docs/layers.toml`` as values, and as the drawing in ``docs/architecture.md``.

``python tests/house/layer_table.py`` brings the drawing up to date.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "layers.toml"
TOUR = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- layers.toml -->\n", "<!-- /layers.toml -->"
_LABEL, _ROOMS, _SAYS = 14, 44, 52


@dataclass(frozen=True, slots=True)
class Layer:
    """Rooms at one height.

    Attributes:
        rooms: full names of modules or packages.
    """

    name: str
    rooms: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Package:
    """One of the packages: the folder around it, and what it may import of the others (prefixes)."""

    root: str
    imports: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class LayerTable:
    """Who may import whom.

    Attributes:
        packages: by name.
        layers: of the modules in a package, from the ground; by the package's full name.
        composition: a module -> what it alone may import besides (prefixes).
        apart: a room that imports nothing of ours -> who alone imports it (prefixes).
        known_circles: a package with circles that are still to be undone -> why.
    """

    packages: dict[str, Package]
    layers: dict[str, tuple[Layer, ...]]
    composition: dict[str, tuple[str, ...]]
    apart: dict[str, tuple[str, ...]]
    known_circles: dict[str, str]


def parse_table(text: str) -> LayerTable:
    """Reads the TOML text."""
    document = tomllib.loads(text)
    return LayerTable(
        packages={
            name: Package(given["root"], tuple(given["imports"]), given["says"])
            for name, given in document["packages"].items()
        },
        layers={
            package: tuple(_layer(package, given) for given in layers) for package, layers in document["layers"].items()
        },
        composition={module: tuple(given) for module, given in document["composition"].items()},
        apart={room: tuple(given) for room, given in document.get("apart", {}).items()},
        known_circles=document.get("known_circles", {}),
    )


def _layer(package: str, given: dict[str, Any]) -> Layer:
    return Layer(given["name"], tuple(f"{package}.{room}" for room in given["rooms"]), given["says"])


def read_table() -> LayerTable:
    """The repository's own."""
    return parse_table(TABLE.read_text(encoding="utf-8"))


def drawn(table: LayerTable) -> str:
    """The table as Markdown: a drawing for each package, the highest layer on top."""
    packages = ["| folder | package | may import of ours | |", "|---|---|---|---|"]
    for name, package in table.packages.items():
        imports = ", ".join(f"`{each}`" for each in package.imports) or "nothing"
        packages.append(f"| `{package.root}/` | `{name}` | {imports} | {package.says} |")
    for module, more in table.composition.items():
        packages.append(f"| | `{module}` | {', '.join(f'`{each}`' for each in more)} | it alone |")
    drawings = [
        f"`{package}`:\n\n```text\n{_drawing(package, layers)}\n```" for package, layers in table.layers.items()
    ]
    return "\n".join(packages) + "\n\n" + "\n\n".join(drawings) + "\n"


def _drawing(package: str, layers: tuple[Layer, ...]) -> str:
    rule = f"+{'-' * (_LABEL + 2)}+{'-' * (_ROOMS + 2)}+{'-' * (_SAYS + 2)}+"
    lines = [rule]
    for layer in reversed(layers):
        rooms = wrap("  ".join(room.removeprefix(f"{package}.") for room in layer.rooms), _ROOMS)
        says = wrap(layer.says, _SAYS)
        for number in range(max(len(rooms), len(says))):
            label = layer.name if number == 0 else ""
            cells = [rooms[number] if number < len(rooms) else "", says[number] if number < len(says) else ""]
            lines.append(f"| {label:{_LABEL}} | {cells[0]:{_ROOMS}} | {cells[1]:{_SAYS}} |")
        lines.append(rule)
    return "\n".join(lines)


def with_drawing(document: str, table: LayerTable) -> str:
    """The document with the table's drawing between its two marks."""
    before, _, rest = document.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{TOUR.name} lacks {BEGIN.strip()} ... {END}"
    return f"{before}{BEGIN}\n{drawn(table)}\n{END}{after}"


if __name__ == "__main__":
    TOUR.write_text(with_drawing(TOUR.read_text(encoding="utf-8"), read_table()), encoding="utf-8")
