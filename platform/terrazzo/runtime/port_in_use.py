"""Why a port can't be listened on, who has it, and what to do next: for ``terrazzo serve`` and ``terrazzo doctor``."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_LISTENING = "0A"  # the state of a listening socket in /proc/net/tcp [proc(5)]
_OPTIONS = {"http.port": "--http-port N", "mqtt.port": "--mqtt-port N"}
_CAN_BE_OFF = ("websocket.port", "mqtt.port", "mqtt.tls_port", "mqtt.websocket_port", "mqtt.websocket_tls_port")


class BindFailure(NamedTuple):
    """What is wrong with an address, and what to do about it."""

    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.found}; {self.advice}"


def explain_bind(key: str, host: str, port: int, error: OSError) -> BindFailure:
    """Why the listener of a configuration key couldn't have its address."""
    if error.errno == errno.EADDRINUSE:
        owner = find_owner(port)
        found = f"{host}:{port} is in use" + (f" by {owner}" if owner else "")
        return BindFailure(found, f"stop what listens there, or {_set(key)}")
    if error.errno == errno.EACCES:
        advice = f"ports below 1024 need a privilege: {_set(key, 'a higher one')}"
        return BindFailure(f"{host}:{port}: not permitted", advice)
    host_key = f"{key.split('.', maxsplit=1)[0]}.host"
    found = f"cannot listen on {host}:{port}: {_words_of(error)}"
    return BindFailure(found, f"set {host_key} ({_variable(host_key)}) to an address of this machine")


def _set(key: str, other: str = "another port") -> str:
    """How to give a listener another port."""
    ways = ", ".join(filter(None, [_OPTIONS.get(key), _variable(key)]))
    off = ', or to "off"' if key in _CAN_BE_OFF else ", or tcp.enabled to false" if key == "tcp.port" else ""
    return f"set {key} ({ways}) to {other}{off}"


def _variable(key: str) -> str:
    return "TERRAZZO_" + key.upper().replace(".", "__")


def _words_of(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


def find_owner(port: int, proc: Path = Path("/proc")) -> str:
    """Who listens on a TCP port: ``mosquitto (process 812)``, as far as the system tells; empty where it doesn't."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port, proc)}
    if not sockets:
        return ""
    for folder in proc.iterdir():
        if folder.name.isdecimal() and _has_open(folder, sockets):
            return f"{_name_of(folder)} (process {folder.name})"
    return "a program of another user"


def listens(process: int, port: int, proc: Path = Path("/proc")) -> bool | None:
    """Whether a process listens on a TCP port; None where the system doesn't tell."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port, proc)}
    folder = proc / str(process)
    if not sockets or not os.access(folder / "fd", os.R_OK | os.X_OK):
        return None
    return _has_open(folder, sockets)


def _listening_inodes(port: int, proc: Path) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError), (proc / "net" / name).open(encoding="ascii") as lines:
            for line in lines:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTENING and fields[1].endswith(f":{port:04X}"):
                    yield fields[9]


def _has_open(folder: Path, sockets: set[str]) -> bool:
    with suppress(OSError):  # another user's, or gone meanwhile
        for descriptor in (folder / "fd").iterdir():
            with suppress(OSError):
                if os.readlink(descriptor) in sockets:
                    return True
    return False


def _name_of(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip() or "a program"
    except OSError:
        return "a program"
