"""``docs/mapping.md`` says what really comes out, and leaves nothing out."""

from __future__ import annotations

from mapping_document import PATH, worked

from terrazzo.domain.mapping_row import STATISTICS, RowKind
from terrazzo.expressions.functions import ARGUMENTS


def test_the_worked_example_is_what_comes_out() -> None:
    document = PATH.read_text(encoding="utf-8")
    assert document.count("  mosaic ") >= 10
    assert document == worked(document), "run python tests/mapping/mapping_document.py and look at the difference"


def test_every_kind_function_and_statistic_is_named() -> None:
    document = PATH.read_text(encoding="utf-8")
    named = [*(kind.value for kind in RowKind), *ARGUMENTS, *STATISTICS, "@Expr", "@Compare", "@Condition", "Cycled"]
    assert [name for name in named if f"`{name}" not in document and f'"{name}"' not in document] == []
