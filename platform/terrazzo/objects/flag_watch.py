"""Publishes changes of objects' flags as live frames of the kind ``object``.

Whatever may change a flag marks the object; one task looks at what is marked, and at what has not reported for too
long: a heap has one entry for each object that runs by its reports, put back when the object has reported meanwhile.
While nobody subscribes to the kind nothing is marked and nothing is known.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Any, Protocol

import msgspec

from terrazzo.domain.happened import Happened
from terrazzo.domain.registry import Registry
from terrazzo.listeners import Listeners
from terrazzo.loop_pauses import next_turn
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.objects.flags import ObjectFlagReader, ObjectFlags
from terrazzo.ports.bus import Presence
from terrazzo.ports.store import Record
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.times import format_spaced, now_us
from terrazzo_broker.hooks import Client

_AT_ONCE = 200  # objects, before others have their turn
_MOST_SERIES = 100_000  # whose objects are remembered
_NAP_S = 60.0  # at most, so that a clock that was set is noticed

KIND = "object"
"""The kind of the live frames that carry flags."""


class LiveFrames(Protocol):
    """The hub of live frames, as the flag watch needs it."""

    @property
    def feed_changes(self) -> Listeners[[]]:
        """Tells of each feed that is opened or ended."""

    def wants(self, kind: str) -> bool:
        """Whether anybody subscribes to a kind."""

    def publish(self, kind: str, *, company_id: int, object_id: int | None = None, data: Any) -> None:
        """Publishes ``data`` to the subscribers of a kind that selected the object or the company."""


class FlagStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    looks: int = 0  # times that an object's flags were worked out
    changes: int = 0
    known: int = 0  # objects whose flags are followed
    timed: int = 0  # of these the ones that run by their reports


class FlagWatch:
    """Follows the flags of all objects while somebody subscribes to their kind. ``start``, then ``stop``.

    Args:
        flag_reader: works an object's flags out.
        hub: where changes are published.
        registry: the objects and their terminals.
        tasks: runs the task.
        zone: of the times in frames.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        flag_reader: ObjectFlagReader,
        hub: LiveFrames,
        registry: Registry,
        *,
        tasks: Tasks,
        zone: tzinfo,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = FlagStats()
        self._flag_reader = flag_reader
        self._hub = hub
        self._registry = registry
        self._zone = zone
        self._clock = clock
        self._is_wanted = False
        self._told: dict[int, ObjectFlags] = {}
        self._marked: dict[int, None] = {}
        self._unknown: list[int] = []  # to look at without telling, the last first
        self._due: list[tuple[int, int]] = []  # a heap of (boot_until_us, object id)
        self._timed: set[int] = set()  # the objects in it
        self._by_report: dict[str, tuple[int, ...]] = {}  # series -> objects that its records may change
        self._wake = asyncio.Event()
        self._tasks = tasks
        self._task: Task | None = None

    def start(self) -> None:
        """Starts the task."""
        self._hub.feed_changes.listen(self.on_feeds)
        self._task = self._tasks.spawn("object flags", self._run, OnFailure.RESTART)

    async def stop(self) -> None:
        """Stops the task; changes that are marked are not published."""
        if self._task is not None:
            await self._task.stop()

    # What may change a flag

    def on_feeds(self) -> None:
        """Starts or stops to follow flags; ``LiveHub.feed_changes`` tells this."""
        wanted = self._hub.wants(KIND)
        if wanted and not self._is_wanted:
            self._is_wanted = True
            self._unknown = list(self._registry.object_ids())
            self._wake.set()
        elif not wanted and self._is_wanted:
            self._is_wanted = False
            for known in (self._told, self._marked, self._unknown, self._due, self._timed, self._by_report):
                known.clear()
            self._count()

    def on_presence(self, client: Client, presence: Presence) -> None:
        """Marks the objects of a terminal; ``PresenceRegister.changes`` tells this."""
        if self._is_wanted:
            self._mark(self._registry.terminal_objects(client.client_id))

    def on_records(self, records: Sequence[Record]) -> None:
        """Marks objects whose records or reports were committed; ``IngestPipeline.records`` tells this."""
        if not self._is_wanted:
            return
        known, told, marked = self._by_report, self._told, []
        for record in records:
            objects = known.get(record.series)
            if objects is None:
                objects = self._find(record.series)
            for object_id in objects:
                flags = told.get(object_id)
                if flags is None or not flags.is_boot or record.series[0] == "m":
                    marked.append(object_id)
        self._mark(marked)

    def on_happened(self, happened: Sequence[Happened]) -> None:
        """Marks objects on which a label was opened or closed; ``EffectQueue.happened`` tells this."""
        if self._is_wanted:
            self._mark([each.row["object_id"] for each in happened if each.kind in ("opened", "closed")])

    def on_object(self, changed: RowChange) -> None:
        """Marks an object whose record was created, changed or deleted; called after the registry knows it."""
        if self._is_wanted:
            self._by_report.clear()
            self._mark([changed.record_id])

    def on_mapping(self, changed: RowChange) -> None:
        """Marks all objects when a mapping has changed: whether they have a variable ``BOOT`` may be different."""
        if self._is_wanted:
            self._by_report.clear()
            self._mark(self._registry.object_ids())

    def on_read(self, objects: Iterable[int]) -> None:
        """Marks the objects of a mapping that was changed and has been read now: their variables are known again."""
        if self._is_wanted:
            self._by_report.clear()
            self._mark(objects)

    def _find(self, series: str) -> tuple[int, ...]:
        if len(self._by_report) >= _MOST_SERIES:
            self._by_report.clear()
        name, _, rest = series.partition("/")
        objects: tuple[int, ...] = ()
        if name == "g":
            terminal = self._registry.terminal_of_series(rest.partition("/")[0])
            objects = () if terminal is None else tuple(self._registry.terminal_objects(terminal.uid))
        elif name == "m" and rest.isdecimal() and self._flag_reader.has_boot(int(rest)):
            objects = (int(rest),)
        self._by_report[series] = objects
        return objects

    def _mark(self, objects: Iterable[int]) -> None:
        self._marked.update(dict.fromkeys(objects))
        if self._marked:
            self._wake.set()

    # The task

    async def _run(self) -> None:
        """The task. Marks outlive a failure, except the one of the object that the failure is about."""
        while True:
            self._wake.clear()
            self._mark_due()
            while self._marked or self._unknown:
                self._look_at_some()
                await next_turn()
            await self._nap()

    async def _nap(self) -> None:
        nap_s = _NAP_S
        if self._due:
            nap_s = min(nap_s, max(0.0, (self._due[0][0] - self._clock()) / 1_000_000))
        try:
            async with asyncio.timeout(nap_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _mark_due(self) -> None:
        now, due = self._clock(), self._due
        while due and due[0][0] <= now:
            _, object_id = heapq.heappop(due)
            self._timed.discard(object_id)
            self._marked[object_id] = None

    def _look_at_some(self) -> None:
        """Works out the flags of up to ``_AT_ONCE`` marked objects, publishing changes, and as many unknown ones."""
        now = self._clock()
        for _ in range(min(_AT_ONCE, len(self._marked))):
            object_id = next(iter(self._marked))
            del self._marked[object_id]
            self._look(object_id, now, is_told=True)
        for _ in range(min(_AT_ONCE, len(self._unknown))):
            object_id = self._unknown.pop()
            if object_id not in self._told:
                self._look(object_id, now, is_told=False)
        self._count()

    def _look(self, object_id: int, now: int, *, is_told: bool) -> None:
        company = self._registry.object_company(object_id)
        if company is None:
            self._told.pop(object_id, None)
            return
        flags, boot_until_us = self._flag_reader.look(object_id, now)
        before, self._told[object_id] = self._told.get(object_id), flags
        self.stats.looks += 1
        if flags.is_boot and boot_until_us is not None and object_id not in self._timed:
            self._timed.add(object_id)
            heapq.heappush(self._due, (boot_until_us, object_id))
        if is_told and flags != before:
            self._tell(object_id, company, flags, now)

    def _tell(self, object_id: int, company: int, flags: ObjectFlags, now: int) -> None:
        self.stats.changes += 1
        values = {name: int(value) for name, value in msgspec.structs.asdict(flags).items()}
        data = {"object_id": str(object_id), "time": format_spaced(now, self._zone), **values}
        self._hub.publish(KIND, company_id=company, object_id=object_id, data=data)

    def _count(self) -> None:
        self.stats.known, self.stats.timed = len(self._told), len(self._timed)
