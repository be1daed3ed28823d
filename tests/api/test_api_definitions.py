"""Whoever searches the code for an action or a path finds the line that defines it, and only that one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import terrazzo.api
from terrazzo.api.kernel.operation import Operation, OperationTable
from terrazzo.api.operations.bulk import BULK
from terrazzo.api.operations.files import DOWNLOAD, UPLOAD
from terrazzo.api.operations.history.export import EXPORTS
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS

ROOT = Path(terrazzo.api.__file__).parent
OTHERS = {
    ROOT / "transports" / "mqtt_auth",  # has the words of other brokers
    ROOT / "kernel" / "replica",  # says of each action which node answers it
}
LINES = [
    (f"{path.relative_to(ROOT)}:{number}", line)
    for path in sorted(ROOT.rglob("*.py"))
    if path.parent not in OTHERS
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
]
FILES = (UPLOAD, DOWNLOAD, *EXPORTS, *(row for each in BULK for row in (each.upload(), each.export())))


def definitions(text: str, lines: Iterable[tuple[str, str]] = LINES) -> list[str]:
    """Where a text stands as a literal of its own; not in texts for people, which have it as JSON."""
    return [at for at, line in lines if f'"{text}"' in line and f'"action": "{text}"' not in line]


@pytest.mark.parametrize("name", [name for row in TABLE for name in (row.name, *row.aliases)])
def test_an_action_is_written_out_once(name: str) -> None:
    assert len(found := definitions(name)) == 1, (name, found)


@pytest.mark.parametrize("path", sorted({row.path for row in (*PATHS, *FILES)}))
def test_a_path_is_written_out_once(path: str) -> None:
    assert len(found := definitions(path)) == 1, (path, found)


def test_a_name_that_is_composed_is_not_found() -> None:
    lines = [("a.py:1", 'f"create_{name}"'), ("a.py:2", '"create_terminal_config"')]
    assert definitions("create_terminal", lines) == []


def test_two_rows_cannot_stand_at_one_path() -> None:
    first: Operation = next(iter(PATHS))
    with pytest.raises(ValueError, match="two operations answer to GET /grid/api/v1/grid/getLastItem"):
        OperationTable((first, first))
