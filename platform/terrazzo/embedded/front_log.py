"""``FrontLog``: what a front's ingest has read of terminals goes into the log, from which the leader stores it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

import msgspec

from terrazzo.domain.payloads.stored import raw_payload
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ingest.report_tag import ReportTag
from terrazzo.ports.store import NO_NOTES, Notes, Record, StoreFull, StoreUnavailable
from terrazzo.ports.stream import LogFull, LogUnavailable, LogUnusable, ReplicatedLog
from terrazzo.reasons import say
from terrazzo.replication.front_events import Connected, Fate, FrontEvent, RollBegins, RollEnds
from terrazzo.replication.in_frame import InBatch, InFrame, InFrames, InMessage, InTopic, Numbered, encode_in_frame
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.hooks import Inbound

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_EVENTS_S = 0.02
_MOST_EVENTS = 20_000  # that wait for the log
_EVENTS_IN_FRAME = 500
_TAG, _CORRELATION, _SERIES = attrgetter("tag"), attrgetter("correlation_data"), attrgetter("series")


class FrontLogStats(msgspec.Struct):
    """Counters since the start."""

    frames: int = 0  # that the log has acknowledged
    messages: int = 0  # in these
    bytes: int = 0  # of these
    again: int = 0  # attempts without an answer, or refused; each is made again
    events: int = 0  # connections, disconnections, fates of messages that were told
    rolls: int = 0  # times that all connected terminals were named


class NoStore:
    """``ReportStore`` of a front, which has no time series: the leader counts how many a terminal has."""

    is_whole = True

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Is not called: ``FrontLog`` keeps what is read."""
        raise AssertionError("a front stores nothing itself")

    async def series(self, prefix: str) -> Sequence[str]:
        """None are known."""
        return ()


