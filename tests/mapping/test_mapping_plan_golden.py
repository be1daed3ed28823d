"""The generated function, as text: a change to the compiler shows as a difference that can be read."""

from __future__ import annotations

from mapping_plan_golden import PATH, ROWS, golden

from terrazzo.domain.mapping_row import STATISTICS, RowKind
from terrazzo.expressions.functions import ARGUMENTS


def test_the_compiler_writes_what_it_wrote() -> None:
    update = "the generated code has changed: run python tests/mapping/mapping_plan_golden.py and read the difference"
    assert golden() == PATH.read_text(encoding="utf-8"), update


def test_the_mapping_has_everything() -> None:
    cells = " ".join(str(cell) for row in ROWS for cell in row)
    assert {row[3] for row in ROWS} == {kind.value for kind in RowKind}
    assert {row[7]["fn"] for row in ROWS if row[3] == "STT"} == set(STATISTICS)
    assert [name for name in ARGUMENTS if f"{name}(" not in cells] == []
    assert {row[4] for row in ROWS if len(row) == 8} == {"Changed", "Cycled"}
    assert {"@Expr", "@Stat", "@Condition", "@Compare", "=="} <= {row[6] for row in ROWS if len(row) == 8}
    assert {len(row) for row in ROWS} == {6, 7, 8}
