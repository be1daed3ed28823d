"""What is said of a mapping's events by code, as users see and change it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from terrazzo.database.port import Repository, Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.events.definition import MOST_CLEARED, UNDEFINED, EventDefinition, parse_event_definitions
from terrazzo.domain.mapping_row import RowKind
from terrazzo.errors import BadParameter, NotFound
from terrazzo.reasons import say


class DefinedEvent(NamedTuple):
    """An event of a mapping: its row's code and labels, and what is said of it."""

    code: str
    label_en: str
    label_cn: str
    said: EventDefinition


class EventDefinitions:
    """Reads and changes the column ``events`` of mappings, a code at a time."""

    def __init__(self, mappings: Repository) -> None:
        self._mappings = mappings
        self._turn = asyncio.Lock()

    async def of(self, actor: Actor, mapping: int | str) -> list[DefinedEvent]:
        """All events of a mapping, in the order of its rows.

        Raises:
            NotFound: no such mapping.
        """
        return defined_events(await self._mappings.item(actor, mapping))

    async def define(self, actor: Actor, mapping: int | str, code: str, values: Mapping[str, Any]) -> DefinedEvent:
        """Changes what is said of one code; what ``values`` doesn't name stays as it is.

        Raises:
            BadParameter: a value that can't be, or a code to clear that is no event of the mapping.
            NotFound: no such mapping, or it has no event of this code.
        """
        async with self._turn:
            row = await self._mappings.item(actor, mapping)
            known = {each.code: each for each in defined_events(row)}
            if code not in known:
                raise NotFound("code", code)
            if len(values.get("clears", ())) > MOST_CLEARED:
                raise BadParameter("clears", say("too_many_codes", most=MOST_CLEARED))
            for cleared in values.get("clears", ()):
                if cleared not in known:
                    raise BadParameter("clears", say("mapping_has_no_event", event=cleared))
            said = msgspec.to_builtins(known[code].said) | dict(values)
            events = {**(row["events"] or {}), code: said}
            row = await self._mappings.update(actor, row["id"], {"events": events})
        return next(each for each in defined_events(row) if each.code == code)


def defined_events(row: Row) -> list[DefinedEvent]:
    """The events of a mapping's record, in the order of its rows."""
    said = parse_event_definitions(row["events"] or {})
    cells = [[str(cell).strip() for cell in each[:4]] for each in row["script"] or () if len(each) > 3]
    events = [(code, label_en, label_cn) for code, label_en, label_cn, kind in cells if kind == RowKind.EVNT.value]
    return [DefinedEvent(*labels, said.get(labels[0], UNDEFINED)) for labels in events]
