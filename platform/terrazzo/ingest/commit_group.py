"""Decodes batches of publishes into one group of records that is committed together. Pure: no clock but a deadline."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from terrazzo.domain.answers import CommandAnswer, answer_record
from terrazzo.domain.payload import (
    PointLimits,
    Points,
    Reject,
    RejectKind,
    check_nested,
    decode,
    decode_json,
    flatten,
    shorten,
)
from terrazzo.durations import Durations
from terrazzo.ingest.arrival import LONG, Arrival, FlatPoints
from terrazzo.ingest.record_span import CountedSpan, RecordSpan, counted
from terrazzo.ingest.report_tag import Opener, ReportTag
from terrazzo.ingest.seams import MessageMapper, SeriesLimit
from terrazzo.ingest.timing import CLOCK_UNSET, record_time
from terrazzo.ports.store import NO_NOTES, Notes, Record
from terrazzo.reasons import reason_of, say, told_by
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.hooks import Inbound
from terrazzo_broker.log_text import visible

PAYLOAD_FORMAT_INVALID = 0x99
QUOTA_EXCEEDED = 0x97
STORE_REFUSES = 0x83  # Implementation specific error

_BRACE = 0x7B
_STRIDE = 256  # messages between two looks at the clock
_STRIDE_ROWS = 128  # rows of mappings that run between two: each is a microsecond or so, and holds one text at the most
_STRIDE_PLAIN = 8

_log = logging.getLogger(__name__)

_encode_reject = msgspec.msgpack.Encoder().encode
_MUCH = 2_048  # bytes of a record that was made of a message: of shorter ones a group has too few to be long for them


def _is_over(group: CommitGroup, deadline_s: float) -> bool:
    """Whether the time is, or the group's room."""
    mosaic = group.mosaic
    return time.perf_counter() > deadline_s or (bool(mosaic) and len(mosaic[-1].body) > _MUCH and group.has_outgrown())


def _made_bytes(records: Iterable[Record]) -> int:
    return sum([len(each.body) for each in records])  # half the time of a generator


class IngestStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    messages: int = 0  # committed, rejects included
    bytes: int = 0
    rejects: dict[str, int] = msgspec.field(default_factory=lambda: {kind.value: 0 for kind in RejectKind})
    clock_unset: int = 0  # records whose Time was before the year 2000
    batches: int = 0
    commits: int = 0
    commit_seconds: float = 0.0
    commit_seconds_max: float = 0.0
    commit_times: Durations = msgspec.field(default_factory=Durations)
    waits: Durations = msgspec.field(default_factory=Durations)  # of each message, that of the oldest of its commit
    store_failures: int = 0
    store_refused: int = 0  # records that the store never takes (older than its retention, say); kept as rejects
    shaping_failures: int = 0  # messages that are stored, but whose mapping failed
    withheld: int = 0  # publishes not acknowledged after a fault here; their connections were ended
    pauses: int = 0
    disk_rests: int = 0  # of companies whose bytes had made a commit long while others reported
    backlog: int = 0  # publishes taken and not yet settled
    backlog_bytes: int = 0

    def count_commit(self, group: CommitGroup, seconds: float, waited_s: float) -> None:
        """Counts a commit: how long it took, and since when the oldest of its arrivals waited for it."""
        self.messages += group.messages
        self.bytes += group.size
        self.backlog -= group.messages
        self.backlog_bytes -= group.size
        self.commits += 1
        self.commit_seconds += seconds
        self.commit_seconds_max = max(self.commit_seconds_max, seconds)
        self.commit_times.add(seconds)
        if group.messages:
            self.waits.add(waited_s, group.messages)