class FrontLog:
    """``GroupKeeper``: a group is kept when the log has acknowledged its frames, of which one is in flight.

    Args:
        log: of what fronts have taken.
        node: this front's name.
        epoch: of this start; no earlier one has it.
        stats: what is counted.
        is_held: whether nobody can have declared this front dead by now, whose frames are left out then.
    """

    def __init__(
        self,
        log: ReplicatedLog,
        *,
        node: str,
        epoch: int,
        stats: FrontLogStats,
        is_held: Callable[[], bool],
    ) -> None:
        self.stats = stats
        self._log = log
        self._node = node
        self._epoch = epoch
        self._is_held = is_held
        self._failure_log = SparseLog(_log)
        self._number = 0  # of the last frame
        self._group: CommitGroup | None = None  # that was encoded last, and isn't kept yet
        self._frames: deque[tuple[str, bytes]] = deque()  # in the order of their numbers, not acknowledged yet
        self._turn = asyncio.Lock()  # one frame in flight
        self._events: list[FrontEvent] = []  # that are in no frame yet
        self._is_roll_due = False
        self._is_over = False  # too many wait: of what comes, fates alone are kept until all terminals are named
        self._wake = asyncio.Event()
        self.call_roll: Callable[[], Iterable[Connected]] = tuple  # names all connected terminals

    def tell(self, event: FrontEvent) -> None:
        """Has the leader told of an event, before the reports that are taken from now on."""
        if len(self._events) >= _MOST_EVENTS and not self._is_over:  # who is there is named once the log takes it
            self._events = [each for each in self._events if isinstance(each, Fate)]  # of one message to each
            self._is_over = self._is_roll_due = True
        if isinstance(event, Fate) or not self._is_over:
            self._events.append(event)
        self._wake.set()

    def tell_all(self) -> None:
        """Has the leader told of all terminals that are connected."""
        self._is_roll_due = True
        self._wake.set()

    async def work(self) -> None:
        """Sends events where no reports come."""
        attempts = Attempts(_AGAIN)
        while True:
            self._wake.clear()
            await asyncio.sleep(_EVENTS_S)  # what comes at once goes together, as a rule with reports
            try:
                await self.flush()
                attempts.succeeded()
            except StoreUnavailable as error:
                self._failure_log.warning("the leader is not told who is connected: %s", error)
                await asyncio.sleep(attempts.failed() or 0)
                continue
            await self._wake.wait()

    async def flush(self) -> None:
        """Sends the events there are.

        Raises:
            StoreUnavailable: the log doesn't take them.
        """
        if not self._frames:  # else what waits is sent first, and events go on waiting
            self._frames.extend(self._encode_events())
        await self._send()

    async def keep(self, group: CommitGroup) -> None:
        """Has the log keep a group, as ``GroupKeeper`` says."""
        if self._group is not group:
            self._frames.extend(self._encode_events())
            self._frames.extend(self._encode(group))
            self._group = group
        await self._send()
        if not self._is_held():
            raise StoreUnavailable(say("front_not_alive"))
        self.stats.messages += group.messages
        self._group = None

    async def _send(self) -> None:
        async with self._turn:
            while self._frames:
                message_id, body = self._frames[0]
                await self._publish(message_id, body)
                self._frames.popleft()

    async def _publish(self, message_id: str, body: bytes) -> None:
        try:
            await self._log.publish(body, message_id=message_id, last=None)
        except LogFull as error:
            self.stats.again += 1
            raise StoreFull(str(error)) from None
        except (LogUnavailable, LogUnusable) as error:
            self.stats.again += 1
            raise StoreUnavailable(str(error)) from None
        self.stats.frames += 1
        self.stats.bytes += len(body)

    def _encode(self, group: CommitGroup) -> list[tuple[str, bytes]]:
        frames, topics = InFrames(self._node, self._log.most_bytes), _Topics()
        for span in group.counted_spans():
            batch, records = span.arrival.batch, group.records
            client = batch.client
            named = client.client_id, client.owner, client.connected_us, batch.arrived_us
            messages = batch.messages[span.first : span.first + span.records]
            made = records[span.start : span.start + span.records]
            if _is_plain_run(messages, made):
                found = InBatch(*named, payloads=[each.body for each in made])
                frames.add_batch(found, topics.of(messages[0].tag))
            else:
                frames.begin_batch(*named)
                for message, record in zip(messages, made, strict=True):
                    frames.add(_message(topics.of(message.tag), message, record))
        return [self._numbered(frame) for frame in frames.done if frame.batches]

    def _encode_events(self) -> list[tuple[str, bytes]]:
        events, self._events, self._is_over = self._events, [], False
        if self._is_roll_due:
            self._is_roll_due = False
            self.stats.rolls += 1
            events += [RollBegins(), *self.call_roll(), RollEnds()]
        self.stats.events += len(events)
        pieces = [events[start : start + _EVENTS_IN_FRAME] for start in range(0, len(events), _EVENTS_IN_FRAME)]
        return [self._numbered(InFrame(self._node, [], [], piece)) for piece in pieces]

    def _numbered(self, frame: InFrame) -> tuple[str, bytes]:
        self._number += 1
        message_id = f"{self._node}-{self._epoch}-{self._number}"
        return message_id, encode_in_frame(Numbered(self._epoch, self._number, frame))


class _Topics:
    """The topics of one group by their tags, which it holds."""

    def __init__(self) -> None:
        self._found: dict[int, InTopic] = {}

    def of(self, tag: ReportTag) -> InTopic:
        """A tag as frames have it."""
        found = self._found.get(id(tag))
        if found is None:
            found = InTopic(tag.topic, tag.series, tag.uid, tag.channel, tag.rejects, tag.answers)
            self._found[id(tag)] = found
        return found


def _is_plain_run(messages: Sequence[Inbound], records: Sequence[Record]) -> bool:
    """Whether all are of one tag, without Correlation Data, kept as they are read, and none became a reject."""
    if not messages:
        return False
    tag = messages[0].tag
    if len(messages) == 1:
        plain = tag.form is None and not messages[0].correlation_data
        return plain and records[0].series == tag.series
    if tag.form is not None or len(set(map(id, map(_TAG, messages)))) > 1:
        return False
    return not any(map(_CORRELATION, messages)) and set(map(_SERIES, records)) == {tag.series}


def _message(topic: InTopic, message: Inbound, record: Record) -> InMessage:
    """A report that a record was made of, or a reject."""
    if record.series == topic.rejects:
        reason = str(msgspec.msgpack.decode(record.body)["reason"])
        return InMessage(topic, message.payload, message.correlation_data, reason)
    payload = raw_payload(record.body) if message.tag.form is not None else None
    return InMessage(topic, record.body if payload is None else payload, message.correlation_data)
