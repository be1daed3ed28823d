"""Asks the platform that runs on a data folder, by its control socket."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.errors import OperationError
from terrazzo.ports.control import at_folder

_MOST_BYTES = 1 << 20  # of a line


class NotDone(OperationError):
    """The platform that runs didn't do what it was asked for; says why."""


def ask_running(
    data_dir: Path,
    question: dict[str, Any],
    on_line: Callable[[dict[str, Any]], None],
    *,
    timeout_s: float | None = None,
) -> dict[str, Any] | None:
    """The answer of the platform that runs on a folder; None where none runs.

    Args:
        on_line: called with each line before the answer.
        timeout_s: how long it may say nothing; None: as long as it likes.

    Raises:
        NotDone: it refused, failed, or ended meanwhile.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with at_folder(data_dir) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise NotDone(
                f"{data_dir}: the platform that runs there can't be asked: {error.strerror or error}"
            ) from None
        connection.settimeout(timeout_s)
        try:
            connection.sendall(msgspec.json.encode(question) + b"\n")
            return _answer(connection, data_dir, on_line)
        except TimeoutError:
            raise NotDone(f"{data_dir}: the platform that runs there does not answer") from None
        except (ConnectionError, msgspec.MsgspecError):
            raise _ended(data_dir) from None


def _answer(connection: socket.socket, data_dir: Path, on_line: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    with connection.makefile("rb") as lines:
        while line := lines.readline(_MOST_BYTES):
            told = msgspec.json.decode(line, type=dict[str, Any])
            if "error" in told:
                raise NotDone(str(told["error"]))
            if "result" in told:
                return dict(told["result"])
            on_line(told)
    raise _ended(data_dir)


def _ended(data_dir: Path) -> NotDone:
    return NotDone(f"{data_dir}: the platform that ran there ended meanwhile; start the command again")
