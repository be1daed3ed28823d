"""docs/conformance.md names tests and files that exist; each of its statements is cited in the code, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKER = ROOT / "broker" / "terrazzo_broker"
DOCUMENT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
CLAUSE = re.compile(r"MQTT-(\d+(?:\.\d+)+-\d+)")
CITATIONS = re.compile(r"((?:\[MQTT-\d+(?:\.\d+)+-\d+\] ?)+)(?:of (3\.1\.1|both))?")
VERSIONS = {"3.1.1": 141, "5.0": 251}  # how many statements the specifications number


def rows(version: str) -> list[list[str]]:
    """The cells of a version's table."""
    section = DOCUMENT.split(f"\n## MQTT {version}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "| MQTT-" in line]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def files(cell: str) -> list[Path]:
    """The source files that a row names: the broker's, or, from the repository's root, another's."""
    return [path for name in code(cell) for path in (BROKER / name, ROOT / name) if path.is_file()]


def citations(text: str, version: str) -> set[str]:
    """The clauses of this version that a source text cites: 5.0's unless it says otherwise."""
    said = {"3.1.1": ("3.1.1", "both"), "5.0": ("", "both")}[version]
    return {clause for run, of in CITATIONS.findall(text) if of in said for clause in CLAUSE.findall(run)}


def test_citations_are_told_apart():
    text = "# [MQTT-1.0-1] [MQTT-1.0-2]; [MQTT-1.0-3]\n# [MQTT-1.0-4] of 3.1.1\n [MQTT-1.0-5] of both; [MQTT-1.0-6]"
    assert citations(text, "5.0") == {"1.0-1", "1.0-2", "1.0-3", "1.0-5", "1.0-6"}
    assert citations(text, "3.1.1") == {"1.0-4", "1.0-5"}


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
            assert files(where), (clause, where)
            assert len(files(where)) == len(code(where)), (clause, where)
            assert code(tests), clause


@pytest.mark.parametrize("version", VERSIONS)
def test_every_statement_is_cited_where_its_row_says(version):
    texts = {path: path.read_text(encoding="utf-8") for *_, where, _ in rows(version) for path in files(where)}
    missing = [
        (clause, where)
        for clause, _, where, _ in rows(version)
        if where != "client only"
        and any(clause.removeprefix("MQTT-") not in citations(texts[path], version) for path in files(where))
    ]
    assert missing == []


@pytest.mark.parametrize("version", VERSIONS)
def test_what_binds_clients_only_has_no_test(version):
    only = [(clause, tests) for clause, _, where, tests in rows(version) if where == "client only"]
    assert 0 < len(only) < 10
    assert {tests for _, tests in only} == {"–"}


def test_the_tests_exist():
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    named = {name for version in VERSIONS for row in rows(version) for name in code(row[3])}
    assert sorted(named - defined) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_cited_clauses_are_listed(version):
    listed = {row[0].removeprefix("MQTT-") for row in rows(version)}
    cited = {
        (clause, path.relative_to(ROOT).as_posix())
        for path in BROKER.rglob("*.py")
        for clause in citations(path.read_text(encoding="utf-8"), version)
    }
    assert cited
    assert sorted((clause, path) for clause, path in cited if clause not in listed) == []
