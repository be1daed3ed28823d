"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_GIB = 1 << 30


def machine() -> dict[str, str]:
    """By what is told: processor, cores, memory, kernel, Python, uvloop, and how busy it was."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{pages / _GIB:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "uvloop": _version("uvloop"),
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def build() -> str:
    """Terrazzo's version, and the commit where it runs from a checkout or ``TERRAZZO_COMMIT`` says it."""
    commit = os.environ.get("TERRAZZO_COMMIT", "")[:12] or _commit(Path(__file__).parent)
    return " ".join(part for part in (_version("terrazzo"), commit) if part)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit(folder: Path) -> str:
    """Of a checkout around the suite; with ``+`` where its files have changed since."""
    try:
        inside = ["git", "-C", str(folder)]
        if subprocess.run([*inside, "ls-files", "--error-unmatch", "."], capture_output=True, check=False).returncode:
            return ""  # installed somewhere inside another checkout
        told = subprocess.run([*inside, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        changed = subprocess.run(
            [*inside, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return told.stdout.strip()[:12] + ("+" if changed.stdout.strip() else "")
