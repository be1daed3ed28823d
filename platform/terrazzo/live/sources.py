"""Publishes what other parts tell as live frames: records, presence, changed terminals, steps of commands.

While nobody subscribes, each call costs one check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from terrazzo.database.port import Row
from terrazzo.domain.command import CommandStep
from terrazzo.domain.payload import MANY_BYTES
from terrazzo.domain.payloads.stored import is_pack, json_payload
from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import MARK, series_name_in, topic_of
from terrazzo.domain.terminal import Terminal
from terrazzo.live.feed import Feed
from terrazzo.live.frames import FrameEntry
from terrazzo.live.hub import LiveHub
from terrazzo.live.long_frames import LongFrames
from terrazzo.live.selector import LiveKind
from terrazzo.ports.bus import Presence
from terrazzo.ports.store import Record
from terrazzo.times import format_spaced, now_us
from terrazzo_broker.hooks import Client

_MOST_SERIES = 100_000  # whose feeds are remembered
_AT_ONCE = 64  # records
_SERIES = attrgetter("series")
_GRID, _MOSAIC = "g", "m"
_GRID_KIND, _MOSAIC_KIND = LiveKind.GRID.value, LiveKind.MOSAIC.value  # reading ``value`` takes a call


class RecordSource:
    """Publishes committed records: grid (``g/<uid>/...``) and mosaic (``m/<object_id>``).

    ``long``: makes the frames of long reports elsewhere; without, they are made when they are sent, as others are.
    """

    def __init__(self, hub: LiveHub, registry: Registry, *, zone: tzinfo, long: LongFrames | None = None) -> None:
        self._long = long
        self._hub = hub
        self._registry = registry
        self._zone = zone
        self._feeds: dict[str, tuple[Feed, ...]] = {}  # by series
        self._version = -1  # of the index that they are from
        registry.terminal_changes.listen(lambda before, after: self._feeds.clear())

    def on_records(self, records: Sequence[Record]) -> None:
        """Publishes a committed group; ``IngestPipeline.records`` tells this."""
        hub = self._hub
        if not hub.is_wanted:
            return
        if self._version != hub.index.version:
            self._version = hub.index.version
            self._feeds.clear()
        get = self._feeds.get
        for series, run in groupby(records, _SERIES):  # records of a terminal often come together
            feeds = get(series)
            if feeds is None:
                feeds = self._find(series)
            if feeds:
                self._publish(feeds, series, run)

    def _find(self, series: str) -> tuple[Feed, ...]:
        if len(self._feeds) >= _MOST_SERIES:
            self._feeds.clear()
        feeds = self._feeds[series] = self._look_up(series)
        return feeds

    def _look_up(self, series: str) -> tuple[Feed, ...]:
        name, _, rest = series.partition("/")
        if name == _GRID:
            terminal = self._registry.terminal_of_series(rest.partition("/")[0])
            if terminal is None:
                return ()
            return self._hub.index.find(LiveKind.GRID.value, terminal.company_id, None, terminal.uid)
        if name == _MOSAIC and rest.isdecimal():
            company = self._registry.object_company(int(rest))
            return () if company is None else self._hub.index.find(LiveKind.MOSAIC.value, company, int(rest), None)
        return ()

    def _publish(self, feeds: tuple[Feed, ...], series: str, run: Iterator[Record]) -> None:
        """Publishes records of one series, so many at once that the hub's bound holds in between."""
        kind, data = (_GRID_KIND, self._grid) if series.startswith("g/") else (_MOSAIC_KIND, self._mosaic)
        while some := list(islice(run, _AT_ONCE)):
            entries = [FrameEntry(kind, partial(data, each), size=len(each.body) + 100) for each in some]
            long = self._long
            if long is not None and kind is _GRID_KIND:
                for place, each in enumerate(some):
                    if len(each.body) > MANY_BYTES and is_pack(each.body):
                        entries[place] = self._wait_for(long, each, feeds)
            self._hub.append(feeds, entries)

    def _wait_for(self, long: LongFrames, record: Record, feeds: tuple[Feed, ...]) -> FrameEntry:
        entry = FrameEntry.of_long(
            _GRID_KIND,
            lambda json: self._grid(replace(record, body=json)),
            record.body,
            size=len(record.body) + 100,
        )
        terminal = self._registry.terminal_of_series(series_name_in(record.series))
        long.put(0 if terminal is None else terminal.company_id, entry, feeds)
        return entry

    def _grid(self, record: Record) -> dict[str, Any]:
        """The frame's data: the record as ``get_last_grid`` answers it, with its terminal's uid and topic."""
        topic = record.series if MARK not in record.series else topic_of(record.series)
        return {
            "terminal_id": topic.split("/", 2)[1],
            "topic": topic,
            "time": format_spaced(record.time_us, self._zone),
            "payload": json_payload(record.body),
        }

    def _mosaic(self, record: Record) -> dict[str, Any]:
        value = _decode(record.body)
        return {
            "object_id": record.series.partition("/")[2],
            "time": format_spaced(record.time_us, self._zone),
            "value": value,
        }


class TerminalSource:
    """Publishes terminals that connect or are gone, and changes of terminals' records."""

    def __init__(self, hub: LiveHub, *, zone: tzinfo) -> None:
        self._hub = hub
        self._zone = zone

    def on_presence(self, client: Client, presence: Presence) -> None:
        """Publishes ``online`` or ``offline``; ``PresenceRegister.changes`` tells this."""
        if not self._hub.is_wanted:
            return
        more: dict[str, Any] = {"address": presence.address, "protocol": presence.protocol}
        if not presence.online:
            more["reason"] = presence.disconnect_reason
        self._publish(client.identity.terminal, "online" if presence.online else "offline", more)

    def on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        """Publishes ``created``, ``changed`` or ``deleted``; ``Registry.terminal_changes`` tells this."""
        terminal = after or before
        if terminal is not None and self._hub.is_wanted:
            self._publish(terminal, "created" if before is None else "deleted" if after is None else "changed", {})

    def _publish(self, terminal: Terminal, change: str, more: dict[str, Any]) -> None:
        time = format_spaced(now_us(), self._zone)
        data = {"terminal_id": terminal.uid, "change": change, "time": time, **more}
        self._hub.publish(LiveKind.TERMINAL.value, company_id=terminal.company_id, terminal_id=terminal.uid, data=data)


class CommandSource:
    """Publishes each step of a command, once it is journaled."""

    def __init__(self, hub: LiveHub, *, zone: tzinfo) -> None:
        self._hub = hub
        self._zone = zone

    def on_step(self, row: Row, change: CommandStep) -> None:
        """Publishes a step; ``CommandDispatcher.steps`` tells this."""
        object_id = row["object_id"]
        data = {
            "uid": row["uid"],
            "terminal_id": row["terminal_id"],
            "object_id": None if object_id is None else str(object_id),
            "command": row["command"],
            "value": row["value"],
            "state": change.state.value,
            "time": format_spaced(change.time_us, self._zone),
            "reason": change.reason,
            "answer": row["answer"] if change.answer is not None else None,
        }
        whose = {"object_id": object_id, "terminal_id": row["terminal_id"]}
        self._hub.publish(LiveKind.COMMAND.value, company_id=row["company_id"], data=data, **whose)


def _decode(body: bytes) -> dict[str, Any]:
    found = msgspec.msgpack.decode(body) if body[0] >= 0x80 else msgspec.json.decode(body)
    return dict(found)
