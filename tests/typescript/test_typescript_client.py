"""The client for TypeScript, as npm installs it, against a platform: in Node.js with and without a WebSocket."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import PASSWORD, Platform
from support import require_program
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.operations.table import TABLE
from terrazzo.domain.actor import Role

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "clients" / "typescript"
_LIMIT_S = 600


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of somebody's, with the package that was packed, and nothing else."""
    npm = require_program("npm")
    folder = tmp_path_factory.mktemp("typescript")
    packed = _run([sys.executable, str(SOURCE / "build_client.py"), "pack", str(folder)], folder).stdout.splitlines()[
        -1
    ]
    (folder / "package.json").write_text('{"name": "somebody", "version": "1.0.0", "private": true, "type": "module"}')
    options = ["--offline", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    _run([npm, "install", *options, packed], folder)
    shutil.copytree(SOURCE / "tests" / "server", folder / "tests")
    return folder


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("platform") / "data") as running:
        running.login()
        config = running.add_config()
        for number in range(5):
            running.add_terminal(f"t{number}", config)
        yield running


def _run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=_LIMIT_S
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done


def _node(installed: Path, platform: Platform, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {"TERRAZZO_URL": platform.url, "TERRAZZO_PASSWORD": PASSWORD, **environment}
    return _run([require_program("node"), *arguments], installed, **given)


def test_calls(installed: Path, platform: Platform) -> None:
    _node(installed, platform, "--test", "tests/calls.test.mjs")


@pytest.mark.parametrize("socket", ["own", "native"])
def test_live(installed: Path, platform: Platform, socket: str) -> None:
    flag = "--no-experimental-websocket" if socket == "own" else "--experimental-websocket"
    _node(installed, platform, flag, "--test", "tests/live.test.mjs", TERRAZZO_SOCKET=socket)


def test_what_a_program_is_told_by_its_compiler(installed: Path) -> None:
    """With the types of Node.js or of a browser alone, and all of the package's own declarations checked."""
    node, modules = require_program("node"), ROOT / "platform" / "console" / "node_modules"
    compiler = str(modules / "typescript" / "bin" / "tsc")
    common = ["--noEmit", "--strict", "--target", "ES2022", "tests/types.ts"]
    types = ["--typeRoots", str(modules / "@types"), "--types", "node"]
    _run([node, compiler, *common, "--module", "NodeNext", "--lib", "ES2022", *types], installed)
    in_browsers = ["--module", "ESNext", "--moduleResolution", "bundler", "--lib", "ES2022,DOM,DOM.Iterable"]
    _run([node, compiler, *common, *in_browsers, "--typeRoots", str(installed / "none")], installed)


def test_the_readme_runs(installed: Path, platform: Platform) -> None:
    blocks = re.findall(r"```js\n(.*?)```", (SOURCE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    for number, block in enumerate(blocks):
        script = installed / f"readme-{number}.mjs"
        script.write_text(block.replace("http://127.0.0.1:31507", platform.url).replace("demo-chiller-1", "t1"))
        _node(installed, platform, script.name)


def test_what_is_packed_is_what_is_needed(installed: Path) -> None:
    package = installed / "node_modules" / "terrazzo-client"
    described = json.loads((package / "package.json").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert (described["name"], described["version"]) == ("terrazzo-client", version)
    assert "dependencies" not in described
    found = {str(file.relative_to(package)) for file in package.rglob("*") if file.is_file()}
    assert {"LICENSE", "README.md", "dist/index.js", "dist/node.js", "dist/generated/api.d.ts"} <= found
    assert all(name.startswith("dist/") for name in found - {"LICENSE", "README.md", "package.json"})
    in_browsers = [name for name in found if name.endswith(".js") and "/node" not in name]
    assert not [name for name in in_browsers if "node:" in (package / name).read_text(encoding="utf-8")]
    assert [path for path in installed.iterdir() if path.name == "package-lock.json"] == []


def test_what_is_asked_twice_only_reads() -> None:
    """What the client takes for reading, and asks again after a lost connection, changes nothing."""
    pattern = re.search(r"READS = /\^apiproxy\\/api\\/\((.*)\)\$/;", (SOURCE / "src" / "retries.ts").read_text())
    assert pattern is not None
    asked_twice = [each for each in _operations() if re.fullmatch(pattern[1], each.name)]
    assert len(asked_twice) > 60
    changing = [each.name for each in asked_twice if each.changes or each.connection]
    assert changing == []
    assert not [each.name for each in asked_twice if each.gives_token]
    assert Role.VIEWER in {each.permission for each in asked_twice}


def _operations() -> list[Operation]:
    return list(TABLE)
