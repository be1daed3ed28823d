"""Objects and terminals as InfluxDB's databases, measurements and tags.

=========== ======================= ============================ ==================================
database    measurement             tags                         fields
=========== ======================= ============================ ==================================
``mosaic``  an object, by its name  ``object_id``                its variables
``grid``    a terminal, by its uid  ``terminal_id``, ``channel``  the points that it reports
=========== ======================= ============================ ==================================

Objects of one name are one measurement. ``object:17`` is the object of that id, whatever its name is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from terrazzo.api.kernel.scope import sees
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import EVERYTHING, Conditions
from terrazzo.domain.actor import Actor
from terrazzo.errors import NotFound
from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.syntax import Measurement
from terrazzo.loop_pauses import LoopPauses

MOSAIC, GRID = "mosaic", "grid"
TAGS: Mapping[str, tuple[str, ...]] = {MOSAIC: ("object_id",), GRID: ("channel", "terminal_id")}
"""The keys of tags of each database."""

MOST_SERIES = 10_000
BY_ID = "object:"
_PAGE = 1_000


class SeriesRef(NamedTuple):
    """One series of a measurement; ``series`` is its name in the store."""

    measurement: str
    tags: Mapping[str, str]
    series: str


class Measurements:
    """What there is for one actor.

    Each method raises ``QueryError`` where there is more than ``MOST_SERIES``.
    """

    def __init__(self, services: Services, actor: Actor) -> None:
        self._services = services
        self._actor = actor

    async def find(self, wanted: Measurement | None, database: str) -> list[SeriesRef]:
        """The series of the measurements that are meant, sorted; None: of all."""
        if database == GRID:
            return await self._terminals(wanted)
        return await self._objects(wanted)

    async def names(self, database: str) -> list[str]:
        """The names of all measurements, sorted."""
        if database == GRID:
            return await self._uids()
        return sorted({ref.measurement for ref in await self._objects(None)})

    async def _objects(self, wanted: Measurement | None) -> list[SeriesRef]:
        if wanted is None or not isinstance(wanted.name, str):
            found = await self._page(EVERYTHING)
            if wanted is not None and not isinstance(wanted.name, str):
                found = [each for each in found if wanted.name.finds(each[0])]
        else:
            found = await self._page(Conditions(all_of=(("name", "=", wanted.name),)))
            if not found and wanted.name.startswith(BY_ID):
                found = await self._by_id(wanted.name)
        refs = (SeriesRef(name, {"object_id": str(number)}, f"m/{number}") for name, number in found)
        return sorted(refs, key=lambda ref: (ref.measurement, ref.tags["object_id"]))

    async def _page(self, conditions: Conditions) -> list[tuple[str, int]]:
        """Names and ids of objects."""
        found: list[tuple[str, int]] = []
        objects, index, pauses = self._services.entities.objects, 1, LoopPauses()
        while True:
            page = await objects.page(self._actor, page_index=index, page_size=_PAGE, conditions=conditions)
            found += [(str(row["name"]), int(row["id"])) for row in page.rows]
            if len(page.rows) < _PAGE:
                return found
            _check_count(len(found))
            index += 1
            await pauses.pause()

    async def _by_id(self, name: str) -> list[tuple[str, int]]:
        number = name.removeprefix(BY_ID)
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            return []
        try:
            return [(name, int((await self._services.entities.objects.item(self._actor, int(number)))["id"]))]
        except NotFound:
            return []

    async def _terminals(self, wanted: Measurement | None) -> list[SeriesRef]:
        if wanted is not None and isinstance(wanted.name, str):
            uids = [wanted.name]
        else:
            uids = [uid for uid in await self._uids() if wanted is None or self._selects(wanted, uid)]
        found: list[SeriesRef] = []
        for uid in uids:
            found += await self._channels(uid)
            _check_count(len(found))
        return found

    @staticmethod
    def _selects(wanted: Measurement, uid: str) -> bool:
        return not isinstance(wanted.name, str) and wanted.name.finds(uid)

    async def _uids(self) -> list[str]:
        uids, pauses = [], LoopPauses()
        for terminal in list(self._services.registry.terminals()):
            if sees(self._actor, terminal):
                uids.append(terminal.uid)
            await pauses.pause()
        _check_count(len(uids))
        return sorted(uids)

    async def _channels(self, uid: str) -> list[SeriesRef]:
        terminal = self._services.registry.terminal(uid)
        if terminal is None or not sees(self._actor, terminal):
            return []
        own = f"g/{terminal.series_name}/"
        names = await self._services.store.series(own)
        return [SeriesRef(uid, {"channel": name.removeprefix(own), "terminal_id": uid}, name) for name in names]


def _check_count(count: int) -> None:
    if count > MOST_SERIES:
        raise QueryError(f"max-select-series limit exceeded: ({count}/{MOST_SERIES}); name the measurement")
