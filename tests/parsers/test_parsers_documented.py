"""docs/configuration.md has the limits that are fixed, as the code has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from terrazzo.api.kernel.attachments import MOST_FILES
from terrazzo.bulk.rows import MOST_CELL_CHARACTERS, MOST_ROWS
from terrazzo.database.conditions import MAX_CONDITIONS, MAX_VALUES, MAX_VALUES_IN_ALL
from terrazzo.database.field import JSON_DEPTH
from terrazzo.domain import mapping_table, payload, script_rows
from terrazzo.expressions.parser import MAX_DEPTH
from terrazzo.expressions.tokens import MAX_CHARACTERS, MAX_TOKENS
from terrazzo.terminals.scram import MOST_MESSAGE

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"

FIXED: dict[str, tuple[int, ...]] = {
    "rows of a script or a mapping": (script_rows.MAX_ROWS,),
    "characters of a cell in them": (script_rows.MAX_CELL,),
    "characters of an expression; its names, numbers and operators; its nesting": (
        MAX_CHARACTERS,
        MAX_TOKENS,
        MAX_DEPTH,
    ),
    "names, numbers and signs in all expressions of a script or a mapping": (script_rows.MAX_PARTS,),
    "codes of a balance": (script_rows.MAX_CODES,),
    "conditions in each of `where_and`, `where_or`, `where_in`; values of one; values in all of a request": (
        MAX_CONDITIONS,
        MAX_VALUES,
        MAX_VALUES_IN_ALL,
    ),
    "levels of a JSON text or structure in a request or a record": (JSON_DEPTH,),
    "levels of a terminal's payload": (payload.MAX_DEPTH,),
    "bytes of a message of a SCRAM login": (MOST_MESSAGE,),
    "files of an e-mail or a form": (MOST_FILES,),
    "rows of an import; characters of a cell in it": (MOST_ROWS, MOST_CELL_CHARACTERS),
}


def documented() -> dict[str, str]:
    _, _, section = DOCUMENT.read_text(encoding="utf-8").partition("\n## Limits that are fixed\n")
    section = section.partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: row[1] for row in rows[1:]}


@pytest.mark.parametrize("what", FIXED)
def test_a_fixed_limit_is_documented(what: str) -> None:
    assert documented()[what] == "; ".join(f"{each:,}" for each in FIXED[what])


def test_what_is_documented_is_a_limit() -> None:
    assert documented().keys() == FIXED.keys()
    assert mapping_table.MAX_ROWS == script_rows.MAX_ROWS
