"""A mapping tried on sample payloads: what would be recorded and raised. Nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from terrazzo.domain.mapping_table import parse_table
from terrazzo.domain.payload import Points, take_points
from terrazzo.expressions.functions import Value
from terrazzo.mapping.catalogue import MappingLimits, ObjectSpec
from terrazzo.mapping.effects import EventRaised
from terrazzo.mapping.engine import MappingEngine
from terrazzo.ports.store import Record

_OBJECT = 1


class Sample(NamedTuple):
    """One message of a terminal."""

    uid: str
    points: Points
    time_us: int


class Trial(NamedTuple):
    """What the samples made, and the variables after the last one."""

    records: list[tuple[int, dict[str, Value]]]  # UTC microseconds, code -> value
    events: list[EventRaised]
    variables: dict[str, Value]
    sources: list[int]  # of each record the place of its sample, from 0


def try_mapping(rows: Any, terminals: Sequence[str], samples: Iterable[Sample], limits: MappingLimits) -> Trial:
    """Runs the samples in their order through a fresh object with these terminals.

    Raises:
        ValueError: the rows are no mapping; row, column and reason.
        Reject: a sample is no payload.
    """
    parse_table(rows)  # the catalogue would only log it
    engine = MappingEngine(limits)
    engine.catalogue.put_mapping(_OBJECT, rows)
    spec = ObjectSpec(id=_OBJECT, company_id=0, mapping_id=_OBJECT, terminals=tuple(terminals))
    engine.catalogue.put_object(spec)
    mosaic: list[Record] = []
    reports: list[Record] = []
    sources: list[int] = []
    engine.begin(reports)
    for place, sample in enumerate(samples):
        plans = engine.catalogue.plans(sample.uid)
        if plans:
            body = msgspec.json.encode(sample.points)
            points = take_points(body, limits.points)
            reports.append(Record(f"g/{sample.uid}/r", sample.time_us, body))
            engine.shape(plans, points, sample.time_us, sample.uid, mosaic)
            sources += [place] * (len(mosaic) - len(sources))
    state = engine.state(_OBJECT)
    return Trial(
        [(record.time_us, msgspec.msgpack.decode(record.body)) for record in mosaic],
        [effect for effect in engine.seal().effects if isinstance(effect, EventRaised)],
        {} if state is None else state.variables(),
        sources,
    )
