"""docs/conformance.md names tests and files that exist, and every clause that the code cites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKER = ROOT / "broker" / "terrazzo_broker"
DOCUMENT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
CLAUSE = re.compile(r"MQTT-(\d+(?:\.\d+)+-\d+)")
VERSIONS = {"3.1.1": 141, "5.0": 251}  # how many statements the specifications number


def rows(version: str) -> list[list[str]]:
    """The cells of a version's table."""
    section = DOCUMENT.split(f"\n## MQTT {version}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "| MQTT-" in line]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_statement_has_one_row(version):
    clauses = [row[0] for row in rows(version)]
    assert len(clauses) == len(set(clauses)) == VERSIONS[version]
    numbers = [[int(part) for part in re.split(r"[.-]", clause.removeprefix("MQTT-"))] for clause in clauses]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_whole(version):
    for clause, statement, where, tests in rows(version):
        assert statement, clause
        if where != "client only":
            assert [BROKER / name for name in code(where) if (BROKER / name).is_file()], (clause, where)
            assert code(tests), clause


def test_the_tests_exist():
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    named = {name for version in VERSIONS for row in rows(version) for name in code(row[3])}
    assert sorted(named - defined) == []


def test_cited_clauses_are_listed():
    listed = {row[0].removeprefix("MQTT-") for version in VERSIONS for row in rows(version)}
    cited = {
        (clause, path.relative_to(ROOT).as_posix())
        for path in BROKER.rglob("*.py")
        for clause in CLAUSE.findall(path.read_text(encoding="utf-8"))
    }
    assert cited
    assert sorted((clause, path) for clause, path in cited if clause not in listed) == []
