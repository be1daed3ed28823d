"""An object's reports run through its mapping once more, in order of time. Pure: no store, no clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from terrazzo.domain.payload import PointLimits, Points, Reject, take_points
from terrazzo.domain.report_topic import series_name_in, uid_of
from terrazzo.expressions.functions import Value
from terrazzo.mapping.catalogue import MappingCatalogue, Plan
from terrazzo.mapping.effects import Effect, EventRaised, EventsCleared, LabelOpened
from terrazzo.mapping.engine import MappingEngine
from terrazzo.mapping.labels import Key, Labels
from terrazzo.mapping.replay.completeness import Completeness
from terrazzo.mapping.replay.label_merge import Interval
from terrazzo.mapping.state import ObjectState
from terrazzo.ports.store import Record

MOST_HAPPENINGS = 200_000  # events and labels of one replay, all in memory at its end

ReadPoints = Callable[[bytes, PointLimits], Awaitable[Points]]
"""The points of a report; raises ``Reject``."""


class TooMuchHappened(Exception):
    """More events and labels than one replay should replace."""


class RerunOutcome(NamedTuple):
    """What the records of the range made.

    ``intervals``: of labels, those that reach into the range. ``cleared``: what has cleared events, by their index.
    """

    events: list[EventRaised]
    intervals: list[Interval]
    cleared: Mapping[int, EventsCleared] = {}


class Rerun:
    """One run: first what was before the range (``begin`` ends that), then the range, to the end.

    Args:
        catalogue: of the object alone, with nothing remembered; it is used up.
    """

    def __init__(self, catalogue: MappingCatalogue, object_id: int) -> None:
        self._engine = MappingEngine()
        self._engine.catalogue = catalogue
        self._object_id = object_id
        bound, spec = catalogue.bound(object_id), catalogue.object(object_id)
        self._known = Completeness(bound, spec.terminals) if bound and spec else None
        self._is_begun = False
        self._mosaic: list[Record] = []
        self._made = self._measured = 0  # bytes of them, and how many that is of
        self._reports: list[Record] = []  # since the last ``gather``
        self._engine.begin(self._reports)
        self._events: list[EventRaised] = []
        self._open_events: dict[str, list[int]] = {}  # by code, their indexes
        self._cleared: dict[int, EventsCleared] = {}
        self._open: dict[Key, LabelOpened] = {}
        self._intervals: list[Interval] = []
        self.skipped = 0
        """Messages that went into no object live, and don't here."""

    def take(self, record: Record) -> None:
        """Runs the next report, of series ``g/<uid>/...``, through the mapping."""
        uid = uid_of(series_name_in(record.series))
        plans = self._engine.catalogue.plans(uid)
        if not plans:
            return
        try:
            points = take_points(record.body, self._engine.catalogue.limits.points)
        except Exception:  # noqa: BLE001 - as with the ingest: what is wrong there must not stop other messages
            self._skip(record)
        else:
            self._shape(plans, record, uid, points)

    async def take_long(self, record: Record, read: ReadPoints) -> None:
        """As ``take``, of a report whose points are read elsewhere; nobody has it run anything else meanwhile.

        Raises:
            Throttled: too much of the company is read already.
        """
        uid = uid_of(series_name_in(record.series))
        plans = self._engine.catalogue.plans(uid)
        if not plans:
            return
        try:
            points = await read(record.body, self._engine.catalogue.limits.points)
        except Reject:
            self._skip(record)
        else:
            self._engine.note_read(record, points)
            self._shape(plans, record, uid, points)

    def _skip(self, record: Record) -> None:
        self._reports.append(record)
        self.skipped += 1

    def _shape(self, plans: Sequence[Plan], record: Record, uid: str, points: Points) -> None:
        self._reports.append(record)
        try:
            self._engine.shape(plans, points, record.time_us, uid, self._mosaic)
        except Exception:  # noqa: BLE001 - as above
            self.skipped += 1
            return
        self._engine.keep_up(plans, 1)
        if not self._is_begun and self._known is not None:
            self._known.see(uid, points, record.time_us)

    @property
    def is_known(self) -> bool:
        """Whether the reports so far say how things stand, whatever came before them."""
        return self._known is not None and self._known.is_all

    def collect(self, values: Mapping[str, Value], time_us: int) -> None:
        """Something was collected offline; ``values``: the latest of each project, by each of the project's names."""
        self._engine.collect(self._object_id, values, time_us, time_us)

    def begin(self) -> list[str]:
        """From now on it counts; the codes of which the reports so far don't say all."""
        self.gather()
        self._is_begun = True
        self._forget()
        return self._known.end() if self._known is not None else []

    @property
    def made(self) -> int:
        """Bytes of the mosaic records since ``gather`` was called last."""
        self._made += sum(len(record.body) for record in self._mosaic[self._measured :])
        self._measured = len(self._mosaic)
        return self._made

    def gather(self) -> list[Record]:
        """The mosaic records since the last call.

        Raises:
            TooMuchHappened: since ``begin``.
        """
        mosaic, self._mosaic = [*self._mosaic, *self._engine.take_records()], []
        self._made = self._measured = 0
        for effect in self._engine.seal().effects:
            self._keep(effect)
        self._reports = []
        self._engine.begin(self._reports)
        if not self._is_begun:
            self._forget()
        if len(self._events) + len(self._intervals) > MOST_HAPPENINGS:
            raise TooMuchHappened
        return mosaic

    def _keep(self, effect: Effect) -> None:
        if isinstance(effect, EventRaised):
            self._open_events.setdefault(effect.code, []).append(len(self._events))
            self._events.append(effect)
        elif isinstance(effect, EventsCleared):
            self._cleared |= dict.fromkeys(self._open_events.pop(effect.code, ()), effect)
        elif isinstance(effect, LabelOpened):
            self._open[effect.project_id, effect.code] = effect
        else:
            opened = self._open.pop((effect.project_id, effect.code), None)
            if opened is not None:
                self._intervals.append(Interval(opened, effect.closed_us))

    def _forget(self) -> None:
        for known in (self._events, self._open_events, self._cleared, self._intervals):
            known.clear()

    def outcome(self) -> RerunOutcome:
        """What happened in the range, after the last ``gather``."""
        still_open = (Interval(opened, None) for opened in self._open.values())
        return RerunOutcome(self._events, [*self._intervals, *still_open], self._cleared)

    def state(self) -> tuple[ObjectState | None, Labels]:
        """What is known of the object at the end."""
        return self._engine.state(self._object_id), self._engine.catalogue.labels[self._object_id]
