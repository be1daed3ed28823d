"""The flags of objects, worked out from memory: ``is_online``, ``is_boot``, ``is_retainer``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from terrazzo.domain.mapping_row import RowKind
from terrazzo.domain.mapping_table import MappingTable
from terrazzo.domain.registry import Registry
from terrazzo.expressions.functions import Value
from terrazzo.ports.bus import MessageBus
from terrazzo.times import now_us

BOOT = "BOOT"
_OFF = frozenset({"", "0", "0.0", "false", "off", "no"})  # texts by which a variable says that nothing runs


class ObjectFlags(msgspec.Struct, frozen=True, kw_only=True):
    """One object's flags."""

    is_online: bool = False  # any of its terminals is connected
    is_boot: bool = False  # it runs, as far as can be told
    is_retainer: bool = False  # a label is open on it


class FlagSource(Protocol):
    """Answers with the flags of objects (``ObjectFlagReader``)."""

    async def of(self, object_ids: Sequence[int]) -> Mapping[int, ObjectFlags]:
        """The flags of each of these objects."""


class MappedObject(Protocol):
    """An object's variables in the mapping engine; ``newest_us`` is the time of its newest record, UTC microseconds."""

    newest_us: int
    table: MappingTable

    def value(self, code: str) -> Value:
        """The newest value of a variable; None where it has none."""


class ObjectStates(Protocol):
    """The mapping engine, as flags need it."""

    def state(self, object_id: int) -> MappedObject | None:
        """An object's variables; None where it isn't mapped."""

    def open_labels(self, object_id: int) -> int:
        """How many labels of an object are open."""


class Look(NamedTuple):
    """An object's flags, and until when ``is_boot`` holds without a further report (UTC microseconds)."""

    flags: ObjectFlags
    boot_until_us: int | None  # None: as long as the variable says so


class ObjectFlagReader:
    """Works out flags from presence, variables and open labels.

    Args:
        registry: the objects and their terminals.
        bus: knows which terminals are connected.
        states: objects' variables and open labels.
        boot_timeout_s: how long an object that has no variable ``BOOT`` counts as running after a report.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        registry: Registry,
        bus: MessageBus,
        states: ObjectStates,
        *,
        boot_timeout_s: float = 300,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._registry = registry
        self._bus = bus
        self._states = states
        self._boot_timeout_us = int(boot_timeout_s * 1_000_000)
        self._clock = clock

    async def of(self, object_ids: Sequence[int]) -> Mapping[int, ObjectFlags]:
        """The flags of each of these objects."""
        now = self._clock()
        return {object_id: self.look(object_id, now).flags for object_id in object_ids}

    def look(self, object_id: int, now_us: int) -> Look:
        """The flags of one object at ``now_us``."""
        known = [self._bus.presence(uid) for uid in self._registry.object_terminals(object_id)]
        state, boot_until_us = self._states.state(object_id), None
        if state is not None and has_boot(state):
            is_boot = is_running(state.value(BOOT))
        else:
            reports = [each.last_telemetry_us or 0 for each in known]
            # after a restart only the mapping remembers, by the terminal's clock, which may be ahead
            reports.append(0 if state is None else min(state.newest_us, now_us))
            boot_until_us = max(reports) + self._boot_timeout_us
            is_boot = boot_until_us > now_us
        flags = ObjectFlags(
            is_online=any(each.online for each in known),
            is_boot=is_boot,
            is_retainer=self._states.open_labels(object_id) > 0,
        )
        return Look(flags, boot_until_us)

    def has_boot(self, object_id: int) -> bool:
        """Whether the object has a variable ``BOOT``."""
        state = self._states.state(object_id)
        return state is not None and has_boot(state)


def has_boot(state: MappedObject) -> bool:
    """Whether ``BOOT`` is a variable of the mapping."""
    place = state.table.places.get(BOOT)
    return place is not None and state.table.rows[place].kind is not RowKind.EVNT


def is_running(value: Value) -> bool:
    """Whether a value of ``BOOT`` means running: null, zero, false and the texts for them mean not."""
    if isinstance(value, str):
        return value.strip().lower() not in _OFF
    return bool(value)
