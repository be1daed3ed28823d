"""Checks the console's source: types (TypeScript, strict), lint (ESLint), tests of what computes (``node --test``).

``python platform/console/check.py`` is part of ``make lint``. Types of the API are made from ``/openapi.json`` each
time that it has changed, into ``generated/``. Without Node.js it says so and fails only where CI promises it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess  # nosec B404 - runs what package-lock.json names
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))
import build

from terrazzo.api.openapi.document import build_document

_GENERATED = build.HERE / "generated"
_LIMIT_S = 300


def make_types(tools: build.Tools) -> None:
    """Brings ``generated/api.d.ts`` to what the platform answers."""
    text = msgspec.json.encode(build_document())
    state = hashlib.sha256(text).hexdigest()
    stamp = _GENERATED / "openapi.sha256"
    if stamp.exists() and stamp.read_text() == state:
        return
    _GENERATED.mkdir(exist_ok=True)
    (_GENERATED / "openapi.json").write_bytes(text)
    program = build.HERE / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    options = ["--default-non-nullable=false", "--output", "generated/api.d.ts"]
    if not _run(tools, str(program), "generated/openapi.json", *options, quiet=True):
        sys.exit("no types could be made of /openapi.json")
    stamp.write_text(state)


def _run(tools: build.Tools, *arguments: str, quiet: bool = False) -> bool:
    output = subprocess.DEVNULL if quiet else None
    done = subprocess.run(  # nosec B603
        [*tools.node, *arguments], cwd=build.HERE, check=False, timeout=_LIMIT_S, stdout=output
    )
    return done.returncode == 0


def main() -> None:
    """Runs all checks; exits 1 if one fails."""
    tools = build.find_tools()
    if tools is None:
        promised = os.environ.get("TERRAZZO_REQUIRE_SERVERS") == "1"
        sys.exit("the console is not checked: no Node.js" if promised else None)
    with build.alone():
        build.install(tools)
        make_types(tools)
    modules = build.HERE / "node_modules"
    tests = sorted(str(file.relative_to(build.HERE)) for file in (build.HERE / "tests").glob("*.test.ts"))
    checks = [
        [str(modules / "typescript" / "bin" / "tsc")],
        [str(modules / "eslint" / "bin" / "eslint.js"), "--max-warnings=0", "."],
        ["tests/run.mjs", *tests],
    ]
    failed = [each for each in checks if not _run(tools, *each)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