class CommitGroup(msgspec.Struct):
    """What one commit stores, and the arrivals that are acknowledged after it."""

    records: list[Record] = msgspec.field(default_factory=list)  # one for each message
    mosaic: list[Record] = msgspec.field(default_factory=list)
    notes: Notes = NO_NOTES
    spans: list[RecordSpan] = msgspec.field(default_factory=list)
    arrivals: list[Arrival] = msgspec.field(default_factory=list)  # decoded to the end
    answers: list[CommandAnswer] = msgspec.field(default_factory=list)
    messages: int = 0
    size: int = 0  # payload bytes of the arrivals
    noted: int = 0  # bytes of ``notes``
    most: int = sys.maxsize  # payload bytes and bytes that are made at which it is full
    made: int = 0  # bytes of what was made of messages, as far as it is measured
    measured: int = 0  # how many of ``mosaic``
    made_by: list[tuple[Any, int]] = msgspec.field(default_factory=list)  # shares, with bytes that are made of theirs
    is_outgrown: bool = False  # what was made fills it, as far as it was noted
    faults: int = 0  # how often something other than the store kept it from being committed

    def add_answer(self, answer: CommandAnswer, arrived_us: int) -> None:
        """Adds what a terminal answered to a command, and its record."""
        self.answers.append(answer)
        self.mosaic.append(answer_record(answer, arrived_us))

    def measure(self) -> None:
        """Adds the bytes of what was made of messages since the last time."""
        if len(self.mosaic) > self.measured:
            self.made += _made_bytes(self.mosaic[self.measured :])
            self.measured = len(self.mosaic)

    def note_made(self, share: Any, count: int = 1) -> None:
        """Notes whose bytes the last of ``mosaic`` are."""
        before, is_next = self.made, self.measured == len(self.mosaic) - count
        self.has_outgrown()
        self.made_by.append((share, self.made - before if is_next else _made_bytes(self.mosaic[-count:])))

    def has_outgrown(self) -> bool:
        """Whether what was made of messages fills it."""
        self.measure()
        self.is_outgrown = self.size + self.made >= self.most
        return self.is_outgrown

    @property
    def bytes(self) -> int:
        """All that is measured of what it holds."""
        return self.size + self.made + self.noted

    def sizes(self) -> dict[Any, int]:
        """The bytes by share: of payloads, and of what was made of them, where it is much; notes go with the latter."""
        found: dict[Any, int] = {}
        for arrival in self.arrivals:
            found[arrival.share] = found.get(arrival.share, 0) + arrival.size
        noted = self.noted / self.made if self.made else 0.0
        for share, made in self.made_by:
            found[share] = found.get(share, 0) + made + int(made * noted)
        return found

    def counted_spans(self) -> Iterable[CountedSpan]:
        """Which records come from which messages of which arrivals, in their order."""
        return counted(self.spans, len(self.records))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was decoded into it."""
        return not (self.records or self.mosaic or self.arrivals)

    def all_records(self) -> list[Record]:
        """All that the commit stores: the messages' records, then objects' records and answers to commands."""
        return [*self.records, *self.mosaic] if self.mosaic else self.records

    def refuse(self, refused: Sequence[Record], reason: str) -> list[Record]:
        """Replaces records that the store will never take by rejects, and returns the rejects.

        The publishes are answered with ``STORE_REFUSES``.
        """
        left = Counter(refused)
        rejects = []
        for span in self.counted_spans():
            batch = span.arrival.batch
            for index, record in enumerate(self.records[span.start : span.start + span.records], span.first):
                if left[record] > 0 and index not in (span.arrival.refusals or ()):  # a reject stays one
                    left[record] -= 1
                    span.arrival.refuse(index, STORE_REFUSES)
                    rejects.append(reject_record(batch.messages[index], reason, batch.arrived_us))
                    self.records[span.start + index - span.first] = rejects[-1]
        return rejects

    def drop(self, arrival: Arrival) -> None:
        """Removes an arrival that was decoded to its end from those to answer; its records may be stored."""
        self.arrivals = [each for each in self.arrivals if each is not arrival]
        self.messages -= len(arrival.batch.messages)
        self.size -= arrival.size

    def settle(self) -> None:
        """Acknowledges all arrivals, whose records are durable now; a failure of one is logged and skips that one."""
        for arrival in self.arrivals:
            try:
                arrival.batch.settle(arrival.refusals)
            except Exception:  # noqa: BLE001 - whatever is wrong with one connection
                _log.exception("%s can't be answered; its reports are stored", arrival.batch.client.client_id)


_NO_TAG: tuple[ReportTag | None, Opener | None, str, Sequence[Any], int] = (None, None, "", (), 0)
"""What is known before an arrival's first message: no tag, seal, series or plans; nobody looks at the clock."""


