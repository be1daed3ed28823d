"""The source roots, the standard library's ``platform``, and what must not be committed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = {
    "broker": "terrazzo_broker",
    "platform": "terrazzo",
    "adapters": "terrazzo_adapters",
    "simulators": "terrazzo_simulators",
    "benchmarks/suite": "terrazzo_bench",
}
BESIDE = {"platform": {"console"}}  # no Python package: what the browser runs


@pytest.mark.parametrize(("folder", "package"), SOURCE_ROOTS.items())
def test_a_source_root_holds_exactly_one_package(folder: str, package: str) -> None:
    entries = {entry.name for entry in (ROOT / folder).iterdir() if entry.name != "__pycache__"}
    assert entries - BESIDE.get(folder, set()) == {package}
    assert (ROOT / folder / package / "__init__.py").is_file()


def test_platform_is_the_standard_librarys() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import platform; print(platform.__file__); print(platform.system())"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    path = Path(found.stdout.splitlines()[0])
    assert ROOT not in path.parents
    assert path.name == "platform.py"


def test_the_license_is_apache_2_whole_and_in_the_metadata() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    for number, title in ((1, "Definitions"), (3, "Grant of Patent License"), (9, "Accepting Warranty")):
        assert f"   {number}. {title}" in text
    assert "END OF TERMS AND CONDITIONS" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])


def test_no_registry_address_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split()
    if not names:
        pytest.skip("not a git checkout")
    assert not {"poetry.lock", "uv.lock"} & {Path(name).name for name in names}
    locks = [name for name in names if Path(name).name == "package-lock.json"]
    assert locks == ["platform/console/package-lock.json"]
    assert not any("://" in (ROOT / name).read_text(encoding="utf-8") for name in locks)
    needles = ["regi" + "stry.npmjs", "pypi" + ".org/simple", "files.python" + "hosted"]
    found = [
        name
        for name in names
        if (ROOT / name).is_file()
        for needle in needles
        if needle in (ROOT / name).read_text(encoding="utf-8", errors="ignore")
    ]
    assert found == []


def test_no_benchmark_hides_a_folder_of_tests_that_is_imported_by_its_name() -> None:
    """On a path with both, a module wins over a folder without ``__init__.py``, wherever it stands."""
    benchmarks = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    imported = {
        name.partition(".")[0]
        for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
        for name in re.findall(r"^\s*(?:from|import) (\w+\.\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    hidden = {name for name in imported & folders & benchmarks if not (ROOT / "tests" / name / "__init__.py").exists()}
    assert imported & folders, "it sees what is imported"
    assert hidden == set()
