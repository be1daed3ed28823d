"""What is shown of an object besides its record: ``is_online``, ``is_boot``, ``is_retainer``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from terrazzo.bus import MessageBus
from terrazzo.terminals.registry import Registry
from terrazzo.times import now_us


class ObjectFlags(msgspec.Struct, frozen=True, kw_only=True):
    """One object's flags."""

    is_online: bool = False  # any of its terminals is connected
    is_boot: bool = False  # it runs, as far as can be told
    is_retainer: bool = False  # a label is open on it


class FlagSource(Protocol):
    """Where flags come from."""

    async def of(self, object_ids: Sequence[int]) -> Mapping[int, ObjectFlags]:
        """The flags of each of these objects."""


class TerminalFlags:
    """Flags as an object's terminals tell: connected, and heard of within ``boot_timeout_s``."""

    def __init__(
        self,
        registry: Registry,
        bus: MessageBus,
        *,
        boot_timeout_s: float = 300,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._registry = registry
        self._bus = bus
        self._boot_timeout_us = int(boot_timeout_s * 1_000_000)
        self._clock = clock

    async def of(self, object_ids: Sequence[int]) -> Mapping[int, ObjectFlags]:
        """The flags of each of these objects; no label is open as far as terminals can tell."""
        since_us = self._clock() - self._boot_timeout_us
        return {object_id: self._flags(object_id, since_us) for object_id in object_ids}

    def _flags(self, object_id: int, since_us: int) -> ObjectFlags:
        known = [self._bus.presence(uid) for uid in self._registry.object_terminals(object_id)]
        return ObjectFlags(
            is_online=any(each.online for each in known),
            is_boot=any((each.last_telemetry_us or 0) >= since_us for each in known),
        )
