"""What runs here: the version, the Python, and the commit where it is known."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

COMMIT_VARIABLE = "TERRAZZO_COMMIT"
_HEX = frozenset("0123456789abcdef")


class BuildInfo(NamedTuple):
    """``commit`` is empty where neither the environment nor a checkout around the package says it."""

    version: str
    python: str
    commit: str

    def __str__(self) -> str:
        return f"terrazzo {self.version}, Python {self.python}" + (f", commit {self.commit}" if self.commit else "")


def build_info() -> BuildInfo:
    """Of this process. Images without a checkout say their commit with ``TERRAZZO_COMMIT``."""
    return BuildInfo(_version(), platform.python_version(), _commit(os.environ.get(COMMIT_VARIABLE, "")))


@cache  # what was loaded stays, whatever is installed or checked out meanwhile
def _version() -> str:
    try:
        return version("terrazzo")
    except PackageNotFoundError:  # run from its files
        return "unknown"


@cache
def _commit(given: str) -> str:
    found = given.strip().lower() or commit_of(Path(__file__).parents[3])
    return found[:12] if found and set(found) <= _HEX else ""


def commit_of(checkout: Path) -> str:
    """The commit that a Git checkout stands at; empty where there is none [gitrepository-layout(5)]."""
    try:
        git = checkout / ".git"
        if git.is_file():  # another working tree of a repository
            git = checkout / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        shared = git / "commondir"
        root = git / shared.read_text(encoding="utf-8").strip() if shared.is_file() else git
        return _resolve(root, head.removeprefix("ref: "))
    except (OSError, ValueError):
        return ""


def _resolve(root: Path, name: str) -> str:
    loose = root / name
    if loose.is_file():
        return loose.read_text(encoding="utf-8").strip()
    for line in (root / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""
