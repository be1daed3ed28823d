"""A mapping tried in a process of its own: what rows and payloads cost, they cost nobody else's time and memory.

``python -m terrazzo.mapping.trial_process`` reads a ``TrialRequest`` from its standard input as JSON and
writes what ``read_answer`` reads. The system ends it beyond its share of time and memory.
"""

from __future__ import annotations

import io
import os
import resource
import sys
from typing import Any

import msgspec

from terrazzo.domain.payload import Reject
from terrazzo.errors import BadParameter
from terrazzo.expressions.functions import Value
from terrazzo.loop_pauses import Steps
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.dry_run import Sample, Trial, try_mapping
from terrazzo.mapping.effects import EventRaised
from terrazzo.reasons import Reason, reason_of, retold, say, told_by

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
    """What is wrong: with the rows (``script``) or with a sample (``payloads``). Else how many lines follow of what."""

    records: int = 0
    events: int = 0
    variables: dict[str, Value] = {}
    sources: list[int] = []
    at_fault: str = ""
    reason: str = ""
    told: Reason | msgspec.UnsetType = msgspec.UNSET  # the reason as code and parameters


_head = msgspec.json.Decoder(TrialAnswer).decode
_record = msgspec.json.Decoder(tuple[int, dict[str, Value]]).decode
_event = msgspec.json.Decoder(EventRaised).decode


def answer(request: TrialRequest) -> bytes:
    """The answer to a request: a ``TrialAnswer`` as JSON, and a line for each record and event."""
    try:
        trial = try_mapping(request.rows, request.terminals, request.samples, request.limits)
    except Reject as error:
        return _refused("payloads", told_by(error))
    except ValueError as error:
        return _refused("script", told_by(error))
    head = TrialAnswer(len(trial.records), len(trial.events), trial.variables, trial.sources)
    encoded = msgspec.json.Encoder().encode_lines([head, *trial.records, *trial.events])
    if len(encoded) <= MOST_ANSWER_BYTES:
        return encoded
    return _refused("payloads", say("trial_makes_too_much", bytes=len(encoded), most=MOST_ANSWER_BYTES))


def read_answer(encoded: bytes) -> Steps[Trial]:
    """What ``answer`` has found, read in steps.

    Raises:
        BadParameter: ``script`` or ``payloads`` is wrong.
    """
    lines = io.BytesIO(encoded)
    head = _head(lines.readline())
    if head.at_fault:
        raise BadParameter(head.at_fault, retold(head.reason, head.told))
    trial = Trial([], [], head.variables, head.sources)
    for _ in range(head.records):
        trial.records.append(_record(lines.readline()))
        yield
    for _ in range(head.events):
        trial.events.append(_event(lines.readline()))
        yield
    return trial


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
