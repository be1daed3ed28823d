"""Decoders of payloads: Python entry points, allowed by name, run in a process that is ended when it takes too long."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec

from terrazzo.company_turns import CompanyTurns
from terrazzo.config.sections import ENVIRONMENT_PREFIX
from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.ports import at_work
from terrazzo.reasons import Said, say
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_SCRIPT = Path(__file__).with_name("decoder_process.py")
_MOST_MEMORY_BYTES = 512 * 2**20
_MOST_ANSWER_BYTES = 2**20
_START_S = 30.0  # for the process to start and to load a decoder, or to read a long payload
_SLACK = 40.0  # times the processor time, at least _LEAST_WAIT_S: the machine may be busy
_LEAST_WAIT_S = 2.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bool, bytes]).decode


POINTS = ""
"""The decoder of long payloads that are objects of points, which the process has itself."""

JSON = " "
"""Which makes JSON of a stored body of MessagePack; the process has it itself, too."""

_OWN = (POINTS, JSON)
_MOST_WAITING = 1_000  # of one company: each request and each task asks for one thing at a time


class DecoderStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    decoded: int = 0
    refused: int = 0  # by a decoder, or because it took too long
    starts: int = 0  # of the process
    ended: int = 0  # it was, because a payload took too long or too much


class ToDecode(NamedTuple):
    """A payload: the decoder's name, the levels of the topic, the bytes."""

    decoder: str
    topic: tuple[str, ...]
    payload: bytes


class PayloadDecoders:
    """The decoders that the configuration allows. Their process starts with the first payload.

    Args:
        allowed: names of entry points.
        cpu_ms: processor time that one payload may take.
    """

    def __init__(self, allowed: Collection[str] = (), *, cpu_ms: int = 50) -> None:
        self.stats = DecoderStats()
        self.allowed = frozenset(allowed)
        self._cpu_ms = cpu_ms
        self._wait_s = max(_LEAST_WAIT_S, _SLACK * cpu_ms / 1_000)
        self._process: Process | None = None
        self._known: set[str] = set()  # decoders that this process has loaded
        self._turns = CompanyTurns("decoders", at_once=1, waiting=_MOST_WAITING)
        self._sparse_log = SparseLog(_log)

    async def decode(self, payloads: Sequence[ToDecode], *, within_s: float = math.inf) -> list[bytes | Reject]:
        """What becomes of each: a JSON object of points, or why it doesn't; of the first few where it takes longer.

        Of ``POINTS``: what ``decoder_process.read_points`` says, of ``JSON`` the text; a ``Reject`` where the process
        could not. Companies take turns (``at_work``), and what arrives is one of them.

        Raises:
            OSError: the process can't be started.
            Throttled: too much of the company waits already.
        """
        async with self._turns.turn(at_work.company_id()):
            found: list[bytes | Reject] = []
            until_s = perf_counter() + within_s
            for each in payloads:
                found.append(await self._decode_one(each))
                if perf_counter() > until_s:
                    break
            return found

    async def close(self) -> None:
        """Ends the process."""
        async with self._turns.turn(0):
            await self._end()

    async def _decode_one(self, payload: ToDecode) -> bytes | Reject:
        name = payload.decoder
        if name not in _OWN and name not in self.allowed:
            return self._refused(name, f"the decoder {name} of the configuration is none of ingest.decoders")
        process = await self._start()
        try:
            async with asyncio.timeout(self._wait_s if name in self._known and name not in _OWN else _START_S):
                is_done, found = await _ask(process, payload)
        except TimeoutError:
            return await self._gave_up(name, say("decoder_took_too_long"))
        except (EOFError, ConnectionError, msgspec.MsgspecError):
            return await self._gave_up(name, say("decoder_ended"))
        except BaseException:
            await self._end()
            raise
        self._known.add(name)
        if not is_done:
            return self._refused(name, found.decode("utf-8", "replace"))
        self.stats.decoded += name not in _OWN
        return found

    async def _gave_up(self, name: str, told: Said) -> Reject:
        await self._end()
        self.stats.ended += 1
        self._sparse_log.warning("%s (%s), and is started anew", told, name)
        return self._refused(name, told)

    def _refused(self, name: str, reason: str) -> Reject:
        self.stats.refused += name not in _OWN
        return Reject(RejectKind.DECODER, reason)

    async def _start(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._known.clear()
            limits = map(str, (self._cpu_ms, _MOST_MEMORY_BYTES, _MOST_ANSWER_BYTES))
            command = (sys.executable, "-P", str(_SCRIPT), *limits)
            environment = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )
            self.stats.starts += 1
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _ask(process: Process, payload: ToDecode) -> tuple[bool, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    asked = _encode(payload)
    process.stdin.write(len(asked).to_bytes(4) + asked)
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(4))
    return _decode(await process.stdout.readexactly(size))
