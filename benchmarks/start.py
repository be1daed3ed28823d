"""What a start of an empty platform costs: CPU until it is ready, and its memory then.

``python benchmarks/start.py [--starts N] [CHECKOUT ...]`` starts ``terrazzo serve`` of each checkout (this one where
none is given) in turn, on a folder of its own that an earlier start has prepared, and prints the medians: CPU of all
threads until the platform says that it is ready, which is when ``/readyz`` answers 200; ``VmRSS`` and ``Pss`` then, the
latter smaller where other processes have the same libraries open; and how many modules Python has loaded.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from cpu_clock import cpu_seconds

ROOT = Path(__file__).parents[1]
_ADDRESS = re.compile(r"^ *console +(\S+)$")
_LAST_LINE = "  data "
_ANY_PORTS = {"TERRAZZO_WEBSOCKET__PORT": "0", "TERRAZZO_MQTT__WEBSOCKET_PORT": "0"}
_LOADED = re.compile(r"^import time: *\d+ ", re.MULTILINE)


class Start(NamedTuple):
    """One start; memory in MB."""

    cpu_s: float
    rss_mb: float
    pss_mb: float


def start(checkout: Path, folder: Path, *options: str) -> tuple[Start, str]:
    """Starts a platform, looks at it when it is ready, and stops it; also returns what it wrote to its error output."""
    python = checkout / ".venv/bin/python"
    command = [str(python), *options, "-m", "terrazzo", "serve", "--data", str(folder)]
    with (folder.parent / "errors").open("w+") as errors:
        server = subprocess.Popen(
            [*command, "--http-port", "0", "--mqtt-port", "0"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
        )
        assert server.stdout is not None
        address = ""
        for line in server.stdout:
            if found := _ADDRESS.match(line.rstrip()):
                address = found[1]
            if line.startswith(_LAST_LINE):
                break
        if not address:
            errors.seek(0)
            raise SystemExit(f"{checkout}: has not started: {errors.read()}")
        cpu_s = cpu_seconds(server.pid)
        with urllib.request.urlopen(f"{address.rstrip('/')}/readyz", timeout=10) as answer:
            assert answer.status == 200
        rss_mb, pss_mb = _memory_mb(server.pid, "status", "VmRSS"), _memory_mb(server.pid, "smaps_rollup", "Pss")
        server.terminate()
        server.wait()
        errors.seek(0)
        return Start(cpu_s, rss_mb, pss_mb), errors.read()


def _environment() -> dict[str, str]:
    """Ours, in which Python keeps what it has compiled, as it does where it is installed."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | _ANY_PORTS


def _memory_mb(pid: int, file: str, name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{pid}/{file}").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1_024 / 1e6


def main() -> None:
    """Measures and prints a row for each checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=7, help="of each checkout (7)")
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    asked = parser.parse_args()
    starts: dict[Path, list[Start]] = {each: [] for each in asked.checkouts}
    modules = {}
    with tempfile.TemporaryDirectory() as folder:
        places = {each: Path(folder) / str(number) / "data" for number, each in enumerate(starts)}
        for checkout, place in places.items():
            place.parent.mkdir()
            start(checkout, place)  # makes keys and the database
            modules[checkout] = len(_LOADED.findall(start(checkout, place, "-X", "importtime")[1]))
        for _ in range(asked.starts):
            for checkout, place in places.items():
                starts[checkout].append(start(checkout, place)[0])
    print("| checkout | CPU s (least to most) | VmRSS MB | Pss MB | modules |\n|---|---:|---:|---:|---:|")
    for checkout, found in starts.items():
        cpu = [each.cpu_s for each in found]
        rss, pss = (statistics.median(each[at] for each in found) for at in (1, 2))
        spread = f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})"
        print(f"| {checkout} | {spread} | {rss:.1f} | {pss:.1f} | {modules[checkout]} |")


if __name__ == "__main__":
    sys.exit(main())
