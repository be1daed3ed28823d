"""Trials of mappings on behalf of users: small ones at once, others in a process, one of a company at a time."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE

import msgspec

from terrazzo.company_turns import CompanyTurns
from terrazzo.errors import BadParameter
from terrazzo.mapping.dry_run import Trial
from terrazzo.mapping.trial_process import (
    MOST_CPU_S,
    MOST_MEMORY_BYTES,
    TrialAnswer,
    TrialRequest,
    answer,
)

_SMALL_SCRIPT, _SMALL_PAYLOADS, _SMALL_RUNS = 1_500, 8_000, 200
"""Of a trial that takes a millisecond or two: bytes of its rows and its samples, and rows times samples."""

_MOST_S = 20.0  # beside others, and with the start of the process
_decode = msgspec.json.Decoder(TrialAnswer).decode


class MappingTrials:
    """Where mappings are tried."""

    def __init__(self) -> None:
        self._turns = CompanyTurns("mapping trials", at_once=2, waiting=4)

    async def run(self, company_id: int, request: TrialRequest) -> Trial:
        """Tries a mapping.

        Raises:
            BadParameter: ``script`` or ``payloads`` is wrong, or takes too long or too much memory.
            Throttled: too many trials of the company wait.
        """
        rows, samples = msgspec.json.encode(request.rows), msgspec.json.encode(request.samples)
        runs = len(request.samples) * (len(request.rows) if isinstance(request.rows, list) else 0)
        if len(rows) <= _SMALL_SCRIPT and len(samples) <= _SMALL_PAYLOADS and runs <= _SMALL_RUNS:
            found = _decode(answer(request))
        else:
            async with self._turns.turn(company_id):
                found = await _run_apart(request)
        if found.trial is None:
            raise BadParameter(found.at_fault, found.reason)
        return found.trial


async def _run_apart(request: TrialRequest) -> TrialAnswer:
    command = (sys.executable, "-m", "terrazzo.mapping.trial_process")
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    try:
        async with asyncio.timeout(_MOST_S):
            out, _ = await process.communicate(msgspec.json.encode(request))
    except TimeoutError:
        out = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode or not out:
        most = f"{MOST_CPU_S} s of a processor, or {MOST_MEMORY_BYTES >> 20} MiB of memory"
        return TrialAnswer(at_fault="script", reason=f"with these payloads it takes more than {most}")
    return _decode(out)
