"""One object under one mapping, without store and database: messages in, records, events and labels out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from terrazzo.domain.payload import flatten
from terrazzo.mapping.catalogue import ObjectSpec, RetainerSpec
from terrazzo.mapping.effects import Effect, EventRaised
from terrazzo.mapping.engine import MappingEngine
from terrazzo.ports.store import Record

T0 = 1_700_000_000_000_000
SECOND = 1_000_000
OBJECT, MAPPING, COMPANY = 17, 3, 1


class Stand:
    """Times are seconds after ``T0``."""

    def __init__(self, rows: Sequence[Any], *, terminals: Sequence[str] = ("t1", "t2")) -> None:
        self.engine = MappingEngine()
        self.terminals = tuple(terminals)
        self.notes: dict[str, bytes] = {}
        self.map(rows)
        self.place()

    @property
    def catalogue(self):
        return self.engine.catalogue

    def map(self, rows: Sequence[Any]) -> None:
        self.catalogue.put_mapping(MAPPING, list(rows))

    def place(self, object_id: int = OBJECT, **changes: Any) -> None:
        given = {"id": object_id, "company_id": COMPANY, "mapping_id": MAPPING, "terminals": self.terminals, **changes}
        self.catalogue.put_object(ObjectSpec(**given))

    def retain(self, *script: tuple[str, ...], is_active: bool = True, number: int = 5) -> None:
        spec = RetainerSpec(id=number, uid=f"r{number}", objects=(OBJECT,), script=script, is_active=is_active)
        self.catalogue.put_retainer(spec)

    def take(self, uid: str, points: dict[str, Any], at_s: float) -> list[Record]:
        """The records of a message."""
        mosaic: list[Record] = []
        plans = self.catalogue.plans(uid)
        if plans:
            self.engine.shape(plans, flatten(points), T0 + round(at_s * SECOND), uid, mosaic)
        return mosaic

    def report(self, points: dict[str, Any], at_s: float = 0, uid: str = "t1") -> dict[str, Any] | None:
        """The variables that a message makes a record of, None without a record."""
        records = self.take(uid, points, at_s)
        assert len(records) <= 1
        for record in records:
            assert (record.series, record.time_us) == (f"m/{OBJECT}", T0 + round(at_s * SECOND))
            return msgspec.msgpack.decode(record.body)
        return None

    def effects(self) -> list[Effect]:
        """What happened since the last call; the notes are kept as a commit would."""
        sealed = self.engine.seal()
        for name, body in sealed.notes.items():
            if body is None:
                self.notes.pop(name, None)
            else:
                self.notes[name] = body
        return list(sealed.effects)

    def events(self) -> list[str]:
        """The codes of the events since the last call."""
        return [effect.code for effect in self.effects() if isinstance(effect, EventRaised)]

    def restart(self, rows: Sequence[Any]) -> Stand:
        """Another engine on what is kept."""
        self.effects()
        again = Stand.__new__(Stand)
        again.engine, again.terminals, again.notes = MappingEngine(), self.terminals, dict(self.notes)
        again.engine.load(again.notes)
        again.map(rows)
        again.place()
        return again
