"""MQTT.js, run by node: a client that shares no code with ours and speaks MQTT 5 AUTH."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support import require_program

SCRIPTS = Path(__file__).parent / "js"


def run_mqttjs(script: str, *, timeout_s: float = 30, **options: Any) -> dict[str, Any]:
    """Runs ``tests/js/<script>.cjs`` with the options, and returns the JSON line that it prints."""
    node = require_program("node")
    environment = {**os.environ, "NODE_PATH": str(installed() / "node_modules")}
    command = [node, str(SCRIPTS / f"{script}.cjs"), json.dumps(options)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s)
    assert result.returncode == 0, f"{script}: {result.stderr}"
    return json.loads(result.stdout)


def installed(listed: Path = SCRIPTS / "package.json", name: str = "mqttjs") -> Path:
    """The folder with MQTT.js, or what else is ``listed``, outside the repository; installed when first asked for."""
    npm = require_program("npm")
    package = listed.read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "terrazzo-tests"
    folder = cache / f"{name}-{hashlib.sha256(package).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may be installing at this moment
        done = folder / "installed"
        if not done.exists():
            (folder / "package.json").write_bytes(package)
            install(npm, folder)
            done.touch()
    return folder


def install(npm: str, folder: Path) -> None:
    """``npm install`` as plain as it gets: no lock file, no audit."""
    command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150)
    assert result.returncode == 0, f"npm install failed: {result.stderr}"
