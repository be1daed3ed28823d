"""The two suites that the tests are: what each commit is to pass, and what goes from end to end.

``--suite commit`` (``make test``) has the tests that run in their own process, or need one of the platform besides;
``--suite end-to-end`` has all others. ``end_to_end.toml`` says which those are and why: whole folders, files, and tests
with another server, as on PostgreSQL where a fixture runs them on SQLite too. Without the option all run, and so does
what is named on the command line, whichever suite it is of.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

COMMIT, END_TO_END = "commit", "end-to-end"
TABLE = "end_to_end.toml"


@dataclass(frozen=True)
class Table:
    """What runs from end to end. Paths are those below the folder of tests; each value is a reason."""

    folders: dict[str, str]
    files: dict[str, str]
    in_process: dict[str, str]
    servers: dict[str, str]
    kinds: dict[str, str]

    def has_file(self, path: str) -> bool:
        """Whether a file of tests is one of them as a whole."""
        return path in self.files or (path.partition("/")[0] in self.folders and path not in self.in_process)

    def has_test(self, path: str, test: pytest.Function) -> bool:
        """Whether a test is one of them: its file is, or a fixture of it is a server."""
        on_server = not self.servers.keys().isdisjoint(test.fixturenames)
        return on_server or self.has_file(path) or not self.kinds.keys().isdisjoint(kinds_of(test))


def kinds_of(test: pytest.Function) -> set[str]:
    """The parameters that a test's fixtures have, as far as they are text; not those of the test itself."""
    callspec = getattr(test, "callspec", None)
    if callspec is None:
        return set()
    own = {name for mark in test.iter_markers("parametrize") for name in names_in(mark)}
    return {value for name, value in callspec.params.items() if name not in own and isinstance(value, str)}


def names_in(mark: pytest.Mark) -> Sequence[str]:
    """What a ``parametrize`` gives values to."""
    names: str | Sequence[str] = mark.args[0]
    return names.replace(",", " ").split() if isinstance(names, str) else names


@cache
def table(folder: Path) -> Table:
    """The table of a folder of tests."""
    return Table(**tomllib.loads((folder / TABLE).read_text(encoding="utf-8")))


class Suite:
    """The hooks that leave out the other suite's tests."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Files that are wholly the other suite's are not even loaded."""
        is_others = collection_path.suffix == ".py" and table(self.folder).has_file(self._path(collection_path))
        return True if is_others and self.name == COMMIT else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        of_suite, others = [], []
        for item in items:
            (of_suite if self._has(item) else others).append(item)
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = of_suite

    def _has(self, item: pytest.Item) -> bool:
        if not isinstance(item, pytest.Function):  # ``by_file`` has one in the place of a file that isn't loaded yet
            return True
        return table(self.folder).has_test(self._path(item.path), item) == (self.name == END_TO_END)

    def _path(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else ""


def pytest_addoption(parser: pytest.Parser) -> None:
    chosen = "run one of the two suites, unless files or folders are named"
    parser.addoption("--suite", choices=(COMMIT, END_TO_END), help=chosen)


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("suite")
    if name is not None and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.pluginmanager.register(Suite(name, config.rootpath / "tests"))
