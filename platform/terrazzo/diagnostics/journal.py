"""The journal of refusals: everything that refuses terminals tells it; it counts, folds, keeps, and tells others.

One refusal costs a lookup and a small tuple, whoever it is of. Listeners, the log and the disk get what has been folded
in the meantime, in batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from terrazzo.diagnostics.book import RefusalBook
from terrazzo.diagnostics.recent import FoldKey, RecentRefusals
from terrazzo.diagnostics.refusal_file import KeptRefusals, RefusalFile
from terrazzo.domain.refusals.entry import RefusalEntry, ToldRefusal
from terrazzo.domain.refusals.login_refused import LoginRefused
from terrazzo.domain.refusals.reasons import REASONS, Reason
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.listeners import Listeners
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_broker.log_text import visible
from terrazzo_broker.peer_address import share_of
from terrazzo_broker.refusals import Refusal

TELL_S = 0.5  # how long refusals are folded before listeners are told of them
WRITE_S = 5.0  # and before they are written
MOST_TOUCHED = 20_000  # changes that wait for the listeners, or for the disk
MOST_WRITTEN = 1_000  # terminals and addresses that are written at a time
DETAIL_CHARS = 120

_log = logging.getLogger(__name__)


class RefusalStats(msgspec.Struct):
    """Counters for ``/metrics``; ``reasons``: refusals since the start."""

    kept: int = 0  # entries, now
    evicted: int = 0  # entries that went for newer ones of others
    untold: int = 0  # changes that listeners were not told of one by one
    write_failures: int = 0
    reasons: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(REASONS, 0))


_Touched = tuple[int | str, FoldKey]
"""A terminal's record id, or a share where no terminal is known; and which of its entries."""


