"""Tells a service manager such as systemd how the platform is [sd_notify(3)].

Nothing is told where the environment names no socket. Watched (``WatchdogSec=``), the event loop says that it lives, at
twice the rate that is asked for: a loop that hangs ends the process.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping

from terrazzo.ports.tasks import OnFailure, Task, Tasks

_log = logging.getLogger(__name__)


class ServiceManager:
    """Who started the process and wants to be told.

    Args:
        environment: with ``NOTIFY_SOCKET``, and ``WATCHDOG_USEC`` and ``WATCHDOG_PID`` where it watches.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._watch_s = _watch_s(environment)
        self._watching: Task | None = None

    def tell_ready(self, text: str) -> None:
        """The platform listens; ``text`` is shown by ``systemctl status``."""
        self._tell(f"READY=1\nSTATUS={text}\nMAINPID={os.getpid()}")

    def tell_reloading(self) -> None:
        """It reads files again; ``tell_ready`` follows."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def tell_stopping(self) -> None:
        """It stops accepting and commits."""
        self._tell("STOPPING=1\nSTATUS=Stopping: what was taken is committed")

    def watch(self, tasks: Tasks) -> None:
        """Says that the loop lives, again and again, where that is asked for."""
        if self._address and self._watch_s:
            self._watching = tasks.repeat("service watchdog", self._watch_s / 2, self._live, OnFailure.RESTART)

    async def stop(self) -> None:
        """Ends ``watch``."""
        if self._watching is not None:
            await self._watching.stop()

    async def _live(self) -> None:
        self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode(), self._address)
        except OSError as error:
            _log.warning("the service manager at NOTIFY_SOCKET can't be told: %s", error)


def _address(given: str) -> str:
    """The socket's address; empty where there is none, or one that this platform can't reach."""
    if given.startswith("@"):
        return "\0" + given[1:]  # an abstract one [unix(7)]
    return given if given.startswith("/") else ""


def _watch_s(environment: Mapping[str, str]) -> float:
    """Seconds within which it wants to hear; 0 where it does not watch this process [sd_watchdog_enabled(3)]."""
    given, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not given.isdecimal() or (process and process != str(os.getpid())):
        return 0.0
    return int(given) / 1e6
