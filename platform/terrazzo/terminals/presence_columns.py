"""What lists of terminals are found by in memory, in columns, kept up to date by what changes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.ports.bus import Presence
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_broker.hooks import Client

_GONE = -1  # in place of a company
_MOST_WAITING = 1_000  # changes that are not in the columns yet: some 2 ms of work
_FEW = 1_000  # records that are gone, which aren't worth a new column


class Columns(NamedTuple):
    """A moment's copy: terminals in the order of their record ids; some rows may be of terminals that are gone."""

    ids: array[int]
    companies: array[int]  # below 0: gone
    online: array[int]  # 0 or 1
    seen_us: array[int]  # the end of the last connection, 0: none; not of the present one


class PresenceColumns:
    """Each terminal's record id, company, whether it is connected, and when a former connection was heard of last.

    A login or a logout is noted, and costs a search by halves when somebody asks for a list; that copies some bytes for
    each terminal. Of records that are gone at most as many are kept as there are others, and a thousand.
    """

    def __init__(self, registry: Registry, presence: PresenceRegister) -> None:
        self._ids, self._companies = array("q"), array("q")
        self._online, self._seen_us = array("b"), array("q")
        self._connected: dict[int, bool] = {}  # by record id: what is not in the columns yet
        self._ended_us: dict[int, int] = {}  # the ends of connections among these, UTC microseconds
        self._gone = 0
        self._registry = registry
        terminals = sorted(registry.terminals(), key=attrgetter("id"))
        self._ids.extend([each.id for each in terminals])
        self._companies.extend([each.company_id for each in terminals])
        self._online.extend(bytes(len(terminals)))
        self._seen_us.frombytes(bytes(self._seen_us.itemsize * len(terminals)))
        for uid, time_us in presence.former():
            self._note_end(registry.terminal(uid), time_us)
        for client in presence.clients():
            self._on_presence(client, presence.presence(client.client_id))
        registry.terminal_changes.listen(self._on_record)
        presence.changes.listen(self._on_presence)

    def __len__(self) -> int:
        """How many terminals there are."""
        return len(self._ids) - self._gone

    def copy(self) -> Columns:
        """All as it is now; may be given to another thread."""
        self._note_changed()
        return Columns(self._ids[:], self._companies[:], self._online[:], self._seen_us[:])

    def _at(self, record_id: int) -> int | None:
        at = bisect_left(self._ids, record_id)
        return at if at < len(self._ids) and self._ids[at] == record_id else None

    def _on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        if before is not None and (after is None or after.id != before.id):
            self._connected.pop(before.id, None)
            self._ended_us.pop(before.id, None)
            self._drop(before.id)
        if after is None:
            return
        at = bisect_left(self._ids, after.id)
        if at == len(self._ids) or self._ids[at] != after.id:
            self._add(at, after)
        else:
            self._gone -= self._companies[at] == _GONE
            self._companies[at] = after.company_id

    def _add(self, at: int, terminal: Terminal) -> None:
        for column, value in zip(self._all(), (terminal.id, terminal.company_id, 0, 0), strict=True):
            column.insert(at, value)

    def _drop(self, record_id: int) -> None:
        at = self._at(record_id)
        if at is None or self._companies[at] == _GONE:
            return
        self._companies[at], self._online[at], self._seen_us[at] = _GONE, 0, 0
        self._gone += 1
        if self._gone > max(_FEW, len(self)):
            self._leave_out_the_gone()

    def _leave_out_the_gone(self) -> None:
        kept = [at for at, company_id in enumerate(self._companies) if company_id != _GONE]
        for column in self._all():
            column[:] = array(column.typecode, [column[at] for at in kept])
        self._gone = 0

    def _all(self) -> Iterable[array[int]]:
        return self._ids, self._companies, self._online, self._seen_us

    def _on_presence(self, client: Client, presence: Presence) -> None:
        terminal = self._registry.terminal(client.client_id)
        if terminal is not None:
            self._connected[terminal.id] = presence.online
            if not presence.online:
                self._ended_us[terminal.id] = presence.last_seen_us or 0
            if len(self._connected) >= _MOST_WAITING:
                self._note_changed()

    def _note_changed(self) -> None:
        """Brings the columns up to date."""
        for record_id, is_connected in self._connected.items():
            at = self._at(record_id)
            if at is not None and self._companies[at] != _GONE:
                self._online[at] = is_connected
                self._seen_us[at] = self._ended_us.get(record_id, self._seen_us[at])
        self._connected.clear()
        self._ended_us.clear()

    def _note_end(self, terminal: Terminal | None, time_us: int | None) -> None:
        at = None if terminal is None else self._at(terminal.id)
        if at is not None:
            self._seen_us[at] = time_us or 0
