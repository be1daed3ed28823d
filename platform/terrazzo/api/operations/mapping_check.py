"""Trying a mapping before it is written: rows and sample payloads in, variables and events out, nothing stored."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Flag, Json, Key, KeyList, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.latest_reports import LatestReport, latest_reports
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.mapping_table import mapping_problems
from terrazzo.domain.payload import Reject
from terrazzo.domain.payloads.form import parse_payload_form
from terrazzo.domain.payloads.stored import json_payload
from terrazzo.domain.report_topic import topic_of
from terrazzo.errors import BadParameter, NotFound
from terrazzo.loop_pauses import in_turns
from terrazzo.mapping.dry_run import Sample, Trial
from terrazzo.mapping.trial_process import TrialRequest
from terrazzo.reasons import Reason, reason_of, say, told_by
from terrazzo.times import format_spaced, now_us

MOST_SAMPLES = 1_000
MOST_LATEST = 100
_SECOND_US = 1_000_000


class SamplePayload(msgspec.Struct, kw_only=True):
    """``terminal_id``: a uid of ``terminal_list``, or a place in it from 1. ``time``: a second after the one before.

    ``base64``: the payload's bytes, in place of ``payload``; ``topic``: what it came on, for a decoder.
    """

    payload: Json | None = None
    base64: Annotated[str, Meta(max_length=1_398_104, description="the payload's bytes, in place of payload")] = ""
    topic: Annotated[str, Meta(max_length=1_024, description="for a decoder; g/<terminal>/r")] = ""
    terminal_id: Annotated[int, Meta(ge=1, le=1_000)] | Annotated[str, Meta(max_length=64)] = 1
    time: Moment | None = None


class CheckMapping(msgspec.Struct, kw_only=True):
    """``terminal_list``: uids in order; without it ``terminal-1``, ``terminal-2`` and so on.

    ``config_id``: the configuration that says how payloads are read; without it they are objects. ``latest``: so many
    of the latest reports of the terminals in ``terminal_list`` are taken, read as their configurations say, and then
    ``payloads``. ``all_problems``: rows that are wrong are no refusal; the answer names each of them, and nothing else
    is made.
    """

    script: Json
    payloads: Annotated[list[SamplePayload], Meta(max_length=MOST_SAMPLES)] = []
    terminal_list: KeyList | None = None
    config_id: Key | None = None
    latest: Annotated[int, Meta(ge=0, le=MOST_LATEST, description="reports that came before; goes with terminals")] = 0
    all_problems: Annotated[Flag, Meta(description="1: what is wrong with the rows is in the answer, all of it")] = 0


class CheckedMessage(msgspec.Struct):
    """A report that came before, as it is stored, and what the rows make of it; ``values`` is empty for nothing.

    ``points``: as its configuration reads it; rows join nested names by dots. ``problem``: why it can't be read.
    """

    terminal_id: str
    topic: str
    time: str
    payload: Any
    values: dict[str, Any]
    problem: str
    points: dict[str, Any]
    told: Reason | msgspec.UnsetType = msgspec.UNSET  # the problem as code and parameters


class CheckedRecord(msgspec.Struct):
    """The mosaic record that a payload would make."""

    time: str
    value: dict[str, Any]


class CheckedEvent(msgspec.Struct):
    """The event that a payload would raise."""

    time: str
    terminal_id: str
    code: str
    label_en: str
    label_cn: str
    value: str
    extension_key: str
    extension_value: str


class RowProblem(msgspec.Struct):
    """What is wrong with a row; row and column count from 1, column 0 is the row as a whole."""

    row: int
    column: int
    reason: str
    told: Reason | msgspec.UnsetType = msgspec.UNSET  # the reason as code and parameters


class CheckedMapping(msgspec.Struct):
    """``variables``: all of them after the last payload. ``messages``: the latest reports, the oldest first.

    ``problems``: what is wrong with the rows, with ``all_problems``; else empty.
    """

    records: list[CheckedRecord]
    events: list[CheckedEvent]
    variables: dict[str, Any]
    messages: list[CheckedMessage]
    problems: list[RowProblem]


async def handle_check_mapping(services: Services, actor: Actor, request: CheckMapping) -> CheckedMapping:
    """Runs the payloads through a fresh object."""
    given = request.terminal_list.value if request.terminal_list else None
    terminals = [str(key) for key in given or ()] or [f"terminal-{place}" for place in range(1, 1_001)]
    reader = await _reader(services, actor, request.config_id)
    latest = await latest_reports(services, actor, given or [], request.latest) if request.latest else []
    read = [each.sample for each in latest if each.sample is not None]
    samples = [*read, *await _samples(request.payloads, terminals, reader)]
    problems = await _problems(request.script.value) if request.all_problems else []
    rows = [] if problems else request.script.value
    trial = await services.trials.run(actor.company_id, TrialRequest(rows, terminals, samples, services.mapping_limits))
    return _present(trial, services, _messages(services, latest, trial), problems)


async def _problems(rows: Any) -> list[RowProblem]:
    try:
        found = await in_turns(mapping_problems(rows))
    except ValueError as error:
        raise BadParameter("script", told_by(error)) from None
    return [RowProblem(each.row, each.column, str(each.reason), reason_of(each.reason)) for each in found]


def _messages(services: Services, latest: list[LatestReport], trial: Trial) -> list[CheckedMessage]:
    """Each report with the record that it made, if any."""
    made = dict(zip(trial.sources, (value for _, value in trial.records), strict=True))
    messages, place = [], 0
    for each in latest:
        values = {} if each.sample is None else made.get(place, {})
        place += each.sample is not None
        time = format_spaced(each.record.time_us, services.zone)
        shown = json_payload(each.record.body)
        points = {} if each.sample is None else each.sample.points
        messages.append(
            CheckedMessage(
                each.uid,
                topic_of(each.record.series),
                time,
                shown,
                values,
                str(each.problem),
                points,
                reason_of(each.problem),
            )
        )
    return messages


ReadSample = Callable[[SamplePayload, str], Awaitable[Any]]
"""The object of points of a sample of a terminal."""


async def _reader(services: Services, actor: Actor, config: str | int | None) -> ReadSample:
    try:
        row = {} if config is None else await services.entities.configurations.item(actor, config)
    except NotFound:
        raise NotFound("config_id", config) from None
    form = parse_payload_form(row.get("payload") or {})

    async def read(sample: SamplePayload, uid: str) -> Any:
        given = None if sample.payload is None else sample.payload.value
        if form is None or (isinstance(given, dict) and not form.decoder):
            return given
        payload = b64decode(sample.base64, validate=True) if given is None else msgspec.json.encode(given)
        points = await services.report_reader.points(form, sample.topic or f"g/{uid}/r", payload)
        return msgspec.json.decode(points)

    return read


async def _samples(payloads: list[SamplePayload], terminals: list[str], read: ReadSample) -> list[Sample]:
    samples: list[Sample] = []
    for number, given in enumerate(payloads, 1):
        uid = _terminal(given.terminal_id, terminals, number)
        try:
            points = await read(given, uid)
        except (Reject, ValueError) as error:
            raise BadParameter("payloads", say("payload_wrong", payload=number, reason=error)) from None
        if not isinstance(points, dict):
            raise BadParameter("payloads", say("payload_expected_points", payload=number))
        before_us = samples[-1].time_us if samples else now_us() - _SECOND_US
        time_us = before_us + _SECOND_US if given.time is None else given.time.time_us
        samples.append(Sample(uid, points, time_us))
    return samples


def _terminal(key: int | str, terminals: list[str], number: int) -> str:
    if isinstance(key, str) and key in terminals:
        return key
    place = int(key) if str(key).isdecimal() else 0
    if not 1 <= place <= len(terminals):
        raise BadParameter("payloads", say("payload_no_terminal", payload=number, terminal=str(key)))
    return terminals[place - 1]


def _present(
    trial: Trial, services: Services, messages: list[CheckedMessage], problems: list[RowProblem]
) -> CheckedMapping:
    zone = services.zone
    events = []
    for event in trial.events:
        fields = {name: getattr(event, name) for name in CheckedEvent.__struct_fields__ if name != "time"}
        events.append(CheckedEvent(time=format_spaced(event.time_us, zone), **fields))
    records = [CheckedRecord(format_spaced(time_us, zone), value) for time_us, value in trial.records]
    return CheckedMapping(records, events, trial.variables, messages, problems)


OPERATIONS = (
    Operation(
        name="check_mapping",
        summary="Tries a mapping on sample payloads: the variables and events they would make; nothing is stored",
        request=CheckMapping,
        result=CheckedMapping,
        permission=Role.VIEWER,
        handler=handle_check_mapping,
    ),
)
