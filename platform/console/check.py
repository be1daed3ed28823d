"""Checks console and client: types (TypeScript, strict), lint (ESLint), tests of what computes (``node --test``).

``python platform/console/check.py`` is part of ``make lint``. Types of the API are made from ``/openapi.json`` each
time that it has changed, in the client. Without Node.js it says so and fails only where CI promises it.
"""

from __future__ import annotations

import os
import subprocess  # nosec B404 - runs what package-lock.json names
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients" / "typescript"))
import build
import build_client

_LIMIT_S = 300


def _passes(tools: build.Tools, folder: Path) -> bool:
    """Runs all checks of a folder, whatever fails."""
    modules = build.HERE / "node_modules"
    tests = sorted(str(file.relative_to(folder)) for file in (folder / "tests").glob("*.test.ts"))
    checks = [
        [str(modules / "typescript" / "bin" / "tsc"), "--noEmit"],
        [str(modules / "eslint" / "bin" / "eslint.js"), "--max-warnings=0", "."],
        [str(build.HERE / "tests" / "run.mjs"), *tests],
    ]
    passed = [_run(tools, folder, *each) for each in checks]
    return all(passed)


def _run(tools: build.Tools, folder: Path, *arguments: str) -> bool:
    done = subprocess.run([*tools.node, *arguments], cwd=folder, check=False, timeout=_LIMIT_S)  # nosec B603
    return done.returncode == 0


def main() -> None:
    """Runs all checks; exits 1 if one fails."""
    tools = build.find_tools()
    if tools is None:
        promised = os.environ.get("TERRAZZO_REQUIRE_SERVERS") == "1"
        sys.exit("the console is not checked: no Node.js" if promised else None)
    with build.alone():
        build.install(tools)
        build_client.make_types(tools)
    (build.HERE / "generated").mkdir(exist_ok=True)  # where tests are compiled to
    failed = [folder for folder in (build.CLIENT, build.HERE) if not _passes(tools, folder)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
