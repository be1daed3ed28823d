"""The way in which ``make test`` spreads files over processes: all runs, once, and is told as elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import by_file

FILES = {
    "first/test_good.py": """
        import pytest
        @pytest.mark.parametrize("number", range(3))
        def test_each(number, of_folder, of_all): assert of_all == [1]
    """,
    "first/test_bad.py": """
        def test_wrong(of_folder): assert 1 == 2, "a word of it"
        def test_right(of_all): assert of_all == [1]
    """,
    "second/test_broken.py": "import nothing_of_that_name",
    "second/test_skipped.py": """
        import pytest
        @pytest.mark.skip(reason="not today")
        def test_later(): ...
        def test_other(of_all): assert of_all == [1]
    """,
}
CONFTEST = """
    import pytest
    pytest_plugins = ["by_file"]
    @pytest.fixture(scope="session")
    def of_all():
        yield [1]
    @pytest.fixture(scope="package")
    def of_folder():
        with open("made.txt", "a") as file:
            file.write("made ")
        yield
"""
WITHOUT = ("schemathesis", "terrazzo", "hypothesispytest", "anyio", "asyncio", "timeout")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for path, text in {**FILES, "conftest.py": CONFTEST, "first/__init__.py": "", "second/__init__.py": ""}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        lines = text.strip("\n").splitlines()
        (tmp_path / path).write_text(
            "\n".join(line.removeprefix(" " * 8 if path in FILES else " " * 4) for line in lines)
        )
    return tmp_path


def run(suite: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    modules = str(Path(by_file.__file__).parent)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    without = [word for name in WITHOUT for word in ("-p", f"no:{name}")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "--dist",
        "loadfile",
        "-c",
        os.devnull,
        "--rootdir",
        str(suite),
    ]
    return subprocess.run(
        [*command, *without, *arguments],
        cwd=suite,
        env={**env, "PYTHONPATH": modules},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_each_test_runs_once_and_is_told(suite: Path) -> None:
    done = run(suite, "-ra", "--junitxml", "all.xml", "-o", "python_files=test_*.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 5 passed, 1 skipped, 1 error" in done.stdout
    assert "AssertionError: a word of it" in done.stdout
    assert "No module named 'nothing_of_that_name'" in done.stdout
    assert ": not today" in done.stdout
    assert not [each for each in re.findall(r"\[ *(\d+)%\]", done.stdout) if int(each) > 100]
    cases = [case.get("name") for case in ElementTree.parse(suite / "all.xml").iter("testcase")]
    assert len(cases) == len(set(cases)) == 8
    assert (suite / "made.txt").read_text() == "made "


def test_tests_are_selected_and_the_first_failure_may_end_it(suite: Path) -> None:
    none = run(suite, "-k", "nothing", "first", "second/test_skipped.py")
    assert none.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, none.stdout
    right = run(suite, "-k", "right or other", "first", "second/test_skipped.py")
    assert (right.returncode, "2 passed" in right.stdout) == (0, True), right.stdout
    named = run(suite, "first/test_bad.py::test_right")
    assert (named.returncode, "1 passed" in named.stdout) == (0, True), named.stdout
    stopped = run(suite, "-x", "first/test_bad.py")
    assert (stopped.returncode != 0, "1 failed" in stopped.stdout, "passed" in stopped.stdout) == (True, True, False)


def test_a_process_that_dies_costs_its_file_and_no_other(suite: Path) -> None:
    ending = "import os\ndef test_before(): ...\ndef test_deadly(): os._exit(3)\ndef test_after(): ...\n"
    (suite / "first" / "test_deadly.py").write_text(ending)
    for number in range(6):
        (suite / "second" / f"test_{number}.py").write_text("def test_one(): ...\ndef test_two(): ...\n")
    files = [
        "second/test_0.py",
        "second/test_1.py",
        "first/test_deadly.py",
        *(f"second/test_{n}.py" for n in range(2, 6)),
    ]
    done = run(suite, "-n", "2", *files)
    assert "1 failed, 13 passed" in done.stdout, done.stdout + done.stderr
    assert "test_deadly.py::test_deadly" in done.stdout


def test_long_files_come_first_and_before_them_those_that_may_be() -> None:
    class Item:
        def __init__(self, path: str) -> None:
            self.nodeid = f"{path}::all"

    items = [Item(path) for path in ("a.py", "new.py", "b.py", "c.py")]
    numbers = {"a.py": (1.0, 3), "b.py": (9.5, 1), "c.py": (1.0, 7)}
    assert [item.nodeid[0] for item in by_file.longest_first(items, numbers)] == ["n", "b", "a", "c"]


def test_what_files_took_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests" / "file_seconds.json"
    for name in ("here.py", "other.py"):
        (tmp_path / name).touch()
    file.write_text(json.dumps({"gone.py": [5, 1], "here.py": [1, 2], "other.py": [2, 4]}))
    monkeypatch.setattr(by_file, "SECONDS", file)
    by_file.write({"here.py": (3.25, 6)})
    assert by_file.known() == {"here.py": (3.2, 6), "other.py": (2, 4)}