class Recorder:
    """Decodes arrivals into a group.

    Args:
        stats: counts rejects and failed mappings.
        clock_ahead_s: how far a terminal's ``Time`` may be ahead of ours.
        mapper: maps messages to objects' records; None: no message is mapped.
        limits: of a payload's points.
        series: which series terminals may have; None: any.
    """

    def __init__(
        self,
        stats: IngestStats,
        *,
        clock_ahead_s: float,
        mapper: MessageMapper | None = None,
        limits: PointLimits | None = None,
        series: SeriesLimit | None = None,
    ) -> None:
        self._stats = stats
        self._series = series
        self._plans_of = _no_plans if mapper is None else mapper.plans
        self._map = _into_nothing if mapper is None else mapper.shape
        self._rows_of = _no_rows if mapper is None else mapper.rows_of
        self._keep_up = _no_upkeep if mapper is None else mapper.keep_up
        self._mapper = mapper
        self._reports: Sequence[Record] = ()  # of the group that the mapper has begun
        self._failure_log = SparseLog(_log)
        self._clock_ahead_us = int(clock_ahead_s * 1e6)
        self._limits = limits or PointLimits()
        self._short = min(self._limits.name_chars, self._limits.text_chars, LONG)  # what is no longer is within limits

    def record(self, arrival: Arrival, group: CommitGroup, deadline_s: float) -> bool:
        """Decodes an arrival until its end or ``deadline_s`` (of ``time.perf_counter``); True at its end.

        It ends before that, too, where a payload has to be opened elsewhere first (the arrival ``waits`` then), or
        plans have to be made (it is ``unplanned``).
        A plain payload takes a microsecond or two, a sealed or mapped one up to many thousands.
        """
        if group.records is not self._reports:
            self._begin(group)
        count = len(arrival.batch.messages)
        while (start := arrival.next) < count:
            stop = count if count - start <= _STRIDE else start + _STRIDE
            made = len(group.mosaic)
            arrival.next = stop = self._record_some(arrival, group, (start, stop), deadline_s)
            if len(group.mosaic) > made:
                group.note_made(arrival.share, len(group.mosaic) - made)
            if stop < count and (arrival.is_stuck or group.is_outgrown or time.perf_counter() > deadline_s):
                return False
        group.arrivals.append(arrival)
        group.messages += count
        group.size += arrival.size
        return True

    def record_plain(self, arrival: Arrival, group: CommitGroup) -> bool:
        """The short way of ``record`` for an arrival of one report as most are; False: it did nothing, go that one.

        As most are: a short object of points in JSON, of a series that is known, read and mapped without a fault.
        """
        batch, records = arrival.batch, group.records
        if len(batch.messages) != 1:
            return False
        message = batch.messages[0]
        tag, body = message.tag, message.payload
        trace, series, arrived_us = tag.trace, tag.series, batch.arrived_us
        if tag.form is not None or tag.seal is not None or message.correlation_data or len(body) > self._short:
            return False
        if (known := trace.series) is None or series not in known.names:
            return False
        if group.records is not self._reports:
            self._begin(group)
        try:
            plans = self._plans_of(tag.uid)
            if body[0] != _BRACE or plans is None or (plans and body.find(b"{", 1) >= 0):
                return False
            points, time_us = decode_json(body), arrived_us
            if "Time" in points and (stamp := points["Time"]) is not None:
                time_us = record_time(stamp, latest_us=arrived_us + self._clock_ahead_us)
        except Exception:  # noqa: BLE001 - ``record`` meets it again, and says what is wrong
            return False
        if time_us == CLOCK_UNSET:
            return False
        trace.last_telemetry_us = arrived_us
        group.spans.append(RecordSpan(len(records), arrival, 0))
        records.append(Record(series, time_us, body))
        if plans:
            mosaic = group.mosaic
            try:
                self._map(plans, points, time_us, tag.uid, mosaic)
            except Exception as error:  # noqa: BLE001 - what is wrong there must not stop other messages
                self._on_mapping_failed(tag.uid, error)
            self._keep_up(plans, 1)
            if mosaic and len(mosaic[-1].body) > _MUCH and len(mosaic) > group.measured:
                group.note_made(arrival.share)
        arrival.next = 1
        group.arrivals.append(arrival)
        group.messages += 1
        group.size += arrival.size
        return True

    def _begin(self, group: CommitGroup) -> None:
        self._reports = group.records
        if self._mapper is not None:
            self._mapper.begin(group.records)

    def _record_some(self, arrival: Arrival, group: CommitGroup, span: tuple[int, int], deadline_s: float) -> int:
        """The hot loop. Returns the index it came to: the end of the span, unless opening or mapping took too long."""
        batch, (start, stop) = arrival.batch, span
        arrived_us, latest_us = batch.arrived_us, batch.arrived_us + self._clock_ahead_us
        group.spans.append(RecordSpan(len(group.records), arrival, start))
        tag, seal, series, plans, stride = _NO_TAG
        append, map_message, limits, short = group.records.append, self._map, self._limits, self._short
        messages = batch.messages if len(batch.messages) == stop - start else batch.messages[start:stop]
        for index, message in enumerate(messages, start):
            found, body = message.tag, message.payload
            if len(body) > short or (found is not tag and found.form is not None):
                if (stop := self._record_apart(arrival, group, (index, span[1]), deadline_s)) == span[1]:
                    continue
                break
            if found is not tag:
                if self._is_new_and_too_many(message, group, arrival, index):
                    continue
                if (its_plans := self._plans(found, arrived_us)) is None:
                    arrival.unplanned, stop = found.uid, index
                    break
                tag, seal, series, plans = found, found.seal, found.series, its_plans
                stride = 1 if seal is not None else self._stride(plans)
            try:
                if seal is not None:
                    if seal.is_slow and not arrival.is_opened(index):
                        arrival.waits, stop = True, index
                        break
                    body = arrival.open(index, tag, body)
                if body[0] == _BRACE:
                    points = decode_json(body)
                else:
                    points, body = decode(body), body.lstrip()  # readers tell formats apart by the first byte
                stamp = points["Time"] if "Time" in points else None  # noqa: SIM401 - ``get`` takes twice as long
                time_us = arrived_us if stamp is None else record_time(stamp, latest_us=latest_us)
                if plans and (body[0] != _BRACE or body.find(b"{", 1) >= 0):  # without another brace it is flat
                    points = flatten(points, limits)
            except Exception as error:  # noqa: BLE001 - a payload that the decoder chokes on must not stop other messages
                append(self._reject(message, _explained(body, error), arrived_us))
                arrival.refuse(index, PAYLOAD_FORMAT_INVALID)
                stride = 1  # to say what is wrong takes longer than to read it
            else:
                if time_us == CLOCK_UNSET:
                    self._stats.clock_unset += 1
                    time_us = arrived_us
                append(Record(series, time_us, body))
                if plans:
                    try:
                        map_message(plans, points, time_us, tag.uid, group.mosaic)
                    except Exception as error:  # noqa: BLE001 - what is wrong there must not stop other messages
                        self._on_mapping_failed(tag.uid, error)
                if message.correlation_data and tag.answers:
                    group.add_answer(CommandAnswer(tag.uid, message.correlation_data, body), arrived_us)
            if stride and not index % stride and _is_over(group, deadline_s):
                stop = index + 1
                break
        if plans:
            self._keep_up(plans, stop - start)
        return stop

    def _stride(self, plans: Sequence[Any]) -> int:
        """After how many messages to look at the clock; one without rows takes a millisecond at the most."""
        return max(1, _STRIDE_ROWS // self._rows_of(plans)) if plans else _STRIDE_PLAIN

    def _record_apart(self, arrival: Arrival, group: CommitGroup, span: tuple[int, int], deadline_s: float) -> int:
        """The first message of a span, which has a form or is long. Returns as ``_record_some``."""
        if not self._is_recorded(arrival.batch.messages[span[0]], group, arrival, span[0]):
            return span[0]
        return span[0] + 1 if _is_over(group, deadline_s) else span[1]

    def _is_recorded(self, message: Inbound, group: CommitGroup, arrival: Arrival, index: int) -> bool:
        """Makes a record, or a reject, unless something has to be done before."""
        tag, arrived_us = message.tag, arrival.batch.arrived_us
        if self._is_new_and_too_many(message, group, arrival, index):
            return True
        if (plans := self._plans(tag, arrived_us)) is None:
            arrival.unplanned = tag.uid
            return False
        arrival.is_mapped = bool(plans)
        if not arrival.has_all_of(index, tag):
            return False
        try:
            body, points, stamp = arrival.read(index, tag, message.payload)
            latest_us = arrived_us + self._clock_ahead_us
            time_us = arrived_us if stamp is None else record_time(stamp, latest_us=latest_us)
            text = points.text if isinstance(points, FlatPoints) else b""
            if points.__class__ is dict:
                points = self._take_long(points, is_mapped=bool(plans))
        except Exception as error:  # noqa: BLE001 - as in the hot loop
            group.records.append(self._reject(message, error, arrived_us))
            arrival.refuse(index, PAYLOAD_FORMAT_INVALID)
            return True
        if time_us == CLOCK_UNSET:
            self._stats.clock_unset += 1
            time_us = arrived_us
        record = Record(tag.series, time_us, body)
        group.records.append(record)
        if plans and self._mapper is not None:
            if tag.form is not None or points.__class__ is not dict:
                self._mapper.note_read(record, points)
            try:
                self._map(plans, points, time_us, tag.uid, group.mosaic)
            except Exception as error:  # noqa: BLE001 - what is wrong there must not stop other messages
                self._on_mapping_failed(tag.uid, error)
            self._keep_up(plans, 1)
        if message.correlation_data and tag.answers and tag.form is None:
            group.add_answer(CommandAnswer(tag.uid, message.correlation_data, body, text), arrived_us)
        return True

    def _is_new_and_too_many(self, message: Inbound, group: CommitGroup, arrival: Arrival, index: int) -> bool:
        """Whether a report is on one topic more than are recorded of its terminal; then it is kept as a reject."""
        if (known := message.tag.trace.series) is not None and message.tag.series in known.names:
            return False
        reject = None if self._series is None else self._series.reject(message.tag)
        if reject is not None:
            group.records.append(self._reject(message, reject, arrival.batch.arrived_us))
            arrival.refuse(index, QUOTA_EXCEEDED)
        return reject is not None

    def _plans(self, tag: ReportTag, arrived_us: int) -> Sequence[Any] | None:
        """Notes that a terminal reports; the plans that its messages run through, None while they have to wait."""
        tag.trace.last_telemetry_us = arrived_us
        try:
            return self._plans_of(tag.uid)
        except Exception as error:  # noqa: BLE001 - what is wrong there must not stop messages from being stored
            self._on_mapping_failed(tag.uid, error)
            return ()

    def _take_long(self, points: Points, *, is_mapped: bool) -> Points:
        """The points of a payload that is long enough to go beyond the limits of names and texts."""
        if is_mapped:
            return shorten(flatten(points, self._limits), self._limits)
        check_nested(points, self._limits)
        return points

    def _on_mapping_failed(self, uid: str, error: Exception) -> None:
        self._stats.shaping_failures += 1
        self._failure_log.warning("a message of %s is stored and went into no object: %r", uid, error)

    def _reject(self, message: Inbound, error: Exception, arrived_us: int) -> Record:
        if isinstance(error, Reject):
            reject = error
        else:
            reject = Reject(RejectKind.MALFORMED, say("report_unreadable", why=type(error).__name__))
            uid = message.tag.uid
            self._failure_log.error("a message of %s can't be read and is kept as a reject: %r", uid, error)
        self._stats.rejects[reject.kind.value] += 1
        return reject_record(message, told_by(reject), arrived_us)


def _explained(body: bytes, error: Exception) -> Exception:
    """What is wrong with a payload that can't be decoded, where that is the error."""
    if not isinstance(error, msgspec.MsgspecError | UnicodeDecodeError | RecursionError | IndexError):
        return error
    try:
        decode(body)
    except Exception as explained:  # noqa: BLE001 - as in the hot loop
        return explained
    return error


def _no_plans(uid: str) -> Sequence[Any]:
    return ()


def _no_rows(plans: Sequence[Any]) -> int:
    raise AssertionError("who else would have plans")


def _no_upkeep(plans: Sequence[Any], count: int) -> None:
    raise AssertionError("who else would have plans")


def _into_nothing(plans: Sequence[Any], points: Points, time_us: int, uid: str, mosaic: list[Record]) -> None:
    raise AssertionError("who else would have plans")


def reject_record(message: Inbound, reason: str, arrived_us: int) -> Record:
    """The record of a refused publish, in the terminal's ``x/`` series, as MessagePack: topic, reason, payload;
    ``told`` is the reason as code and parameters.

    A reason may quote what the terminal sent; what of it can't be printed, or stored at all, stands there as escapes.
    """
    body: dict[str, Any] = {"topic": message.tag.topic, "reason": visible(str(reason)), "payload": message.payload}
    told = reason_of(reason)
    if not isinstance(told, msgspec.UnsetType):
        body["told"] = told
    return Record(message.tag.rejects, arrived_us, _encode_reject(body))
