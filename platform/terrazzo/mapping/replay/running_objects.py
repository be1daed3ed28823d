"""The running platform as a replay sees it: how an object is mapped now, and its state, which a replay may renew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from terrazzo.errors import Unavailable
from terrazzo.mapping.catalogue import BoundMapping, MappingCatalogue
from terrazzo.mapping.labels import Labels
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.mapping.state import ObjectState, encode
from terrazzo.ports.store import Notes
from terrazzo.reasons import say

_FLUSHED_WITHIN_S = 10.0
_SETTLED_WITHIN_S = 30.0
_STILL_FOR_S = 120.0


Stand = tuple[bytes, bytes | None]
"""What is known of an object, and how its labels stand."""


class Subject(msgspec.Struct, frozen=True):
    """An object as it is mapped at one moment. ``rules``: the retainers that run on it."""

    object_id: int
    bound: BoundMapping
    terminals: tuple[str, ...]
    rules: frozenset[int]
    catalogue: MappingCatalogue


class Decoded(Protocol):
    """The port to the ingest: what it has decoded and not committed yet."""

    async def is_flushed(self, timeout_s: float) -> bool:
        """Whether all that is decoded by now is stored within that time."""


class RunningObjects:
    """The mapping and the ingest of this process."""

    def __init__(self, mapper: ReportMapper, ingest: Decoded) -> None:
        self._mapper = mapper
        self._ingest = ingest

    def subject(self, object_id: int) -> Subject | None:
        """An object, with a catalogue of its own that remembers nothing; None where it isn't mapped."""
        catalogue = self._mapper.engine.catalogue
        bound, spec, alone = catalogue.bound(object_id), catalogue.object(object_id), catalogue.alone(object_id)
        if bound is None or spec is None or alone is None:
            return None
        rules = frozenset(rule.project_id for some in bound.rules.values() for rule in some)
        return Subject(object_id, bound, spec.terminals, rules, alone)

    async def prepare(self, object_id: int) -> None:
        """Returns when an object's plans are there: large ones take long to make."""
        await self._mapper.maker.prepare(object_id)

    def is_same(self, subject: Subject) -> bool:
        """Whether the object is still mapped as it was then."""
        return self._mapper.engine.catalogue.bound(subject.object_id) is subject.bound

    async def settled(self) -> None:
        """Returns when all events and labels of what is committed are in the database.

        Raises:
            Unavailable: they aren't within half a minute.
        """
        effect_queue = self._mapper.effect_queue
        try:
            async with asyncio.timeout(_SETTLED_WITHIN_S):
                await effect_queue.settled(effect_queue.last)
        except TimeoutError:
            raise Unavailable(say("events_not_stored")) from None

    @asynccontextmanager
    async def standing_still(self, subject: Subject) -> AsyncIterator[None]:
        """Reports of the object's terminals wait meanwhile, others don't; those before are committed.

        Raises:
            Unavailable: they aren't within ten seconds, or the terminals would have to wait for too long.
        """
        maker = self._mapper.maker
        maker.hold(subject.terminals)
        try:
            async with asyncio.timeout(_STILL_FOR_S):
                if not await self._ingest.is_flushed(_FLUSHED_WITHIN_S):
                    raise Unavailable(say("reports_not_committed"))
                yield
        except TimeoutError:
            raise Unavailable(say("replay_takes_too_long", seconds=_STILL_FOR_S)) from None
        finally:
            maker.release(subject.terminals)

    def stand(self, subject: Subject) -> Stand:
        """What differs when the state of an object that stands still has moved on."""
        state = subject.bound.state
        known = state.values, state.times, state.edges, state.marks, state.derived_us
        return encode(known), self._mapper.engine.catalogue.labels[subject.object_id].note()

    def labels(self, object_id: int) -> Labels:
        """The states of the object's labels."""
        return self._mapper.engine.catalogue.labels[object_id]

    def adopt(self, object_id: int, state: ObjectState, labels: Labels) -> Notes:
        """Renews what is known of an object; the notes that have to be written for it, at once."""
        return self._mapper.engine.adopt(object_id, state, labels)
