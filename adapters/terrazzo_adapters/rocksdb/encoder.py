"""Asks the process that makes segments: one request at a time, on whatever thread has them sealed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen  # nosec B404
from threading import Lock
from typing import IO

import msgspec

from terrazzo_adapters.segment_process.chunk import Chunk
from terrazzo_adapters.segment_process.encode_process import Answer, Request

_COMMAND = (sys.executable, "-I", "-m", "terrazzo_adapters.segment_process.encode_process")

_PIPE_BYTES = 1 << 20  # a request in few pieces: each wakes up the other side


class EncodingFailed(Exception):
    """A segment could not be made; its records stay as they are."""


class Encoder:
    """Starts the process when it is asked first, and anew when it has ended."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._is_closed = False
        self._lock = Lock()  # of ``_process``: it is ended on another thread
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Answer).decode

    def encode(self, chunk: Chunk, *, mosaic: bool, tight: bool) -> Mapping[bytes, bytes]:
        """The parts of a segment of the chunk's records.

        Raises:
            EncodingFailed: says why.
        """
        request = self._encode(Request(chunk.orders, list(chunk.bodies), mosaic, tight))
        try:
            answer = self._decode(self._ask(request))
        except (OSError, EOFError, ValueError) as error:
            self.end()
            raise EncodingFailed(f"the process that makes segments has ended: {error!r}") from error
        if answer.error:
            raise EncodingFailed(answer.error)
        return answer.parts

    def _ask(self, request: bytes) -> bytes:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(len(request).to_bytes(8))
        process.stdin.write(request)
        process.stdin.flush()
        return _exactly(process.stdout, int.from_bytes(_exactly(process.stdout, 8)))

    def _started(self) -> Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise EOFError
            if self._process is None:
                environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
                self._process = Popen(  # nosec B603
                    _COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, pipesize=_PIPE_BYTES
                )
            return self._process

    def close(self) -> None:
        """Ends the process for good: what is asked of it afterwards fails."""
        self._is_closed = True
        self.end()

    def end(self) -> None:
        """Ends the process; what it works at fails. It is started again when it is needed."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was to be written
                    pipe.close()


def _exactly(source: IO[bytes], size: int) -> bytes:
    """So many bytes. Raises ``EOFError``: the process has ended."""
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data
