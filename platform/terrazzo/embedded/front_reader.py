"""``FrontReader``: the leader reads what fronts have taken, and stores it as if their terminals were connected here."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.embedded.front_terminals import FrontTerminals
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import RefusedSeal, ReportTag
from terrazzo.ports.store import NO_NOTES, Notes, StoreUnavailable
from terrazzo.ports.stream import Logged, LogUnavailable, ReplicatedLog
from terrazzo.reasons import say
from terrazzo.replication.in_frame import InBatch, InFrame, InTopic, decode_in_frame
from terrazzo.replication.in_position import IN_NOTE, InPosition, newest_writers
from terrazzo.replication.position import check_next
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.times import now_us
from terrazzo_broker.hooks import Client, Inbound

_log = logging.getLogger(__name__)

SOURCE = "front"
"""What the client ids of fronts' terminals begin with in the ingest; no uid has the slash that follows it."""

_WAIT_S = 0.5
_AGAIN = Retry(first_s=0.1, most_s=2.0)
_MOST_OPEN = 256  # frames that are read and not stored
_MOST_OPEN_BYTES = 16 << 20
_CACHED_TAGS = 65_536


class FrontReaderStats(msgspec.Struct):
    """Counters since this node leads."""

    sequence: int = 0  # the last frame up to which all are stored
    frames: int = 0
    messages: int = 0
    repeated: int = 0  # frames that were in the log twice
    open: int = 0  # frames that are read and not stored
    open_bytes: int = 0
    failures: int = 0  # times that the log did not answer


class _OpenFrame:
    """A frame on its way through the ingest."""

    __slots__ = ("counts", "node", "sequence", "size", "stored", "writer")

    def __init__(self, logged: Logged, node: str, writer: tuple[int, int], frame: InFrame, stored: list[int]) -> None:
        self.sequence = logged.sequence
        self.size = len(logged.body)
        self.node = node
        self.writer = writer
        self.counts = [len(batch.payloads) for batch in frame.batches]
        self.stored = stored  # of each batch, how many messages are in groups that were committed, or are to be next

    @property
    def is_whole(self) -> bool:
        """Whether all of it is in groups that were committed, or are to be next."""
        return self.stored == self.counts


class _FrontBatch:
    """What is left to be stored of a batch of a frame."""

    __slots__ = ("_on_settled", "arrived_us", "client", "first", "frame", "index", "messages")

    def __init__(
        self,
        frame: _OpenFrame,
        index: int,
        client: Client,
        messages: Sequence[Inbound],
        arrived_us: int,
        on_settled: Callable[[], None],
    ) -> None:
        self.frame = frame
        self.index = index
        self.first = frame.stored[index]  # of the batch in the log, where an earlier start has come to
        self.client = client
        self.messages = messages
        self.arrived_us = arrived_us
        self._on_settled = on_settled

    def settle(self, refusals: Mapping[int, int] | None = None) -> None:
        """The ingest calls this when it is stored, as records or as rejects; its terminal was answered before."""
        self._on_settled()

    def hold(self) -> None:
        """What is in the log waits there; how much is read ahead of the store is bounded for all."""

    def release(self) -> None:
        """As ``hold``."""


