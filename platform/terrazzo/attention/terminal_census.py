"""``TerminalCensus``: one walk over all terminals, which says for each company how many are away, silent or refused.

Terminals that went at one address for one cause are folded into a flood, as a site whose line is cut has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.loop_pauses import LoopPauses
from terrazzo.times import DAY_US
from terrazzo_broker.peer_address import share_of

AWAY_US = 5 * 60 * 1_000_000  # not connected, and not heard of for so long
SILENT_US = 3_600 * 1_000_000  # connected, and has reported nothing for so long, after it had reported
REFUSED_US = DAY_US  # refused within so long, and not heard of since
MOST_ENTRIES = 50
FLOOD = 5  # terminals of one site and cause that are told as one
MOST_FLOODS = 20
_MOST_GROUPS = 2_000  # of a company: sites with causes; terminals of further ones are counted and listed only
_PRUNE = 20 * MOST_ENTRIES


class Heard(NamedTuple):
    """What is known of a terminal's connection, times in UTC microseconds.

    ``address`` and ``cause`` are those of the last connection and its end, where it isn't connected.
    """

    is_online: bool
    seen_us: int | None
    reported_us: int | None


class Stopped(NamedTuple):
    """A terminal that stopped: since when, UTC microseconds, how, where it was, and why its connection ended."""

    since_us: int
    uid: str
    name: str
    state: str  # away | silent | refused
    address: str
    cause: str


class Flood(NamedTuple):
    """Terminals that stopped alike: how many, since when, and some of them. ``site``: an address (IPv6: its /64)."""

    state: str
    site: str
    cause: str
    terminals: int
    first_us: int
    last_us: int
    uids: tuple[str, ...]


class CompanyCensus:
    """The terminals of one company, or of all."""

    def __init__(self) -> None:
        self.total = 0
        self.online = 0
        self.away = 0
        self.silent = 0
        self.refused = 0
        self.out_of_service = 0
        self.entries: list[Stopped] = []
        self._groups: dict[tuple[str, str, str], Flood] = {}

    def add(self, stopped: Stopped) -> None:
        """Counts a terminal that stopped."""
        setattr(self, stopped.state, getattr(self, stopped.state) + 1)
        self.entries.append(stopped)
        if len(self.entries) >= _PRUNE:
            self.entries = sorted(self.entries, reverse=True)[:MOST_ENTRIES]
        self._fold(stopped)

    def _fold(self, stopped: Stopped) -> None:
        site = share_of(stopped.address) if stopped.address else ""
        key, since = (stopped.state, site, stopped.cause), stopped.since_us
        found = self._groups.get(key)
        if found is not None:
            uids = found.uids if len(found.uids) >= FLOOD else (*found.uids, stopped.uid)
            times = min(found.first_us, since), max(found.last_us, since)
            self._groups[key] = Flood(*key, found.terminals + 1, *times, uids)
        elif len(self._groups) < _MOST_GROUPS:
            self._groups[key] = Flood(*key, 1, since, since, (stopped.uid,))

    def floods(self) -> list[Flood]:
        """The largest first."""
        found = [each for each in self._groups.values() if each.terminals >= FLOOD]
        return sorted(found, key=lambda each: -each.terminals)[:MOST_FLOODS]

    def first(self, state: str, count: int) -> list[Stopped]:
        """The latest of a state that belong to no flood."""
        told = {(each.state, each.site, each.cause) for each in self.floods()}
        alone = [each for each in self.entries if (each.state, share_of(each.address), each.cause) not in told]
        return sorted((each for each in alone if each.state == state), reverse=True)[:count]


class TerminalStates:
    """What the census asks about each terminal, by what other parts know.

    Args:
        heard: of a terminal (uid); called once for each.
        ended: where the last connection of a terminal (uid) came from, and why it ended; for those that stopped.
        last_refused_us: when a terminal (record id) was refused last, and for what; None: not.
    """

    def __init__(
        self,
        heard: Callable[[str], tuple[bool, int | None, int | None]],
        ended: Callable[[str], tuple[str, str]],
        last_refused: Callable[[int], tuple[int, str, str] | None],
    ) -> None:
        self._heard = heard
        self._ended = ended
        self._last_refused = last_refused

    def look(self, terminal: Terminal, now_us: int) -> tuple[bool, Stopped | None]:
        """Whether a terminal is connected, and how it stopped, if it has."""
        heard = Heard(*self._heard(terminal.uid))
        last_us = max(heard.seen_us or 0, heard.reported_us or 0)
        refused = self._last_refused(terminal.id)
        if refused is not None and not heard.is_online and refused[0] > max(last_us, now_us - REFUSED_US):
            time_us, address, cause = refused
            return False, Stopped(time_us, terminal.uid, terminal.name, "refused", address, cause)
        if heard.is_online:
            is_silent = heard.reported_us is not None and heard.reported_us < now_us - SILENT_US
            where = "silent", *self._ended(terminal.uid)
            return True, Stopped(heard.reported_us or 0, terminal.uid, terminal.name, *where) if is_silent else None
        if not last_us or last_us >= now_us - AWAY_US:
            return False, None
        return False, Stopped(last_us, terminal.uid, terminal.name, "away", *self._ended(terminal.uid))


async def take_census(
    registry: Registry, states: TerminalStates, companies: Iterable[int], now_us: int
) -> tuple[CompanyCensus, dict[int, CompanyCensus]]:
    """Walks over all terminals in turns of the loop; of all companies together, and of each of ``companies``."""
    pauses, everybody = LoopPauses(), CompanyCensus()
    wanted = {company_id: CompanyCensus() for company_id in companies}
    for terminal in list(registry.terminals()):
        if not terminal.is_admitted:
            continue
        is_online, stopped = states.look(terminal, now_us)
        is_out = terminal.uid in registry.out_of_service
        for census in (everybody, wanted.get(terminal.company_id)):
            if census is None:
                continue
            census.total += 1
            census.online += is_online
            census.out_of_service += is_out
            if stopped is not None and not is_out:
                census.add(stopped)
        await pauses.pause()
    return everybody, wanted
