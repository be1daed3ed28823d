"""Runs firmware campaigns: submits ``AXUpgrade`` wave by wave, follows each terminal, ends campaigns. One task.

Companies take turns, and so do the campaigns of each: a turn is a change of the record, and some commands. A terminal
or a campaign with a fault of its own rests; the others go on.

Reports and command steps change the items in memory at once; the task writes them to the database. What a crash loses
of that is read again from the command journal and the terminals' last reports when the next start loads the campaign.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from terrazzo.campaigns.catch_up import CatchUp, points_of
from terrazzo.campaigns.rests import Rests
from terrazzo.campaigns.terminal_records import CampaignTerminalRecords, limits_of, terms_of
from terrazzo.campaigns.terminal_reports import reported_version, upgrade_notice
from terrazzo.company_queue import CompanyQueue
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.domain.campaigns.item import Item, ItemState
from terrazzo.domain.campaigns.rollout import FOLLOWED, CampaignState, Rollout
from terrazzo.domain.command import (
    CAMPAIGN_ABORTED,
    CAMPAIGN_PAUSED,
    CommandRequest,
    CommandStep,
)
from terrazzo.domain.command_payload import Firmware
from terrazzo.domain.registry import Registry
from terrazzo.errors import BadParameter, Conflict, NotFound, Throttled, Unavailable
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.repositories.campaigns import CampaignRepository
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.bus import Presence
from terrazzo.ports.store import Record, StoreUnavailable, TimeSeriesStore
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_broker.hooks import Client

_log = logging.getLogger(__name__)
_faults_log = SparseLog(_log)

_TICK_S = 0.5
_AT_ONCE = 100  # commands of a campaign's turn, terminals that are looked at in one
_SAVED_AT_ONCE = 500  # terminals of one transaction
_TOGETHER = 25  # commands of one transaction: each is a sync of the disk, which everybody's reports wait for


class Dispatcher(Protocol):
    """The command dispatcher, as campaigns need it."""

    async def submit_all(self, actor: Actor, orders: Sequence[CommandRequest]) -> list[Row]:
        """Journals commands, all or none, and sends them; their records. Raises as ``CommandDispatcher.submit_all``."""

    def recall(self, terminal_id: str, uid: str, reason: str) -> bool:
        """Ends a command that was not sent yet; False where it may be with the terminal already."""


class CampaignStats(msgspec.Struct):
    """Counters for ``/metrics``; ``running`` is how many campaigns run now, ``terminals`` counts steps by state."""

    running: int = 0
    faults: int = 0  # campaigns, and terminals of campaigns, that failed for no reason known, and rest
    terminals: dict[str, int] = msgspec.field(default_factory=lambda: {state.value: 0 for state in ItemState})


class CampaignRunner:
    """Runs all campaigns that have begun and not ended. ``take_up`` before terminals connect, then ``start``.

    Args:
        repository: the campaigns' records; their changes are followed.
        terminal_records: the campaigns' terminals in the database.
        registry: the terminals.
        commands: submits and recalls commands.
        store: where reports of before this start are read.
        tasks: runs the task.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        repository: CampaignRepository,
        terminal_records: CampaignTerminalRecords,
        *,
        registry: Registry,
        commands: Dispatcher,
        store: TimeSeriesStore,
        tasks: Tasks,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = CampaignStats()
        self.terminal_records = terminal_records
        self._repository = repository
        self._registry = registry
        self._commands = commands
        self._store = store
        self._clock = clock
        self._rollouts: dict[int, Rollout] = {}
        self._of: dict[str, list[Rollout]] = {}  # by terminal
        self._behind: dict[int, CatchUp] = {}  # by rollout: those whose earlier commands and reports are not all read
        self._changed: dict[int, Row | None] = {}  # records that the task has not looked at: one each
        self._turns: CompanyQueue[int] = CompanyQueue()  # ids of campaigns that the task is to look at
        self._rests: Rests[int] = Rests(clock)  # of campaigns
        self._item_rests: Rests[tuple[int, str]] = Rests(clock)  # of their terminals, by campaign and uid
        self._wake = asyncio.Event()
        self._tasks = tasks
        self._task: Task | None = None
        repository.changes.listen(self._on_changed)

    async def take_up(self) -> None:
        """Loads the campaigns that have not ended; before terminals may connect, so that no report is missed."""
        for number in await self.terminal_records.followed():
            row = await self._repository.item(SYSTEM, number)
            try:
                await self._take_up(row)
            except (Unavailable, StoreUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one: the platform starts
                self._changed[number] = row  # the task tries again
                self._rest(number, self._company_of(number, row), error)

    async def start(self) -> None:
        """Starts the task, which submits commands and writes the terminals' states until ``stop``."""
        self._wake.set()
        self._task = self._tasks.spawn("campaigns", self._run, OnFailure.RESTART)

    async def stop(self) -> None:
        """Stops the task and writes the states that are not written yet."""
        if self._task is not None:
            await self._task.stop()
        for rollout in self._rollouts.values():
            try:
                while await self._save(rollout):
                    pass
            except Unavailable as error:
                _log.warning("the last steps of campaigns are not written: %s", error)
                break
            except Exception as error:  # noqa: BLE001 - the others' are written
                _log.error("campaign %d: its last steps are not written: %r", rollout.id, error)

    @property
    def is_wanted(self) -> bool:
        """Whether a campaign is followed, so that steps of commands have to be told."""
        return bool(self._rollouts)

    def on_records(self, records: Sequence[Record]) -> None:
        """Takes a committed group of records: reports on ``v`` and ``n`` of terminals in campaigns count."""
        if not self._of:
            return
        for record in records:
            kind, _, rest = record.series.partition("/")
            name, _, channel = rest.partition("/")
            if kind != "g" or channel not in ("v", "n"):
                continue
            terminal = self._registry.terminal_of_series(name)
            for rollout in () if terminal is None else self._of.get(terminal.uid, ()):
                if terminal is not None and rollout.company_id == terminal.company_id:
                    self._hear(rollout, terminal.uid, channel, record)

    def on_step(self, row: Row, change: CommandStep) -> None:
        """``CommandDispatcher.steps`` tells this: the command's record, and the step that was journaled."""
        uid = row["terminal_id"]
        for rollout, item in self._items(uid):
            item.on_step(change.uid, change.state, change.reason, terms=rollout.terms, now_us=self._clock())
            self._wake.set()

    def on_presence(self, client: Client, presence: Presence) -> None:
        """``PresenceRegister.changes`` tells this when a terminal has connected, or is gone."""
        if presence.online:
            for _, item in self._items(client.client_id):
                item.on_reconnect()

    def on_download(self, terminal_id: str, file: str) -> None:
        """``SignedLinks.downloads`` tells this: a terminal begins to download a file (both by uid)."""
        for rollout, item in self._items(terminal_id):
            if file in rollout.file:
                item.on_download(terms=rollout.terms, now_us=self._clock())
                self._wake.set()

    def _items(self, uid: str) -> list[tuple[Rollout, Item]]:
        return [(rollout, rollout.items[uid]) for rollout in self._of.get(uid, ())]

    def _hear(self, rollout: Rollout, uid: str, channel: str, record: Record) -> None:
        """Applies a terminal's report on channel ``v`` (versions) or ``n`` (notices) to its item."""
        item, unit, now = rollout.items[uid], rollout.terms.unit, self._clock()
        before = item.state
        points = points_of(record)
        if channel == "v":
            version = reported_version(points, unit)
            if version is not None:
                item.on_version(version, terms=rollout.terms, now_us=now)
        elif (notice := upgrade_notice(points, unit)) is not None:
            item.on_notice(notice, terms=rollout.terms, now_us=now)
        if item.state is not before:
            self._wake.set()

    def _on_changed(self, changed: RowChange) -> None:
        self._changed[changed.record_id] = changed.row
        self._rests.end(changed.record_id)  # what was wrong with it may be mended
        self._wake.set()

    # The task

    async def _run(self) -> None:
        """The task. After a failure it goes on from memory; idempotency keys keep a command from being given twice."""
        while True:
            await self._take_turns()
            try:
                async with asyncio.timeout(_TICK_S):
                    await self._wake.wait()
            except TimeoutError:
                pass  # time itself ends attempts

    async def _take_turns(self) -> None:
        """Looks at each campaign once, and again at those that have more to do or of which something was heard."""
        pauses = LoopPauses()
        self._line_up()
        while (number := self._turns.take()) is not None:
            await self._take_turn(number)
            await pauses.pause()
            if self._wake.is_set():
                self._line_up()

    def _line_up(self) -> None:
        """All campaigns wait for their turns; those whose records have changed come first of their companies'."""
        self._wake.clear()
        for number, row in self._changed.items():
            self._turns.put(self._company_of(number, row), number, is_first=True)
        for rollout in self._rollouts.values():
            self._turns.put(rollout.company_id, rollout.id)

    def _company_of(self, number: int, row: Row | None) -> int:
        """A campaign's company; 0 where its record is gone and it is not followed."""
        rollout = self._rollouts.get(number)
        if rollout is not None:
            return rollout.company_id
        return 0 if row is None else int(row.get("permission_company_id") or 0)

    async def _take_turn(self, number: int) -> None:
        """A campaign's turn: what is wrong with it is nobody else's."""
        company_id = self._company_of(number, self._changed.get(number))
        if self._rests.is_resting(number):
            return
        begun = at_work.begin(Work("campaign", company_id))
        try:
            await self._take_change(number)
            rollout = self._rollouts.get(number)
            if rollout is not None and await self._advance(rollout):
                self._turns.put(company_id, number)
        except (Unavailable, StoreUnavailable):
            raise
        except Throttled as error:  # its company has too much to do
            _faults_log.warning("campaign %d goes on later: %s", number, error)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one
            self._rest(number, company_id, error)
        else:
            self._rests.end(number)
        finally:
            at_work.end(begun)

    def _rest(self, number: int, company_id: int, error: Exception) -> None:
        self.stats.faults += 1
        self._rests.begin(number)
        _faults_log.error("campaign %d of company %d failed and rests: %r", number, company_id, error)

    async def _take_change(self, number: int) -> None:
        """Takes over a campaign's record, if it has changed."""
        if number not in self._changed:
            return
        row, rollout = self._changed[number], self._rollouts.get(number)
        if row is None or CampaignState(row["state"]) not in FOLLOWED:
            if rollout is not None:
                await self._drop(rollout, deleted=row is None)
        elif rollout is None:
            await self._take_up(row)
        else:
            self._follow(rollout, row)
        if self._changed.get(number) is row:
            del self._changed[number]

    async def _take_up(self, row: Row) -> None:
        rollout = await self.terminal_records.load(row)
        self._rollouts[rollout.id] = rollout
        self._count()
        pauses = LoopPauses()
        for count, uid in enumerate(rollout.items):
            self._of.setdefault(uid, []).append(rollout)
            if count % _AT_ONCE == 0:
                await pauses.pause()
        self._behind[rollout.id] = CatchUp(
            rollout,
            records=self.terminal_records,
            registry=self._registry,
            store=self._store,
            hear=self._hear,
            clock=self._clock,
        )

    def _follow(self, rollout: Rollout, row: Row) -> None:
        """Takes over a changed record: terms, limits, and the state, with which commands may have to be recalled."""
        rollout.terms, rollout.limits = terms_of(row), limits_of(row)
        state = CampaignState(row["state"])
        if state is rollout.state:
            return
        rollout.state = state
        self._count()
        if state is CampaignState.ABORTED:
            rollout.abort(row["reason"] or CAMPAIGN_ABORTED)
        rollout.begin_recall()

    def _recall(self, rollout: Rollout) -> bool:
        """Recalls some unsent commands of a campaign that was paused or aborted; whether there are more."""
        reason = CAMPAIGN_PAUSED if rollout.state is CampaignState.PAUSED else CAMPAIGN_ABORTED
        for item in rollout.take_unsent(_AT_ONCE):
            uid = item.command_uid
            item.command_uid = ""  # so that its end is no failure
            if self._commands.recall(item.terminal_id, uid, reason):
                item.recall(reason)
            else:
                item.command_uid = uid
        has_more = rollout.explain(_AT_ONCE)
        return has_more or rollout.is_recalling

    async def _advance(self, rollout: Rollout) -> bool:
        """Gives some commands, ends what is over, and writes some of what has changed; whether there is more to do."""
        if (behind := self._behind.get(rollout.id)) is not None:
            if not await behind.go_on():
                return True
            del self._behind[rollout.id]
        has_more = rollout.check_times(self._clock(), _AT_ONCE)
        if rollout.state is not CampaignState.RUNNING:
            has_more = self._recall(rollout) or has_more
        else:
            if rollout.open_wave():
                await self._repository.set_wave(SYSTEM, rollout.id, rollout.wave)
            verdict = rollout.verdict()
            if verdict is None:
                has_more = await self._give(rollout) or has_more
            elif not await self._save(rollout):  # who reads that it has ended finds all terminals where they are
                await self._end(rollout, verdict.state, verdict.reason)
        has_more = await self._save(rollout) or has_more
        if rollout.is_over and not has_more:
            await self._drop(rollout)
        return has_more

    async def _give(self, rollout: Rollout) -> bool:
        """Gives commands of one turn; whether more are due."""
        due = self._due(rollout)
        for start in range(0, min(len(due), _AT_ONCE), _TOGETHER):
            if rollout.id in self._changed:
                return False  # paused or aborted meanwhile, perhaps: that is its next turn
            await self._give_some(rollout, due[start : min(start + _TOGETHER, _AT_ONCE)])
        return len(due) > _AT_ONCE

    def _due(self, rollout: Rollout) -> list[Item]:
        """The terminals whose commands are given next, one more than in one turn at most; those that failed last."""
        rests, fresh, failed = self._item_rests, list[Item](), list[Item]()
        for item in rollout.due():
            key = rollout.id, item.terminal_id
            if not rests.has_failed(key):
                fresh.append(item)
            elif len(failed) <= _AT_ONCE and not rests.is_resting(key):
                failed.append(item)
            if len(fresh) > _AT_ONCE:
                break
        return [*fresh, *failed][: _AT_ONCE + 1]

    async def _give_some(self, rollout: Rollout, items: Sequence[Item]) -> None:
        """Gives commands with one transaction, where none of the terminals has failed; otherwise each by itself."""
        is_sound = not any(self._item_rests.has_failed((rollout.id, item.terminal_id)) for item in items)
        if len(items) > 1 and is_sound:
            try:
                rows = await self._commands.submit_all(_on_behalf(rollout), [_order(rollout, item) for item in items])
            except (Unavailable, StoreUnavailable, Throttled):
                raise
            except Exception as error:  # noqa: BLE001 - of whichever terminal: one by one it is found
                _log.info("campaign %d: %d commands are given one by one: %r", rollout.id, len(items), error)
            else:
                for item, row in zip(items, rows, strict=True):
                    self._take_given(rollout, item, row)
                return
        for item in items:
            if rollout.id in self._changed:
                return
            await self._give_alone(rollout, item)

    async def _give_alone(self, rollout: Rollout, item: Item) -> None:
        """Gives one command; a terminal with a fault of its own rests."""
        try:
            rows = await self._commands.submit_all(_on_behalf(rollout), [_order(rollout, item)])
        except (BadParameter, Conflict, NotFound) as error:
            item.attempts += 1
            item.fail(str(error), terms=rollout.terms, now_us=self._clock())
            self._item_rests.end((rollout.id, item.terminal_id))
        except (Unavailable, StoreUnavailable, Throttled):
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one terminal
            self._rest_item(rollout, item, error)
        else:
            self._take_given(rollout, item, rows[0])

    def _take_given(self, rollout: Rollout, item: Item, row: Row) -> None:
        """A command was journaled; ``row``: its record."""
        try:
            item.give(row["uid"])
            rollout.on_journaled(row, self._clock())
        except Exception as error:  # noqa: BLE001 - as above
            self._rest_item(rollout, item, error)
        else:
            self._item_rests.end((rollout.id, item.terminal_id))

    def _rest_item(self, rollout: Rollout, item: Item, error: Exception) -> None:
        self.stats.faults += 1
        self._item_rests.begin((rollout.id, item.terminal_id))
        _faults_log.error("campaign %d: %s failed and rests: %r", rollout.id, item.terminal_id, error)

    async def _end(self, rollout: Rollout, state: CampaignState, reason: str) -> None:
        try:
            await self._repository.set_state(SYSTEM, rollout.id, state, reason=reason)
        except (Conflict, NotFound) as error:
            _log.info("campaign %d: somebody was faster: %s", rollout.id, error)

    async def _save(self, rollout: Rollout) -> bool:
        """Writes some of the terminals' states that have changed; whether there are more."""
        dirty = rollout.places.take_dirty(_SAVED_AT_ONCE)
        if dirty:
            await self.terminal_records.save(rollout.id, dirty)
            for item in dirty:
                self.stats.terminals[item.state.value] += 1
        return rollout.places.is_dirty

    async def _drop(self, rollout: Rollout, *, deleted: bool = False) -> None:
        while not deleted and await self._save(rollout):
            pass
        self._rollouts.pop(rollout.id, None)
        self._count()
        self._behind.pop(rollout.id, None)
        self._rests.end(rollout.id)
        pauses = LoopPauses()
        for count, uid in enumerate(rollout.items):
            if count % _AT_ONCE == 0:
                await pauses.pause()
            self._item_rests.end((rollout.id, uid))
            left = [each for each in self._of.get(uid, ()) if each is not rollout]
            if left:
                self._of[uid] = left
            else:
                self._of.pop(uid, None)

    def _count(self) -> None:
        self.stats.running = sum(each.state is CampaignState.RUNNING for each in self._rollouts.values())


def _on_behalf(rollout: Rollout) -> Actor:
    return Actor(
        user_id=rollout.created_by, username=f"campaign {rollout.id}", company_id=rollout.company_id, role=Role.ADMIN
    )


def _order(rollout: Rollout, item: Item) -> CommandRequest:
    """The ``AXUpgrade`` of one attempt. Its idempotency key is the attempt's: after a crash between the journal and the
    table of campaign terminals the same command is found, not a second one given."""
    unit, file, version = rollout.terms.unit, rollout.file, rollout.terms.version
    is_lua = unit == "LUA"
    return CommandRequest(
        terminal_id=item.terminal_id,
        command="AXUpgrade",
        value=unit,
        firmware=Firmware(lua_file=file, lua_version=version)
        if is_lua
        else Firmware(mcu_file=file, mcu_version=version),
        idempotency_key=f"campaign {rollout.id} {item.terminal_id} {item.attempts + 1}",
    )
