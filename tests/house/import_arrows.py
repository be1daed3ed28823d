"""Imports as arrows between modules, and what is wrong with them. It reads source text only; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from layer_table import Layer, LayerTable


@dataclass(frozen=True, slots=True)
class Arrow:
    """One import of one of our modules.

    Attributes:
        source: the module that imports.
        target: the module that is imported; a package where a name of its ``__init__`` is.
        place: ``file:line: statement``.
    """

    source: str
    target: str
    place: str


def modules_of(root: Path, table: LayerTable) -> dict[str, Path]:
    """All modules of the packages below a checkout's root, by full name."""
    found = {}
    for name, package in table.packages.items():
        folder = root / package.root
        for path in sorted((folder / name).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def arrows_of(modules: Mapping[str, Path], root: Path) -> list[Arrow]:
    """Each import between the modules: for type checkers and inside functions too."""
    return [arrow for module, path in modules.items() for arrow in _arrows_from(module, path, modules, root)]


def _arrows_from(module: str, path: Path, modules: Mapping[str, Path], root: Path) -> Iterator[Arrow]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        place = f"{path.relative_to(root)}:{node.lineno}: {lines[node.lineno - 1].strip()}"
        for target in {_module_named(name, modules) for name in _imported_names(node, package)} - {"", module}:
            yield Arrow(module, target, place)


def _imported_names(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
        return
    parts = package.split(".")
    above = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
    base = ".".join(part for part in (above, node.module or "") if part)
    yield from (f"{base}.{name.name}" for name in node.names)


def _module_named(name: str, modules: Mapping[str, Path]) -> str:
    """The longest beginning of a dotted name that is a module of ours; empty: none is."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def unplaced(modules: Iterable[str], table: LayerTable) -> list[str]:
    """Modules without a layer, entries without a module, entries that stand in two layers."""
    wrong = []
    names = list(modules)
    for package, layers in table.layers.items():
        entries = [room for layer in layers for room in layer.rooms]
        wrong += [f"{entry} stands twice in the table" for entry in sorted(set(entries)) if entries.count(entry) > 1]
        wrong += [f"{entry} is in the table and not in the tree" for entry in entries if not _inside(entry, names)]
        wrong += [
            f"{module} has no layer in the table of {package}"
            for module in names
            if module.startswith(f"{package}.") and _height(module, layers) is None
        ]
    return wrong


def _inside(entry: str, names: Iterable[str]) -> bool:
    return any(name == entry or name.startswith(f"{entry}.") for name in names)


def _height(module: str, layers: tuple[Layer, ...]) -> tuple[int, str] | None:
    """The number of a module's layer, and its room; the longest entry that fits counts."""
    fits = [(len(room), number, room) for number, layer in enumerate(layers) for room in layer.rooms
            if module == room or module.startswith(f"{room}.")]  # fmt: skip
    return max(fits)[1:] if fits else None


def broken_arrows(arrows: Iterable[Arrow], table: LayerTable) -> list[str]:
    """Arrows that leave their package where they may not, or point up or sideways inside it."""
    return [f"{arrow.place}\n    {why}" for arrow in arrows for why in _faults(arrow, table)]


def _faults(arrow: Arrow, table: LayerTable) -> Iterator[str]:
    home = arrow.source.split(".")[0]
    for room, users in table.apart.items():
        inward, outward = _inside(room, [arrow.target]), _inside(room, [arrow.source])
        if outward and not inward:
            yield f"{room} imports nothing of ours"
        if inward and not outward and not any(_inside(user, [arrow.source]) for user in users):
            yield f"{room} is for {' and '.join(users)} alone"
    if arrow.target.split(".")[0] != home:
        allowed = (*table.packages[home].imports, *table.composition.get(arrow.source, ()))
        if not any(_inside(prefix, [arrow.target]) for prefix in allowed):
            yield f"{arrow.source} may not import {arrow.target}"
        return
    for package, layers in table.layers.items():
        from_, to = _height(arrow.source, layers), _height(arrow.target, layers)
        if from_ and to and from_[1] != to[1] and from_[0] <= to[0]:
            upward = f"{layers[to[0]].name!r} lies above" if from_[0] < to[0] else "beside it"
            yield f"in {package}, layer {layers[from_[0]].name!r}: {to[1]} is {upward}"


def circles(arrows: Iterable[Arrow]) -> list[list[str]]:
    """Groups of modules each of which leads to all others: strongly connected components of two and more (Tarjan)."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows:
        graph.setdefault(arrow.source, set()).add(arrow.target)
    return sorted(_Components(graph).found)


class _Components:
    """Tarjan's walk, with a stack of its own in place of recursion."""

    def __init__(self, graph: Mapping[str, set[str]]) -> None:
        self._graph = graph
        self._index: dict[str, int] = {}
        self._low: dict[str, int] = {}
        self._open: list[str] = []
        self.found: list[list[str]] = []
        for start in graph:
            if start not in self._index:
                self._walk(start)

    def _walk(self, start: str) -> None:
        path = [(start, self._enter(start))]
        while path:
            module, rest = path[-1]
            target = next(rest, None)
            if target is None:
                path.pop()
                self._leave(module)
                if path:
                    self._low[path[-1][0]] = min(self._low[path[-1][0]], self._low[module])
            elif target not in self._index:
                path.append((target, self._enter(target)))
            elif target in self._open:
                self._low[module] = min(self._low[module], self._index[target])

    def _enter(self, module: str) -> Iterator[str]:
        self._index[module] = self._low[module] = len(self._index)
        self._open.append(module)
        return iter(sorted(self._graph.get(module, ())))

    def _leave(self, module: str) -> None:
        if self._low[module] != self._index[module]:
            return
        place = self._open.index(module)
        component, self._open[place:] = self._open[place:], []
        if len(component) > 1:
            self.found.append(sorted(component))


def circle_text(circle: list[str], arrows: Iterable[Arrow]) -> str:
    """A circle with the imports that make it."""
    inside = set(circle)
    places = sorted({arrow.place for arrow in arrows if {arrow.source, arrow.target} <= inside})
    return f"a circle of {len(circle)} modules: {', '.join(circle)}\n    " + "\n    ".join(places)
