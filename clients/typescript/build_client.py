"""Builds the client for TypeScript and JavaScript: types of the API, ``dist/``, and the archive that npm publishes.

``python clients/typescript/build_client.py`` makes what ``npm pack`` takes, ``... pack DIR`` packs it there. Node.js
and the compiler are the console's, whose package-lock.json names them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess  # nosec B404 - runs what package-lock.json names
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "platform" / "console"))
import build as console

from terrazzo.api.openapi.document import build_document

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

_GENERATED = HERE / "src" / "generated"
_DIST = HERE / "dist"
_MODULES = console.HERE / "node_modules"
_LIMIT_S = 600


def make_types(tools: console.Tools) -> None:
    """Brings ``src/generated/api.d.ts`` to what ``/openapi.json`` says of fields and answers by action.

    Raises:
        BuildError: no types could be made.
    """
    document = {**build_document(), "paths": {}}  # what is at them refers to the schemas
    text = msgspec.json.encode(document)
    state, stamp = hashlib.sha256(text).hexdigest(), _GENERATED / "openapi.sha256"
    if stamp.exists() and stamp.read_text() == state:
        return
    _GENERATED.mkdir(exist_ok=True)
    (_GENERATED / "openapi.json").write_bytes(text)
    program = _MODULES / "openapi-typescript" / "bin" / "cli.js"
    options = ["--default-non-nullable=false", "--output", "src/generated/api.d.ts"]
    _run([*tools.node, str(program), "src/generated/openapi.json", *options], "no types could be made of /openapi.json")
    stamp.write_text(state)


def build_client() -> console.Tools:
    """Makes ``dist/`` and what stands beside it in the package.

    Raises:
        BuildError: Node.js is missing, or the sources don't compile.
    """
    tools = console.find_tools()
    if tools is None:
        raise console.BuildError(f"needs {console.NODE[1]} and {console.NPM[1]}, or `pip install {console.WHEEL}`")
    with console.alone():
        console.install(tools)
        make_types(tools)
        shutil.rmtree(_DIST, ignore_errors=True)
        _run([*tools.node, str(_MODULES / "typescript" / "bin" / "tsc"), "-p", "."], "the client does not compile")
        for file in _DIST.glob("*.d.ts"):  # the compiler rewrites these in what runs alone
            file.write_text(
                re.sub(r'(from "\./[\w-]+)\.ts"', r'\1.js"', file.read_text(encoding="utf-8")), encoding="utf-8"
            )
        (_DIST / "generated").mkdir()
        shutil.copy(_GENERATED / "api.d.ts", _DIST / "generated")
        shutil.copy(ROOT / "LICENSE", HERE)
    return tools


def pack(folder: Path) -> Path:
    """Builds, and packs what would be published; the archive.

    Raises:
        BuildError: it can't be built or packed.
    """
    tools = build_client()
    folder.mkdir(parents=True, exist_ok=True)
    told = _run([*tools.npm, "pack", "--pack-destination", str(folder.resolve())], "npm could not pack")
    return folder / told.splitlines()[-1]


def _run(command: list[str], failure: str) -> str:
    done = subprocess.run(  # nosec B603
        command, cwd=HERE, capture_output=True, text=True, check=False, timeout=_LIMIT_S
    )
    if done.returncode:
        raise console.BuildError(f"{failure}:\n{(done.stderr + done.stdout)[-4000:]}")
    return done.stdout


def main(arguments: list[str]) -> None:
    """Builds or packs; ends with a sentence where it can't."""
    try:
        match arguments:
            case []:
                build_client()
            case ["pack", folder]:
                print(pack(Path(folder)))
            case _:
                sys.exit(str(__doc__))
    except console.BuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
