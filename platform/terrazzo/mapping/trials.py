"""Trials of mappings on behalf of users: small ones at once, others in a process, one of a company at a time."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from subprocess import DEVNULL, PIPE, Popen  # nosec B404

import msgspec

from terrazzo.company_turns import CompanyTurns
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import at_once, in_turns
from terrazzo.mapping.dry_run import Trial
from terrazzo.mapping.trial_process import (
    MOST_CPU_S,
    MOST_MEMORY_BYTES,
    TrialRequest,
    answer,
    read_answer,
)
from terrazzo.reasons import say

_SMALL_SCRIPT, _SMALL_PAYLOADS, _SMALL_RUNS = 1_500, 8_000, 200
"""Of a trial that takes a millisecond or two: bytes of its rows and its samples, and rows times samples."""

_AT_ONCE = 2
_MOST_S = 20.0  # beside others, and with the start of the process


class MappingTrials:
    """Where mappings are tried."""

    def __init__(self) -> None:
        self._turns = CompanyTurns("mapping trials", at_once=_AT_ONCE, waiting=4)
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mapping trials")

    @property
    def refused(self) -> int:
        """How many were refused, as too many of their company waited."""
        return self._turns.refused

    async def run(self, company_id: int, request: TrialRequest) -> Trial:
        """Tries a mapping.

        Raises:
            BadParameter: ``script`` or ``payloads`` is wrong, or takes too long or too much memory.
            Throttled: too many trials of the company wait.
        """
        rows, samples = msgspec.json.encode(request.rows), msgspec.json.encode(request.samples)
        runs = len(request.samples) * (len(request.rows) if isinstance(request.rows, list) else 0)
        if len(rows) <= _SMALL_SCRIPT and len(samples) <= _SMALL_PAYLOADS and runs <= _SMALL_RUNS:
            return at_once(read_answer(answer(request)))
        async with self._turns.turn(company_id):
            parts = {"rows": msgspec.Raw(rows), "samples": msgspec.Raw(samples)}
            encoded = msgspec.json.encode(msgspec.structs.asdict(request) | parts)
            return await in_turns(read_answer(await self._run_apart(encoded)))

    async def _run_apart(self, request: bytes) -> bytes:
        child, out = _Child(), b""
        try:
            async with asyncio.timeout(_MOST_S):
                out = await asyncio.get_running_loop().run_in_executor(self._threads, child.run, request)
        except TimeoutError:
            pass
        finally:
            child.give_up()
        if not out:
            most = {"seconds": MOST_CPU_S, "mebibytes": MOST_MEMORY_BYTES >> 20}
            raise BadParameter("script", say("trial_takes_too_much", **most))
        return out


class _Child:
    """A process that tries one mapping; it is started and heard on a thread."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._is_given_up = False

    def run(self, request: bytes) -> bytes:
        """What it answers; empty where it was ended."""
        command = (sys.executable, "-m", "terrazzo.mapping.trial_process")
        with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:  # our own  # nosec B603
            self._process = process
            if self._is_given_up:
                process.kill()
            out, _ = process.communicate(request)
            return b"" if process.returncode else out

    def give_up(self) -> None:
        """Ends it, at once or when it begins."""
        self._is_given_up = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