class FrontReader:
    """Reads the log of reports by sequence into the ingest. What it has come to is noted in the commit of the records.

    So what is acknowledged is stored once, in its order for each terminal, whichever process dies when.

    Args:
        log: of what fronts have taken.
        position: of the store in it.
        terminals: hears of what fronts tell beside reports.
        stats: what is counted.
        lose: ends the process, with why: what it has of a frame can't be stored.
    """

    def __init__(
        self,
        log: ReplicatedLog,
        position: InPosition,
        *,
        ingest: IngestPipeline,
        registry: Registry,
        presence: PresenceRegister,
        terminals: FrontTerminals | None = None,
        stats: FrontReaderStats,
        lose: Callable[[str], None],
    ) -> None:
        self.stats = stats
        stats.sequence = position.sequence
        self._log = log
        self._read = position.sequence  # the last frame that was read
        self._position = position  # with the groups that were committed, or are to be next
        self._ingest = ingest
        self._registry = registry
        self._presence = presence
        self._lose = lose
        self._terminals = terminals
        self._begun = {sequence: list(stored) for sequence, stored in position.begun.items()}  # of frames not read yet
        self._writers = dict(position.writers)  # with the frames that are read
        self._open: deque[_OpenFrame] = deque()
        self._unsettled = 0  # batches in the ingest
        self._settled = asyncio.Event()
        self._clients: dict[str, Client] = {}  # bounded by the number of terminals
        registry.terminal_changes.listen(self._on_terminal)
        self._tags: dict[InTopic, tuple[object, ReportTag]] = {}
        self._is_lost = self._is_ending = False
        self._failure_log = SparseLog(_log)

    def end(self) -> None:
        """Has ``follow`` return soon. A cancellation alone can be lost where a frame comes at the same moment."""
        self._is_ending = True

    async def follow(self) -> None:
        """Reads and stores, until ``end``.

        Raises:
            LogWentBack, FrameDamaged: nobody may go on by himself; says what to do.
        """
        reader, attempts = self._log.read(self._position.sequence, self._position.created), Attempts(_AGAIN)
        try:
            while not self._is_ending:
                try:
                    for logged in await reader.next(_WAIT_S):
                        await self._have_room()
                        if self._is_ending:
                            return
                        check_next(logged.sequence, behind=self._read)
                        self._take(logged)
                        self._read = logged.sequence
                    attempts.succeeded()
                except LogUnavailable as error:
                    self.stats.failures += 1
                    self._failure_log.warning("what fronts have taken: %s", error)
                    await asyncio.sleep(attempts.failed() or 0)
        finally:
            await reader.close()

    def _on_terminal(self, before: Terminal | None, after: Terminal | None) -> None:
        if before is not None and after is None:
            self._clients.pop(before.uid, None)

    def cut(self) -> None:
        """The ingest could not store something: what is in the log has to be read again, by another start."""
        self._is_lost = True
        self._lose("a report that a front has acknowledged can't be stored; it is read again from the log")

    def on_group(self, group: CommitGroup) -> Notes:
        """The position to commit with a group, where it has come of fronts' frames."""
        if self._is_lost:
            raise StoreUnavailable(say("front_reports_again"))
        is_from_fronts = False
        for span in group.counted_spans():
            batch = span.arrival.batch
            if isinstance(batch, _FrontBatch):
                batch.frame.stored[batch.index] = batch.first + span.first + span.records
                is_from_fronts = True
        if not is_from_fronts:
            return NO_NOTES
        self._pass_whole()
        return {IN_NOTE: self._position.encode()}

    def _pass_whole(self) -> None:
        """Brings the position forward over all frames that are whole."""
        position, writers = self._position, dict(self._position.writers)
        sequence = position.sequence
        while self._open and self._open[0].is_whole:
            frame = self._open.popleft()
            sequence = frame.sequence
            writers[frame.node] = frame.writer
            self.stats.open -= 1
            self.stats.open_bytes -= frame.size
        begun = self._begun | {frame.sequence: frame.stored for frame in self._open if any(frame.stored)}
        writers = newest_writers(writers)
        self._position = msgspec.structs.replace(position, sequence=sequence, writers=writers, begun=begun)
        self.stats.sequence = sequence

    async def _have_room(self) -> None:
        stats = self.stats
        while self._unsettled and (stats.open >= _MOST_OPEN or stats.open_bytes >= _MOST_OPEN_BYTES):
            self._settled.clear()
            await self._settled.wait()

    def _take(self, logged: Logged) -> None:
        """Hands a frame to the ingest, unless it was in the log before."""
        epoch, number, frame = decode_in_frame(logged.body)
        stats, writer = self.stats, (epoch, number)
        stats.frames += 1
        is_repeated = writer <= self._writers.get(frame.node, (0, 0))
        if is_repeated:
            stats.repeated += 1
            frame = InFrame(frame.node)
            writer = self._writers[frame.node]
        self._writers[frame.node] = writer
        stored = self._begun.pop(logged.sequence, None) or [0] * len(frame.batches)
        opened = _OpenFrame(logged, frame.node, writer, frame, stored)
        self._open.append(opened)
        stats.open += 1
        stats.open_bytes += opened.size
        if self._terminals is not None:
            self._terminals.on_events(frame.node, frame.events)
        if opened.is_whole:
            self._pass_whole()
        tags = [self._tag(topic) for topic in frame.topics]
        for index, batch in enumerate(frame.batches):
            if stored[index] < len(batch.payloads):
                self._offer(opened, index, batch, tags)

    def _offer(self, frame: _OpenFrame, index: int, batch: InBatch, tags: Sequence[ReportTag]) -> None:
        first = frame.stored[index]
        messages = [Inbound(tags[place], payload) for place, payload in zip(batch.topics, batch.payloads, strict=True)]
        if batch.correlations or batch.rejects:
            _mark(messages, batch)
        client = self._client(batch)
        left = messages[first:] if first else messages
        if self._terminals is not None:
            self._terminals.on_reports(batch.client_id, len(left), batch.arrived_us)
        self._unsettled += 1
        self.stats.messages += len(left)
        self._ingest.take(_FrontBatch(frame, index, client, left, batch.arrived_us, self._on_settled))

    def _on_settled(self) -> None:
        self._unsettled -= 1
        self._settled.set()

    def _client(self, batch: InBatch) -> Client:
        """The terminal that a batch came from, the same for all of its connections: what it says stays in order."""
        client = self._clients.get(batch.client_id)
        if client is None or client.owner != batch.owner:
            client = self._clients[batch.client_id] = Client(
                client_id=f"{SOURCE}/{batch.client_id}",
                username=None,
                protocol=5,
                address="",
                port=0,
                listener=SOURCE,
                connected_us=now_us(),
                keep_alive_s=0,
                owner=batch.owner,
            )
        return client

    def _tag(self, topic: InTopic) -> ReportTag:
        """The tag of a topic: as the front has worked it out, read as the terminal's configuration says here."""
        terminal = self._registry.terminal(topic.uid)
        known = self._tags.get(topic)
        if known is not None and known[0] is terminal:
            return known[1]
        form = None if terminal is None else terminal.form
        tag = ReportTag(
            topic=topic.topic,
            series=topic.series,
            uid=topic.uid,
            channel=topic.channel,
            rejects=topic.rejects,
            answers=topic.answers,
            trace=self._presence.trace(topic.uid),
            form=form if form is not None and topic.channel in form.channels else None,
        )
        if len(self._tags) >= _CACHED_TAGS:
            self._tags.clear()
        self._tags[topic] = terminal, tag
        return tag


def _mark(messages: list[Inbound], batch: InBatch) -> None:
    """Gives messages what few have: Correlation Data, or a reason for which they are rejects."""
    for place, correlation in batch.correlations.items():
        messages[place] = Inbound(messages[place].tag, messages[place].payload, correlation)
    for place, reason in batch.rejects.items():
        tag = msgspec.structs.replace(messages[place].tag, seal=RefusedSeal(reason), form=None)
        messages[place] = Inbound(tag, messages[place].payload, messages[place].correlation_data)
