"""A mapping tried in a process of its own: what rows and payloads cost, they cost nobody else's time and memory.

``python -m terrazzo.mapping.trial_process`` reads a ``TrialRequest`` from its standard input and writes a
``TrialAnswer``, both as JSON. The system ends it beyond its share of time and memory.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

import msgspec

from terrazzo.domain.payload import Reject
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.dry_run import Sample, Trial, try_mapping
from terrazzo.reasons import Reason, reason_of, say, told_by

MOST_CPU_S = 4
MOST_MEMORY_BYTES = 768 * 2**20
MOST_ANSWER_BYTES = 8 * 2**20


class TrialRequest(msgspec.Struct):
    """A mapping's rows, the object's terminals, and what they report."""

    rows: Any
    terminals: list[str]
    samples: list[Sample]
    limits: MappingLimits


class TrialAnswer(msgspec.Struct):
    """What the samples made, or what is wrong: with the rows (``script``) or with a sample (``payloads``)."""

    trial: Trial | None = None
    at_fault: str = ""
    reason: str = ""
    told: Reason | msgspec.UnsetType = msgspec.UNSET  # the reason as code and parameters


def answer(request: TrialRequest) -> bytes:
    """The answer to a request, as JSON."""
    try:
        trial = try_mapping(request.rows, request.terminals, request.samples, request.limits)
    except Reject as error:
        return _refused("payloads", told_by(error))
    except ValueError as error:
        return _refused("script", told_by(error))
    encoded = msgspec.json.encode(TrialAnswer(trial))
    if len(encoded) <= MOST_ANSWER_BYTES:
        return encoded
    return _refused("payloads", say("trial_makes_too_much", bytes=len(encoded), most=MOST_ANSWER_BYTES))


def _refused(at_fault: str, reason: str) -> bytes:
    return msgspec.json.encode(TrialAnswer(at_fault=at_fault, reason=str(reason), told=reason_of(reason)))


def main() -> None:
    """Answers one request."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=TrialRequest)
    sys.stdout.buffer.write(answer(request))


if __name__ == "__main__":
    main()
