"""A Unix socket in the data folder, by which commands on this machine ask the platform that runs.

Whoever may open the folder may ask: it is closed to all but its owner. A question is a line of JSON, an object with
``do``; answers are lines, the last of them with ``result`` or ``error``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.ports.control import SOCKET, at_folder

Say = Callable[[dict[str, Any]], None]
"""Sends a line meanwhile."""

Answerer = Callable[[dict[str, Any], Say], Awaitable[dict[str, Any]]]
"""Answers a question; an exception of the kinds that were named is told by its text."""

_MOST_BYTES = 16_384  # of a question
_MOST_AT_ONCE = 8
_QUESTION_S = 5.0

_log = logging.getLogger(__name__)


class ControlSocket:
    """Listens in a data folder that this process has to itself.

    Args:
        answerers: by what a question's ``do`` says.
        expected: the exceptions whose text is for whoever asks; others are logged, and told by their class.
    """

    def __init__(
        self, data_dir: Path, answerers: Mapping[str, Answerer], *, expected: tuple[type[Exception], ...]
    ) -> None:
        self._data_dir = data_dir
        self._answerers = answerers
        self._expected = expected
        self._server: asyncio.Server | None = None
        self._asking = 0

    async def start(self) -> None:
        """Listens; what an earlier process left in its place is removed.

        Raises:
            OSError: the socket can't be made there.
        """
        (self._data_dir / SOCKET).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with at_folder(self._data_dir) as address:
                listening.bind(address)
            os.chmod(self._data_dir / SOCKET, 0o600)
            self._server = await asyncio.start_unix_server(self._answer, sock=listening, limit=_MOST_BYTES)
        except BaseException:
            listening.close()
            raise

    async def stop(self) -> None:
        """Ends it; whoever waits for an answer is cut off."""
        if self._server is not None:
            self._server.close()
        (self._data_dir / SOCKET).unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking += 1
        try:
            if self._asking > _MOST_AT_ONCE:
                answer = {"error": f"{_MOST_AT_ONCE} commands wait for an answer already; try again later"}
            else:
                answer = await self._answer_to(reader, lambda line: writer.write(_line(line)))
            writer.write(_line(answer))
            await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:  # gone, silent, too long
            _log.info("a command on this machine was not answered: %s", error)
        finally:
            self._asking -= 1
            writer.close()

    async def _answer_to(self, reader: asyncio.StreamReader, say: Say) -> dict[str, Any]:
        async with asyncio.timeout(_QUESTION_S):
            text = await reader.readline()
        try:
            question = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return {"error": "expected a line with a JSON object"}
        answerer = self._answerers.get(str(question.get("do")))
        if answerer is None:
            return {"error": f"do: expected one of {', '.join(sorted(self._answerers))}"}
        try:
            return {"result": await answerer(question, say)}
        except self._expected as error:
            return {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - a command is told that it failed, the log says why
            _log.exception("a command on this machine failed")
            return {"error": f"internal error: {type(error).__name__}"}


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"
