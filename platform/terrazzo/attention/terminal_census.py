"""``TerminalCensus``: one walk over all terminals, which says for each company how many are away, silent or refused.

Terminals that went at one address for one cause are folded into a flood, as a site whose line is cut has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
_RUN = 200  # terminals that are looked at without a look at the clock


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


class _Group:
    """Terminals that stopped alike, while they are counted."""

    __slots__ = ("first_us", "last_us", "terminals", "uids")

    def __init__(self, since_us: int) -> None:
        self.terminals = 0
        self.first_us = self.last_us = since_us
        self.uids: list[str] = []

    def add(self, uid: str, since_us: int) -> None:
        self.terminals += 1
        if since_us < self.first_us:
            self.first_us = since_us
        elif since_us > self.last_us:
            self.last_us = since_us
        if len(self.uids) < FLOOD:
            self.uids.append(uid)


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
        self._groups: dict[tuple[str, str, str], _Group] = {}

    def add(self, stopped: Stopped, site: str) -> None:
        """Counts a terminal that stopped; ``site``: of its address."""
        state = stopped.state
        if state == "away":
            self.away += 1
        elif state == "silent":
            self.silent += 1
        else:
            self.refused += 1
        self.entries.append(stopped)
        if len(self.entries) >= _PRUNE:
            self.entries = sorted(self.entries, reverse=True)[:MOST_ENTRIES]
        key = state, site, stopped.cause
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                return
            group = self._groups[key] = _Group(stopped.since_us)
        group.add(stopped.uid, stopped.since_us)

    def floods(self) -> list[Flood]:
        """The largest first."""
        found = [(key, each) for key, each in self._groups.items() if each.terminals >= FLOOD]
        found.sort(key=lambda each: -each[1].terminals)
        return [
            Flood(*key, each.terminals, each.first_us, each.last_us, tuple(each.uids))
            for key, each in found[:MOST_FLOODS]
        ]

    def first(self, state: str, count: int) -> list[Stopped]:
        """The latest of a state that belong to no flood."""
        told = {(each.state, each.site, each.cause) for each in self.floods()}
        alone = [each for each in self.entries if (each.state, share_of(each.address), each.cause) not in told]
        return sorted((each for each in alone if each.state == state), reverse=True)[:count]


class TerminalStates:
    """What the census asks about each terminal, by what other parts know.

    Args:
        heard: of a terminal (uid): whether it is connected, when it was heard of, and its last report (UTC
            microseconds); called once for each.
        ended: where the present or last connection of a terminal (uid) comes from, and why it ended; for those that
            stopped.
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
        is_online, seen_us, reported_us = self._heard(terminal.uid)
        if is_online:
            if reported_us is None or reported_us >= now_us - SILENT_US:
                return True, None
            return True, Stopped(reported_us, terminal.uid, terminal.name, "silent", *self._ended(terminal.uid))
        last_us = seen_us or 0
        if reported_us is not None and reported_us > last_us:
            last_us = reported_us
        refused = self._last_refused(terminal.id)
        if refused is not None and refused[0] > max(last_us, now_us - REFUSED_US):
            time_us, address, cause = refused
            return False, Stopped(time_us, terminal.uid, terminal.name, "refused", address, cause)
        if not last_us or last_us >= now_us - AWAY_US:
            return False, None
        return False, Stopped(last_us, terminal.uid, terminal.name, "away", *self._ended(terminal.uid))


class _Walk:
    """One walk over all terminals: of all companies together, and of each of ``companies``."""

    def __init__(self, registry: Registry, states: TerminalStates, companies: Iterable[int], now_us: int) -> None:
        self.everybody = CompanyCensus()
        self.wanted = {company_id: CompanyCensus() for company_id in companies}
        self._states = states
        self._out = registry.out_of_service
        self._now_us = now_us
        self._sites: dict[str, str] = {}  # of addresses, which many terminals share

    def count(self, terminals: Sequence[Terminal]) -> None:
        """Goes on over some of them."""
        everybody, find, look, now_us = self.everybody, self.wanted.get, self._states.look, self._now_us
        for terminal in terminals:
            if not (terminal.is_available and terminal.company_is_available):
                continue
            is_online, stopped = look(terminal, now_us)
            own = find(terminal.company_id)
            is_out = terminal.uid in self._out
            everybody.total += 1
            everybody.online += is_online
            everybody.out_of_service += is_out
            if own is not None:
                own.total += 1
                own.online += is_online
                own.out_of_service += is_out
            if stopped is not None and not is_out:
                site = self._site(stopped.address)
                everybody.add(stopped, site)
                if own is not None:
                    own.add(stopped, site)

    def _site(self, address: str) -> str:
        found = self._sites.get(address)
        if found is None:
            found = self._sites[address] = share_of(address) if address else ""
        return found


async def take_census(
    registry: Registry, states: TerminalStates, companies: Iterable[int], now_us: int
) -> tuple[CompanyCensus, dict[int, CompanyCensus]]:
    """Walks over all terminals in turns of the loop; of all companies together, and of each of ``companies``."""
    walk, pauses = _Walk(registry, states, companies, now_us), LoopPauses()
    terminals = list(registry.terminals())
    for start in range(0, len(terminals), _RUN):
        walk.count(terminals[start : start + _RUN])
        await pauses.pause()
    return walk.everybody, walk.wanted
