"""What the compiler writes for a mapping with every kind of row, trigger, condition, statistic and function.

``python tests/mapping/mapping_plan_golden.py`` writes ``mapping_plan.golden.txt`` anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from terrazzo.domain.mapping_row import RowKind
from terrazzo.domain.mapping_table import parse_table
from terrazzo.mapping.plan import derived_source_steps, made_at_once, source_steps

PATH = Path(__file__).with_name("mapping_plan.golden.txt")

ROWS: list[list[Any]] = [
    ["A", "a point as it is", "", "STA", "$AdapterID-1.a", ""],
    ["B", "computed of it", "", "STA", "$AdapterID-1.b", "x / 10 + A"],
    ["C", "seven columns", "", "STA", "$AdapterID-1.c.d", "-x", ""],
    ["D", "with each report", "", "STA", "Cycled", "$AdapterID-1.d", "@Expr", ""],
    ["E", "a text", "", "STA", "Changed", "$AdapterID-1.e", "", "'on' if x else 'off'"],
    ["F-1", "no name", "", "STA", "$AdapterID-1.f", "x // 2 % 7 ** 2"],
    ["ABS", "", "", "FUNC", "", "abs(A) + min(A, B, 3) - max(A, B)"],
    ["ROUND", "", "", "FUNC", "Changed", "", "@Expr", "round(A) + round(B, 2) + floor(B) * ceil(B)"],
    ["ROOT", "", "", "FUNC", "Cycled", "", "@Expr", "sqrt(A) + log(A) + log(B, 2) + exp({F-1}) + 0x1F"],
    ["BIT", "", "", "FUNC", "Cycled", "60", "@Expr", "bit(A, 3) and not D or A != B"],
    ["ORDER", "", "", "FUNC", "", "A < B <= 3 or B > 2 or B >= A or E == 'on' or true"],
    ["COLLECTED", "", "", "COL", "Changed", "project-1", "", ""],
    ["COMPUTED", "", "", "COL", "Cycled", "project-2", "@Expr", "x * 2"],
    *([fn.upper(), "", "", "STT", "Changed", "600", "@Stat", {"fn": fn, "of": "A"}] for fn in ("avg", "sum", "min")),
    *([fn.upper(), "", "", "STT", "Cycled", "60", "", {"fn": fn, "of": "B"}] for fn in ("max", "count", "delta")),
    ["SIX", "", "", "EVNT", "$AdapterID-1.a", "x > 80"],
    ["SEVEN", "", "", "EVNT", "$AdapterID-1.g", "x * 2", "x > 80 and A < 3"],
    ["COMPARE", "", "", "EVNT", "Changed", "$AdapterID-1.b", "@Compare", ["<", 50]],
    ["UNLIKE", "", "", "EVNT", "Changed", "E", "@Compare", ["!=", "on"]],
    ["EQUAL", "", "", "EVNT", "Changed", "A", "==", "1"],
    ["TIMED", "", "", "EVNT", "Cycled", "60", "@Condition", "B - A < 2"],
    ["ANYTIME", "", "", "EVNT", "Changed", "", "@Condition", "ORDER"],
]  # fmt: skip
PLAIN: list[list[Any]] = [["A", "", "", "STA", "$AdapterID-1.a", ""], ["B", "", "", "STA", "$AdapterID-1.b", "x + 1"]]
UNSPEAKABLE: list[list[Any]] = [['Say "A"', "", "", "STA", "$AdapterID-1.a", ""]]


def golden() -> str:
    """All texts, each under a line that says what it is."""
    texts = []
    for name, rows in (("every kind", ROWS), ("points alone", PLAIN), ("a code that is no field", UNSPEAKABLE)):
        table = parse_table(rows)
        points = {
            place: row.point.removeprefix("$AdapterID-1.")
            for place, row in enumerate(table.rows)
            if row.kind in (RowKind.STA, RowKind.EVNT) and row.point
        }
        source = made_at_once(source_steps(table, points))
        texts.append(f"### {name}: any message\n{source.any_run}\n")
        texts.append(f"### {name}: a new message with all points -> {', '.join(source.codes)}\n{source.run}\n")
        texts.append(f"### {name}: without a message\n{made_at_once(derived_source_steps(table))}\n")
    return "\n".join(texts)


if __name__ == "__main__":
    PATH.write_text(golden(), encoding="utf-8")
