"""The engine and the effect queue as the ingest sees them: one object that shapes messages and ends groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from sys import intern
from typing import Any

from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.expressions.functions import Value
from terrazzo.listeners import Listeners
from terrazzo.mapping.catalogue import MappingLimits, ObjectSpec, RetainerSpec
from terrazzo.mapping.effect_queue import PREFIX, EffectQueue
from terrazzo.mapping.engine import MappingEngine
from terrazzo.mapping.plan_maker import PlanMaker
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories.repository import ChangeListener, EntityRepository, RowChange
from terrazzo.ports.store import Notes, Record, TimeSeriesStore
from terrazzo.times import now_us

_OF_OBJECTS = (COMPANY, "mapping_id", "terminal_list", "is_available")


class ReportMapper:
    """Implements ``terrazzo.ingest.seams.MessageMapper``; follows objects, mappings and retainers.

    ``wanted`` tells when a group should be ended though no message came, and when there is room again. ``maker`` has to
    be started before the ingest.
    """

    def __init__(self, engine: MappingEngine, effect_queue: EffectQueue) -> None:
        self.engine = engine
        self.effect_queue = effect_queue
        self.maker = PlanMaker(engine.catalogue)
        self.plans = self.maker.plans
        self.when_ready = self.maker.when_ready
        self.lane = engine.catalogue.lane
        self.shape = engine.shape
        self.begin = engine.begin
        self.note_read = engine.note_read
        self.rows_of = engine.rows_of
        self.keep_up = engine.keep_up
        self.has_room_of = effect_queue.has_room_of
        self.wanted: Listeners[[]] = Listeners("groups to commit")
        effect_queue.room.listen(self.wanted.tell)

    @classmethod
    async def open(
        cls,
        store: TimeSeriesStore,
        entities: Entities,
        effect_queue: EffectQueue,
        limits: MappingLimits | None = None,
    ) -> ReportMapper:
        """Loads what is kept and all records, applies effects that an earlier run left, and follows changes.

        Raises:
            StoreUnavailable, Unavailable: the store or the database doesn't answer.
        """
        engine = MappingEngine(limits)
        notes = await store.notes("")
        engine.load(notes)
        await effect_queue.start({name: body for name, body in notes.items() if name.startswith(PREFIX)})
        mapper = cls(engine, effect_queue)
        watched: tuple[tuple[EntityRepository, ChangeListener], ...] = (
            (entities.mappings, mapper.on_mapping),
            (entities.objects, mapper.on_object),
            (entities.retainers, mapper.on_retainer),
        )
        for repository, hear in watched:
            repository.changes.listen(hear)
            if repository is entities.objects:
                async for columns in repository.every_column(_OF_OBJECTS):
                    engine.catalogue.load_objects(_objects(*columns))
                mapper.maker.on_changed()
                continue
            async for row in repository.every():
                hear(RowChange(row["id"], row["uid"], row))
        engine.forget_unknown(now_us())
        return mapper

    # What the ingest calls

    @property
    def has_room(self) -> bool:
        """Whether more effects may come: False while the database is too far behind."""
        return self.effect_queue.has_room

    @property
    def is_dirty(self) -> bool:
        """Whether there is something to commit, with or without messages."""
        return self.engine.is_dirty

    def take_records(self) -> list[Record]:
        """Records that no message made, to commit with the group that is sealed next."""
        return self.engine.take_records()

    def seal(self) -> Notes:
        """Ends a group: the notes that are committed with it."""
        sealed = self.engine.seal()
        return {**sealed.notes, **self.effect_queue.seal(sealed.effects)}

    def on_committed(self) -> None:
        """The ingest calls this after a commit: what was sealed is durable."""
        self.effect_queue.on_committed()

    # What others call

    def is_label_open(self, object_id: int, project_id: int, code: str) -> bool:
        """Whether a label is open."""
        labels = self.engine.catalogue.labels.get(object_id)
        return labels is not None and labels.is_open((project_id, code))

    async def close_label(self, object_id: int, project_id: int, code: str) -> None:
        """Closes a label by hand; returns when the database has it.

        Raises:
            NotFound: no such label is open.
        """
        await self.maker.prepare(object_id)
        self.engine.close_label(object_id, project_id, code, now_us())
        self.wanted.tell()
        await self.effect_queue.settled(self.effect_queue.last + 1)

    def remember(self, object_id: int, values: Mapping[str, Value]) -> None:
        """What was collected offline for an object, as it was known before."""
        self.engine.remember(object_id, values)

    async def on_collected(self, object_id: int, values: Mapping[str, Value], collected_us: int) -> None:
        """Something was collected offline for an object; as ``MappingEngine.collect``."""
        await self.maker.prepare(object_id)
        self.engine.collect(object_id, values, collected_us, now_us())
        self.wanted.tell()

    def on_mapping(self, changed: RowChange) -> None:
        """A mapping was made, changed or deleted."""
        row, catalogue = changed.row, self.engine.catalogue
        company_id = row[COMPANY] if row else 0
        catalogue.put_mapping(changed.record_id, row["script"] if row and row["is_available"] else None, company_id)
        catalogue.put_events(changed.record_id, row.get("events") if row else None, company_id)
        self.maker.on_changed()

    def on_object(self, changed: RowChange) -> None:
        """An object was made, changed or deleted."""
        if changed.row is None:
            self.engine.drop_object(changed.record_id, now_us())
            self.wanted.tell()
        else:
            self.engine.catalogue.put_object(_object_of(changed.row))
            self.maker.on_changed()

    def on_retainer(self, changed: RowChange) -> None:
        """A retainer script was made, changed, started, stopped or deleted."""
        row = changed.row
        script, company_id = (None, 0) if row is None else (row["script"] or (), row[COMPANY])
        self.engine.catalogue.scripts.put_retainer(changed.record_id, script, company_id)
        if row is None:
            self.engine.drop_retainer(changed.record_id, now_us())
            self.wanted.tell()
        else:
            self.engine.catalogue.put_retainer(_retainer_of(row))


def _object_of(row: Row) -> ObjectSpec:
    return next(_objects([row["id"]], *([row[name]] for name in _OF_OBJECTS)))


def _objects(
    ids: Sequence[int],
    company_ids: Sequence[int],
    mapping_ids: Sequence[int | None],
    terminals: Sequence[Sequence[str] | None],
    are_available: Sequence[int],
) -> Iterator[ObjectSpec]:
    """The objects of these ids and ``_OF_OBJECTS``, by column; uids of terminals are the ones that the registry has."""
    uids = (tuple(map(intern, each or ())) for each in terminals)
    return map(ObjectSpec, ids, company_ids, mapping_ids, uids, map(bool, are_available))


def _retainer_of(row: Mapping[str, Any]) -> RetainerSpec:
    return RetainerSpec(
        id=row["id"],
        uid=row["uid"],
        objects=tuple(int(key) for key in row["object_list"] or ()),
        script=tuple(tuple(cells) for cells in row["script"] or ()),
        is_active=bool(row["is_active"] and row["is_available"]),
    )
