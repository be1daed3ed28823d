"""The documentation of the actions is what the table and the examples say."""

from __future__ import annotations

from pathlib import Path

import pytest

from terrazzo.api.kernel.operation import Operation, OperationTable
from terrazzo.api.openapi.markdown import main, render, render_gateway
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS

DOCS = Path(__file__).parents[2] / "docs"


def test_actions_md_is_current() -> None:
    assert (DOCS / "actions.md").read_text(encoding="utf-8") == render(), "run python -m terrazzo.api.openapi.markdown"


def test_the_examples_of_gateway_md_are_current() -> None:
    text = (DOCS / "gateway.md").read_text(encoding="utf-8")
    assert text == render_gateway(text), "run python -m terrazzo.api.openapi.markdown"


def test_every_action_path_and_field_is_there() -> None:
    text = render()
    for operation in TABLE:
        _, _, section = text.partition(f"\n### {operation.name}\n")
        section = section.partition("\n### ")[0]
        assert operation.summary in section
        for field in operation.request.__struct_encode_fields__:
            assert f"| {field} |" in section
    for path in PATHS:
        assert f"{path.method} {path.path}\n" in text


def test_it_writes_the_files_of_the_folder_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gateway.md").write_text("# Head\n\n## Examples\n\n### old\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["document", str(tmp_path)])
    main()
    assert (tmp_path / "actions.md").read_text(encoding="utf-8") == render()
    written = (tmp_path / "gateway.md").read_text(encoding="utf-8")
    assert written.startswith("# Head\n\n## Examples\n")
    assert "### ping\n" in written
    assert "### old" not in written


def test_two_operations_cannot_share_a_name() -> None:
    first: Operation = next(iter(TABLE))
    with pytest.raises(ValueError, match="two operations answer to login"):
        OperationTable((first, first))
