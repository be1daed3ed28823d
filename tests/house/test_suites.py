"""The two suites: each test is of one of them, both together are all, CI runs both, and the table has the reasons."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import suites
from suites import COMMIT, END_TO_END, Suite, Table, table

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FILES = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))
TABLE = table(TESTS)
RIGS = {
    *("browser", "chromium", "demo_plant", "playwright"),
    *("cluster_stand", "local_cluster", "nats_servers"),
    *("bridge_rig", "nginx_server", "rabbitmq_server"),
    *("killed_migration", "power_rounds", "unsynced_disk"),
}
"""Modules of browsers, several nodes, servers of others, and faults again and again."""
SERVERS = {"InfluxServer", "Mosquitto", "running_nats", "running_postgresql"}
"""What starts one."""
SMALL = {
    "tests/conftest.py": """
        import pytest
        pytest_plugins = ["by_file", "suites"]
        @pytest.fixture(params=["sqlite", "postgresql"])
        def database(request): return request.param
        @pytest.fixture
        def postgresql(): ...
        @pytest.fixture
        def through(postgresql): ...
    """,
    "tests/end_to_end.toml": """
        folders = {far = "browsers"}
        files = {"near/test_killed.py" = "kill -9"}
        in_process = {"far/test_words.py" = "reads"}
        servers = {postgresql = "a PostgreSQL"}
        kinds = {postgresql = "on PostgreSQL too"}
    """,
    "tests/far/test_browser.py": "def test_page(): ...",
    "tests/far/test_words.py": "def test_words(): ...",
    "tests/near/test_killed.py": "def test_kill(): ...",
    "tests/near/test_mixed.py": """
        import pytest
        def test_each(database): ...
        def test_plain(): ...
        def test_server(through): ...
        @pytest.mark.parametrize("kind, number", [("postgresql", 1)])
        def test_word(kind, number): ...
    """,
}
OF_COMMIT = {"test_words", "test_each[sqlite]", "test_plain", "test_word[postgresql-1]"}
FROM_END_TO_END = {"test_page", "test_kill", "test_each[postgresql]", "test_server"}
WITHOUT = ("schemathesis", "terrazzo", "hypothesispytest", "anyio", "asyncio", "timeout")


def run(folder: Path, *arguments: str) -> set[str]:
    """The tests that passed, handed out by files as with ``make test``."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    program = [sys.executable, "-m", "pytest", "-n", "1", "--dist", "loadfile", "-c", os.devnull, "--rootdir", "."]
    without = [word for name in WITHOUT for word in ("-p", f"no:{name}")]
    done = subprocess.run(
        [*program, *without, "-v", *arguments],
        cwd=folder,
        env={**env, "PYTHONPATH": str(Path(suites.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.rpartition("::")[2].strip() for line in done.stdout.splitlines() if "PASSED" in line}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few tests of each kind."""
    folder = tmp_path_factory.mktemp("small")
    for path, text in SMALL.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(line.removeprefix(" " * 8) for line in text.strip("\n").splitlines()))
    return folder


def test_each_test_runs_in_one_suite_and_all_without_a_suite(small: Path) -> None:
    assert run(small, "--suite", COMMIT) == OF_COMMIT
    assert run(small, "--suite", END_TO_END) == FROM_END_TO_END
    assert run(small) == OF_COMMIT | FROM_END_TO_END


def test_what_is_named_runs_whichever_suite_it_is_of(small: Path) -> None:
    assert run(small, "--suite", COMMIT, "tests/far", "tests/near/test_killed.py") == {
        "test_page",
        "test_words",
        "test_kill",
    }


def test_each_file_is_wholly_of_one_suite_or_shared_by_what_its_fixtures_start() -> None:
    commit, end_to_end = Suite(COMMIT, TESTS), Suite(END_TO_END, TESTS)
    for path in FILES:
        assert bool(commit.pytest_ignore_collect(TESTS / path)) == TABLE.has_file(path), path
        assert not end_to_end.pytest_ignore_collect(TESTS / path), f"{path}: its tests with a server run nowhere"
    assert {TABLE.has_file(path) for path in FILES} == {True, False}


def test_the_table_names_what_there_is_once_and_says_why() -> None:
    raw = tomllib.loads((TESTS / suites.TABLE).read_text(encoding="utf-8"))
    assert all(reason for rows in raw.values() for reason in rows.values())
    folders = {path.partition("/")[0] for path in FILES}
    assert TABLE.folders.keys() <= folders
    assert {*TABLE.files, *TABLE.in_process} <= set(FILES)
    assert [path for path in TABLE.files if path.partition("/")[0] in TABLE.folders] == []
    assert [path for path in TABLE.in_process if path.partition("/")[0] not in TABLE.folders] == []
    fixture = re.compile(r"^@pytest\.fixture.*\n(?:async )?def (\w+)\(", re.MULTILINE)
    fixtures = {name for path in TESTS.rglob("*.py") for name in fixture.findall(path.read_text(encoding="utf-8"))}
    assert TABLE.servers.keys() <= fixtures


def test_what_needs_browsers_nodes_or_servers_of_others_is_in_the_table() -> None:
    wrong = {path: found for path in FILES if not TABLE.has_file(path) and (found := needs(TESTS / path, TABLE))}
    assert wrong == {}
    assert needs(TESTS / "console" / "test_console_pages.py", TABLE) == ["browser", "demo_plant", "playwright"]
    assert needs(TESTS / "store" / "test_influxdb_traps.py", Table({}, {}, {}, {}, {})) == ["InfluxServer"]


def needs(path: Path, of: Table) -> list[str]:
    """Modules and servers that a file of tests has, but not in a fixture that the table names."""
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in RIGS | SERVERS):
        return []
    tree = ast.parse(text)
    known = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name in of.servers]
    within = {id(each) for function in known for each in ast.walk(function)}
    called = {
        each.func.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and id(each) not in within
    }
    return sorted((imported(tree) & RIGS) | (called & SERVERS))


def imported(tree: ast.Module) -> set[str]:
    """The first part of each module's name."""
    names = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in each.names}
        elif isinstance(each, ast.ImportFrom):
            names.add((each.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize(
    ("target", "option"), [("test", "--suite commit"), ("test-end-to-end", "--suite end-to-end"), ("test-all", "")]
)
def test_each_command_runs_its_suite_with_arguments(target: str, option: str) -> None:
    command = ["make", "--dry-run", target, "JOBS=3", "ARGS=-k word"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    asked = next(line for line in printed.splitlines() if "-m pytest" in line)
    assert asked.endswith(f"{option} -k word".lstrip())
    assert ("--suite" in asked, "--numprocesses 3" in asked) == (bool(option), True)


def test_ci_runs_both_and_lets_nothing_be_skipped() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    promised = lines.index("export TERRAZZO_REQUIRE_SERVERS=1")
    pattern = r"timeout .* make (test\S*) \|\| failed=\$\?"  # the second runs where the first has failed, too
    ran = [match[1] for line in lines[promised:] if (match := re.fullmatch(pattern, line))]
    assert ran == ["test", "test-end-to-end"]
    assert lines[-1] == 'exit "$failed"'
