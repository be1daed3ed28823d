"""The house stays as it was drawn: import arrows, source roots, the standard library's ``platform``."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = {
    "broker": "terrazzo_broker",
    "platform": "terrazzo",
    "adapters": "terrazzo_adapters",
    "simulators": "terrazzo_simulators",
}
COMPOSITION = Path("platform/terrazzo/runtime/serve.py")
PORTS = {
    "terrazzo.ports.store",
    "terrazzo.ports.bus",
    "terrazzo.ports.bridge",
    "terrazzo.ports.providers",
    "terrazzo.errors",
    "terrazzo.times",
    "terrazzo.ports.tasks",
    "terrazzo.retry",
    "terrazzo.listeners",
    "terrazzo.sparse_log",
}


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def ours(module: str) -> bool:
    return module.split(".")[0] in SOURCE_ROOTS.values()


def allowed(folder: str, path: Path, module: str) -> bool:
    package = module.split(".")[0]
    if package == SOURCE_ROOTS[folder]:
        return True
    if folder == "platform":
        return package == "terrazzo_broker" or (package == "terrazzo_adapters" and path == COMPOSITION)
    return folder == "adapters" and module in PORTS


@pytest.mark.parametrize("folder", SOURCE_ROOTS)
def test_imports_follow_the_arrows(folder: str) -> None:
    broken = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for module in imported_modules(path)
        if ours(module) and not allowed(folder, path.relative_to(ROOT), module)
    ]
    assert broken == []


def test_the_arrows_are_checked_on_real_imports() -> None:
    assert allowed("platform", COMPOSITION, "terrazzo_adapters.anything")
    assert not allowed("platform", Path("platform/terrazzo/ports/bus.py"), "terrazzo_adapters.anything")
    assert not allowed("broker", Path("broker/terrazzo_broker/topics.py"), "terrazzo.times")
    assert not allowed("adapters", Path("adapters/terrazzo_adapters/x.py"), "terrazzo.metadata")
    assert not allowed("simulators", Path("simulators/terrazzo_simulators/x.py"), "terrazzo_broker.codec")


@pytest.mark.parametrize(("folder", "package"), SOURCE_ROOTS.items())
def test_a_source_root_holds_exactly_one_package(folder: str, package: str) -> None:
    entries = {entry.name for entry in (ROOT / folder).iterdir() if entry.name != "__pycache__"}
    assert entries == {package}
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


def test_no_registry_address_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split()
    if not names:
        pytest.skip("not a git checkout")
    assert not {"package-lock.json", "poetry.lock", "uv.lock"} & {Path(name).name for name in names}
    needles = ["regi" + "stry.npmjs", "pypi" + ".org/simple", "files.python" + "hosted"]
    found = [
        name
        for name in names
        if (ROOT / name).is_file()
        for needle in needles
        if needle in (ROOT / name).read_text(encoding="utf-8", errors="ignore")
    ]
    assert found == []
