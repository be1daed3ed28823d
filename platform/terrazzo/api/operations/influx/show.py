"""What there is: SHOW DATABASES, MEASUREMENTS, TAG KEYS and the like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.influx.measurements import TAGS, Measurements, SeriesRef
from terrazzo.domain.payload import Reject, decode, flatten
from terrazzo.influxql.answers import Listing
from terrazzo.influxql.conditions import may_hold
from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.syntax import Cut, Show
from terrazzo.loop_pauses import LoopPauses
from terrazzo.mosaic.body import parse_mosaic
from terrazzo.ports.store import Record, Value
from terrazzo.times import LATEST_US

_MOST_READ = 1_000  # series whose fields are looked up
_POLICY = ("autogen", "0s", "168h0m0s", 1, True)
_POLICY_COLUMNS = ("name", "duration", "shardGroupDuration", "replicaN", "default")


class ShowReader:
    """Answers the SHOWs of one actor."""

    def __init__(self, services: Services, measurements: Measurements) -> None:
        self._services = services
        self._measurements = measurements

    async def answer(self, show: Show, database: str) -> list[Listing]:
        """The names that are asked for.

        Raises:
            QueryError: there is no such database, or there are too many series.
            StoreUnavailable: the store can't tell.
        """
        if show.kind == "DATABASES":
            return [Listing("databases", ["name"], [[name] for name in sorted(TAGS)])]
        database = show.database or database
        if database not in TAGS:
            raise QueryError(f"database not found: {database[:100]}" if database else "database name required")
        if show.kind == "RETENTION POLICIES":
            return [Listing("", _POLICY_COLUMNS, [_POLICY])]
        found = await self._listed(show, database)
        return [_counted(found)] if show.counts else found

    async def _listed(self, show: Show, database: str) -> list[Listing]:
        if show.kind == "MEASUREMENTS":
            return await self._of_measurements(show, database)
        refs = await self._series(show, database)
        match show.kind:
            case "TAG KEYS":
                keys = [key for key in TAGS[database] if show.keys is None or show.keys.selects(key)]
                return [Listing(name, ["tagKey"], _cut([[key] for key in keys], show.cut)) for name in _names(refs)]
            case "TAG VALUES":
                return _tag_values(refs, show)
            case "SERIES":
                keys = sorted({_key(ref) for ref in refs})
                return [Listing("", ["key"], _cut([[key] for key in keys], show.cut))] if keys else []
        return await self._fields(refs, show)

    async def _of_measurements(self, show: Show, database: str) -> list[Listing]:
        if show.where is None:
            names = await self._measurements.names(database)
        else:
            refs = await self._measurements.find(None, database)
            names = _names([ref for ref in refs if may_hold(show.where, ref.tags)])
        found = [[name] for name in names if show.keys is None or show.keys.selects(name)]
        found = _cut(found, show.cut)
        return [Listing("measurements", ["name"], found)] if found else []

    async def _series(self, show: Show, database: str) -> list[SeriesRef]:
        found: dict[str, SeriesRef] = {}
        for source in show.sources or (None,):
            refs = await self._measurements.find(source, database)
            found |= {ref.series: ref for ref in refs if may_hold(show.where, ref.tags)}
        return list(found.values())

    async def _fields(self, refs: Sequence[SeriesRef], show: Show) -> list[Listing]:
        if len(refs) > _MOST_READ:
            raise QueryError(f"max-select-series limit exceeded: ({len(refs)}/{_MOST_READ}); name the measurement")
        fields: dict[str, dict[str, str]] = {}
        for ref in refs:
            kinds = await self._kinds(ref)
            fields.setdefault(ref.measurement, {}).update(kinds)
        return [
            Listing(name, ["fieldKey", "fieldType"], _cut([[key, kind] for key, kind in sorted(of.items())], show.cut))
            for name, of in fields.items()
            if of
        ]

    async def _kinds(self, ref: SeriesRef) -> dict[str, str]:
        """The kind of each field, as its newest value has it; a number where that isn't known."""
        store, pauses = self._services.store, LoopPauses()
        names = await store.names(ref.series, 0, LATEST_US)
        if ref.series.startswith("m/"):
            newest = await store.latest_each(ref.series, names)
            kinds = {}
            for name, record in newest.items():
                kinds[name] = _kind(parse_mosaic(record.body).get(name))
                await pauses.pause()
        else:
            kinds = {
                name: _kind(value) for record in await store.latest([ref.series], 1) for name, value in _points(record)
            }
        return {name: kinds.get(name, "float") for name in names}


def _points(record: Record) -> Iterable[tuple[str, Value]]:
    try:
        return flatten(decode(record.body)).items()
    except (Reject, msgspec.MsgspecError):
        return ()


def _kind(value: Any) -> str:
    return "string" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "float"


def _tag_values(refs: Sequence[SeriesRef], show: Show) -> list[Listing]:
    pairs: dict[str, set[tuple[str, str]]] = {}
    for ref in refs:
        chosen = {(key, value) for key, value in ref.tags.items() if show.keys is None or show.keys.selects(key)}
        pairs.setdefault(ref.measurement, set()).update(chosen)
    return [
        Listing(name, ["key", "value"], _cut(sorted(map(list, found)), show.cut))
        for name, found in pairs.items()
        if found
    ]


def _names(refs: Iterable[SeriesRef]) -> list[str]:
    return sorted({ref.measurement for ref in refs})


def _key(ref: SeriesRef) -> str:
    tags = ",".join(f"{_escaped(name)}={_escaped(value)}" for name, value in sorted(ref.tags.items()))
    return f"{_escaped(ref.measurement)},{tags}"


def _escaped(text: str) -> str:
    for sign in ("\\", ",", " ", "="):
        text = text.replace(sign, "\\" + sign)
    return text


def _cut(values: list[list[str]], cut: Cut) -> list[list[str]]:
    return values[cut.offset : cut.offset + cut.limit if cut.limit else None]


def _counted(found: Sequence[Listing]) -> Listing:
    return Listing("", ["cardinality estimation"], [[sum(len(listing.values) for listing in found)]])