class RefusalJournal:
    """Keeps why terminals were refused; ``changes`` tells of it.

    Args:
        registry: whose client ids are whose.
        file: where refusals are kept; None keeps them in memory alone.
        most: entries of all terminals together.
        clock: UTC microseconds.
    """

    def __init__(
        self, registry: Registry, file: RefusalFile | None, *, most: int, clock: Callable[[], int] = now_us
    ) -> None:
        self.stats = RefusalStats()
        self.changes: Listeners[Sequence[ToldRefusal]] = Listeners("refusals")
        self._registry = registry
        self._file = file
        self._clock = clock
        self._book = RefusalBook(most)
        self._touched: dict[_Touched, None] = {}
        self._unwritten: dict[int | str, None] = {}
        self._logs = {name: SparseLog(_log) for name in REASONS}
        self._failure_log = SparseLog(_log)
        self._running: list[Task] = []
        registry.terminal_changes.listen(self._on_record)

    # What others tell

    def on_login_refused(self, refused: LoginRefused) -> None:
        """Notes a refused login; ``TerminalLogin.refused`` tells this."""
        self._note(
            refused.reason,
            refused.terminal,
            refused.address,
            is_own=refused.is_proven or refused.is_known,
            code=refused.reason.code,
            client_id=refused.client_id,
            detail=refused.detail,
            protocol=refused.protocol,
        )

    def on_refusal(self, refusal: Refusal) -> None:
        """Notes what the broker has refused or ended; ``Broker`` tells this."""
        terminal = self._registry.terminal(refusal.client_id) if refusal.client_id else None
        if terminal is not None and refusal.owner not in (None, terminal.owner):
            self.stats.reasons[refusal.cause] += refusal.times  # of another's terminal, which had the uid before
            return
        self._note(
            REASONS[refusal.cause],
            terminal,
            refusal.address,
            is_own=refusal.owner is not None,
            code=refusal.reason,
            client_id=refusal.client_id,
            detail=refusal.detail,
            protocol=refusal.protocol,
            times=refusal.times,
        )

    def _note(
        self,
        reason: Reason,
        terminal: Terminal | None,
        address: str,
        *,
        is_own: bool,
        code: int,
        client_id: str,
        detail: str,
        protocol: int,
        times: int = 1,
    ) -> None:
        self.stats.reasons[reason.name] += times
        now, share = self._clock(), share_of(address)
        shown = visible(detail[:DETAIL_CHARS]) if detail else ""
        entry = RefusalEntry(reason.name, address, now, now, times, code, protocol, is_own, shown)
        key = share, reason.name
        if terminal is not None:
            self._book.add(terminal.company_id, terminal.id, key, entry)
            self._count_kept()
        else:
            self._book.add_at(key, entry)
        self._touch(share if terminal is None else terminal.id, key)
        if not reason.is_ordinary and self._logs[reason.name].is_due:
            name = visible(client_id[:64]) or "a peer"
            text = f"{reason.text}: {shown}" if shown else reason.text
            self._logs[reason.name].warning("%s from %s: %s", name, address, text)

    def _count_kept(self) -> None:
        self.stats.kept, self.stats.evicted = self._book.count, self._book.evicted

    def _touch(self, whose: int | str, key: FoldKey) -> None:
        """Remembers what has changed, for the listeners and the disk."""
        if len(self._unwritten) < MOST_TOUCHED:
            self._unwritten[whose] = None
        if len(self._touched) < MOST_TOUCHED:
            self._touched[whose, key] = None
        else:
            self.stats.untold += 1

    # What others ask

    def of_terminal(self, terminal_id: int) -> list[RefusalEntry]:
        """The last refusals of a terminal (its record id), the last one first."""
        return list(self._book.of_terminal(terminal_id) or ())

    def last_refused_us(self, terminal_id: int) -> int | None:
        """When a terminal (its record id) was refused last, UTC microseconds, what happens in order aside."""
        entries = self._book.of_terminal(terminal_id) or ()
        return max((each.last_us for each in entries if not REASONS[each.reason].is_ordinary), default=None)

    def refused_terminals(self) -> Iterator[tuple[int, int]]:
        """The record ids of terminals of which ``last_refused_us`` knows, with what it says."""
        for whose in self._book.every():
            if isinstance(whose, int) and (time_us := self.last_refused_us(whose)) is not None:
                yield whose, time_us

    def last_refused(self, terminal_id: int) -> tuple[int, str, str] | None:
        """When, where and for which reason a terminal was refused last, as ``last_refused_us`` has it."""
        entries = self._book.of_terminal(terminal_id)
        if not entries:  # as it is with most, when all are asked about
            return None
        found = [each for each in entries if not REASONS[each.reason].is_ordinary]
        if not found:
            return None
        last = max(found, key=lambda each: each.last_us)
        return last.last_us, last.address, last.reason

    def last_address(self, terminal_id: int) -> str:
        """Where a terminal was refused last, as ``last_refused`` has it; empty: nowhere."""
        found = self.last_refused(terminal_id)
        return "" if found is None else found[1]

    def at_addresses(self, addresses: Iterable[str]) -> list[RefusalEntry]:
        """What was refused at addresses before it was known who is there: TLS, PROXY headers, WebSocket; the last one
        first."""
        shares = dict.fromkeys(share_of(each) for each in addresses if each)
        found = [entry for share in shares for entry in self._book.of_address(share) or ()]
        return sorted(found, key=lambda each: -each.last_us)

    # Life

    async def start(self, tasks: Tasks) -> None:
        """Reads what was kept, and starts to tell and to write."""
        if self._file is not None:
            self._take_up(await self._file.load())
            self._count_kept()
        self._running = [
            tasks.repeat("refusals told", TELL_S, self.tell, OnFailure.RESTART),
            tasks.repeat("refusals written", WRITE_S, self.write, OnFailure.RESTART),
        ]

    async def stop(self) -> None:
        """Stops, and writes what is left."""
        for task in self._running:
            await task.stop()
        while self._unwritten and await self.write():
            continue
        if self._file is not None:
            self._file.close()

    def _take_up(self, kept: Iterable[KeptRefusals]) -> None:
        """Takes up what the file says of addresses, and of terminals that there still are, of the same company."""
        for each in kept:
            terminal = self._registry.terminal_by_id(each.terminal_id)
            known = [entry for entry in each.entries if entry.reason in REASONS]
            if each.share:
                for entry in known:
                    self._book.add_at((each.share, entry.reason), entry)
            elif terminal is not None and terminal.company_id == each.company_id:
                for entry in known:
                    self._book.add(each.company_id, terminal.id, (share_of(entry.address), entry.reason), entry)

    async def tell(self) -> None:
        """Tells listeners of what has changed."""
        touched, self._touched = self._touched, {}
        if touched and self.changes.are_wanted:
            self.changes.tell([told for each in touched for told in self._told(each)])

    def _told(self, touched: _Touched) -> Iterable[ToldRefusal]:
        whose, key = touched
        recent = self._recent(whose)
        entry = None if recent is None else recent.get(key)
        terminal = self._registry.terminal_by_id(whose) if isinstance(whose, int) else None
        if entry is not None and (terminal is not None or isinstance(whose, str)):
            yield ToldRefusal(terminal, entry)

    def _recent(self, whose: int | str) -> RecentRefusals | None:
        return self._book.of_terminal(whose) if isinstance(whose, int) else self._book.of_address(whose)

    async def write(self) -> bool:
        """Writes some of what has changed; False where the disk takes nothing."""
        if self._file is None:
            self._unwritten.clear()
        if self._file is None or not self._unwritten:
            return True
        some = [whose for whose, _ in zip(self._unwritten, range(MOST_WRITTEN), strict=False)]
        for whose in some:
            del self._unwritten[whose]
        is_written = False
        try:
            await self._file.append([self._kept(each) for each in some])
            is_written = True
            if self._file.is_long:
                await self._file.rewrite([self._kept(each) for each in self._book.every()])
        except OSError as error:
            self.stats.write_failures += 1
            self._failure_log.warning("refusals can't be written: %s; a restart would forget them", error)
        finally:
            if not is_written:  # the disk has not taken it, or it was interrupted
                self._unwritten.update(dict.fromkeys(some))
        return is_written

    def _kept(self, whose: int | str) -> KeptRefusals:
        """Refusals as they stand in the file, oldest first; none where they are forgotten."""
        entries = tuple(self._recent(whose) or ())[::-1]
        if isinstance(whose, str):
            return KeptRefusals(share=whose, entries=entries)
        terminal = self._registry.terminal_by_id(whose)
        if terminal is None:
            return KeptRefusals(terminal_id=whose)
        return KeptRefusals(terminal_id=whose, company_id=terminal.company_id, uid=terminal.uid, entries=entries)

    def _on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        """Forgets the refusals of a terminal that is deleted, or goes to another company."""
        is_gone = before is not None and (after is None or after.company_id != before.company_id)
        if before is not None and is_gone and self._book.forget(before.id):
            self._unwritten[before.id] = None
            self._count_kept()
