"""docs/security.md names tests; each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"`(tests/[\w/]+\.py)?((?:::\w+)*)`")


def named_tests(text: str) -> set[tuple[str, str]]:
    """File and name of each test; one without a file is in the file before it, one without a name is a whole file."""
    found, file = set(), ""
    for given, names in _NAMED.findall(text):
        file = given or file
        if given or names:
            found.add((file, names.rpartition("::")[2]))
    return found


def test_each_named_test_is_there() -> None:
    found = named_tests((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))
    assert len(found) > 30
    missing = []
    for file, name in sorted(found):
        path = ROOT / file
        if not path.is_file() or (name and not re.search(rf"(def|class) {name}\b", path.read_text(encoding="utf-8"))):
            missing.append(f"{file}::{name}")
    assert missing == []


def test_each_threat_has_its_limit_and_a_test() -> None:
    """A row that a blank line has torn from its table would be text on the page; one without a test a promise."""
    lines = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    is_in_table, threats, faulty = False, 0, []
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("|") and not before.startswith("|"):
            is_in_table = line.startswith("| threat")
            if not line.startswith("| ") or not lines[lines.index(line) + 1].startswith("|--"):
                faulty.append(f"in no table: {line[:60]}")
        elif line.startswith("| ") and is_in_table:
            threats += 1
            if not all(cell.strip() for cell in line.split("|")[3:-1]):
                faulty.append(f"without an answer, a limit (or none), or a test: {line[:60]}")
            if not named_tests(line.split("|")[-2]):
                faulty.append(f"without a test: {line[:60]}")
    assert threats > 100
    assert faulty == []


def test_each_attack_from_inside_has_its_row_and_each_rule_a_test() -> None:
    """Those that ``benchmarks/neighbours.py`` does, by their numbers."""
    text = (
        (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("### One by one")[2].partition("\n## ")[0]
    )
    attacks = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks" / "attacks").glob("*.py"))
    there = sorted(int(number) for number in re.findall(r"^    number = (\d+)$", attacks, re.MULTILINE))
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    assert [int(row[2]) for row in rows if row[2].strip().isdigit()] == there == list(range(1, 28))
    rules = [row for row in rows if len(row) == 4 and row[1].strip() != "rule"]
    assert len(rules) >= 6
    assert [row[1] for row in rules if not named_tests(row[2])] == []


def test_names_are_read_as_they_are_written() -> None:
    text = "| `tests/a/test_b.py::test_c`, `::TestD::test_e` | `limits.x` | `tests/f.py` |"
    assert named_tests(text) == {("tests/a/test_b.py", "test_c"), ("tests/a/test_b.py", "test_e"), ("tests/f.py", "")}
