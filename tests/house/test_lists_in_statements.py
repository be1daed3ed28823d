"""Lists that others wrote, however long they are, are one parameter of a statement: ``terrazzo.database.one_of``."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

PLATFORM = Path(__file__).parents[2] / "platform" / "terrazzo"
METHODS = {"in_", "not_in", "notin_"}
ALLOWED = {
    "analysis/results.py": (1, "a query inside"),
    "campaigns/terminal_records.py": (2, "states, which the code names"),
    "commands/journal.py": (4, "states, which the code names"),
    "database/company_records.py": (1, "a query inside"),
    "database/conditions.py": (3, "a query inside"),
    "database/pages.py": (1, "a query inside"),
    "database/usage.py": (2, "kinds, which the code names; pairs, a bounded number at once"),
    "events/expiry.py": (1, "a query inside"),
    "mapping/effect_writer.py": (2, "a query inside; states, which the code names"),
    "mapping/offline_data.py": (1, "a query inside"),
    "mapping/replay/journal.py": (2, "states, which the code names"),
    "metadata/excesses.py": (3, "kinds, which the code names; a query inside"),
    "metadata/former_terminals.py": (1, "a query inside"),
    "metadata/lookup.py": (1, "a query inside"),
    "metadata/repositories/terminals.py": (3, "queries inside; states, which the code names"),
    "rules/notice_store.py": (2, "a query inside; states, which the code names"),
}


def test_a_list_is_one_parameter() -> None:
    found: Counter[str] = Counter()
    for path in PLATFORM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                found[str(path.relative_to(PLATFORM))] += 1
    allowed = {name: count for name, (count, _) in ALLOWED.items()}
    assert dict(found) == allowed, "use terrazzo.database.one_of, or say here whose the list is"
