"""Replays: one of a company runs at a time, the others wait in the journal, and a restart takes them up again."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from terrazzo.database.port import EVERYTHING, Conditions, Row, Rows
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, Conflict, Unavailable
from terrazzo.mapping.replay import reasons
from terrazzo.mapping.replay.journal import CANCELLED, DONE, FAILED, ReplayJournal
from terrazzo.mapping.replay.run import Failed, ReplayParts, ReplayRun, ReplayTask, Stopped
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import NotReplaceable, StoreUnavailable
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.reasons import say
from terrazzo.retry import Attempts, Retry

_log = logging.getLogger(__name__)

MOST_STARTS = 5
_WORKERS = 4  # companies whose replays run at the same time
_AWAY = Retry(first_s=2.0, most_s=2.0, attempts=30)  # a minute for a store or a database that is away
_UNREPLACEABLE = "the store can't replace records: InfluxDB 3 has no DELETE; dry_run works"


class ReplayRunner:
    """The journal, and the tasks that work it off: of a company one after the other, companies in turn."""

    def __init__(self, journal: ReplayJournal, parts: ReplayParts, tasks: Tasks) -> None:
        self._journal = journal
        self._parts = parts
        self._tasks = tasks
        self._running: dict[int, ReplayRun] = {}  # by the replay's id
        self._busy: set[int] = set()  # companies of which one runs
        self._last = 0  # the company whose turn it was last
        self._choosing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._workers: list[Task] = []

    def start(self) -> None:
        """Takes up what an earlier process left."""
        names = ["replays", *(f"replays {number}" for number in range(2, _WORKERS + 1))]
        self._workers = [self._tasks.spawn(name, self._work, OnFailure.RESTART) for name in names]

    async def stop(self) -> None:
        """Interrupts what runs; it begins anew with the next start."""
        for worker in self._workers:
            await worker.stop()

    # What the API calls

    async def submit(self, actor: Actor, whose: Row, start_us: int, end_us: int | None, *, dry_run: bool) -> int:
        """Has an object replayed; the replay's id.

        Args:
            whose: the object's record.
            end_us: inclusive; None or later than now: up to now.

        Raises:
            BadParameter: the range is empty or ahead, or the object is not mapped.
            Conflict: the object is being replayed, too many wait, or the store can't replace records.
        """
        now_us = self._parts.clock()
        if start_us > now_us:
            raise BadParameter("start_time", say("is_after_now"))
        if end_us is not None and start_us > end_us:
            raise BadParameter("start_time", say("is_after_end_time"))
        if not dry_run and not self._parts.store.is_replaceable:
            raise Conflict(_UNREPLACEABLE)
        await self._parts.live.prepare(whose["id"])
        if self._parts.live.subject(whose["id"]) is None:
            raise BadParameter("object_id", say("object_without_mapping"))
        task = ReplayTask(whose["id"], start_us, None if end_us is None or end_us >= now_us else end_us, dry_run)
        replay_id = await self._journal.add(actor, task, whose, now_us)
        self._wake.set()
        return replay_id

    async def item(self, actor: Actor, replay_id: int) -> Row:
        """One replay; raises ``NotFound``."""
        return self._with_progress(await self._journal.item(actor, replay_id))

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: tuple[str, bool] | None = None,
    ) -> Rows:
        """A page of replays, newest first. Raises what ``CompanyRecords.page`` raises."""
        asked = {"page_index": page_index, "page_size": page_size, "conditions": conditions, "order_by": order_by}
        rows = await self._journal.page(actor, **asked)  # type: ignore[arg-type]
        return Rows([self._with_progress(row) for row in rows.rows], rows.total)

    async def cancel(self, actor: Actor, replay_id: int) -> Row:
        """Ends one that has not ended; one that runs ends at its next report. Raises ``NotFound``."""
        await self._journal.cancel(actor, replay_id, self._parts.clock())
        if (run := self._running.get(replay_id)) is not None:
            run.cancel()
        return await self.item(actor, replay_id)

    def _with_progress(self, row: Row) -> Row:
        run = self._running.get(row["id"])
        if run is None or row["ended_us"] is not None:
            return row
        return {**row, **msgspec.structs.asdict(run.progress)}

    # The work

    async def _work(self) -> None:
        """What is interrupted is the journal's next again, and begins anew."""
        while True:
            self._wake.clear()
            row = await self._choose()
            if row is None:
                await self._wake.wait()
                continue
            begun = at_work.begin(Work("replay", row["company_id"]))
            try:
                await self._do(row)
            finally:
                at_work.end(begun)
                self._busy.discard(row["company_id"])
                self._wake.set()

    async def _choose(self) -> Row | None:
        """The next of a company of which none runs."""
        async with self._choosing:
            row = await self._journal.next(self._busy, after=self._last)
            if row is not None:
                self._busy.add(row["company_id"])
                self._last = row["company_id"]
            return row

    async def _do(self, row: Row) -> None:
        task = ReplayTask(row["object_id"], row["start_us"], row["end_us"], bool(row["dry_run"]))
        run = self._running[row["id"]] = ReplayRun(self._parts, task)
        try:
            if row["starts"] >= MOST_STARTS:
                state, info = FAILED, reasons.INTERRUPTED.format(times=MOST_STARTS)
            else:
                await self._journal.begin(row)
                state, info = await self._outcome(run)
            await self._journal.save(row["id"], run.progress, state, info, self._parts.clock())
        finally:
            del self._running[row["id"]]
        _log.info("replay %d of object %d: %s %s", row["id"], row["object_id"], state, info)

    async def _outcome(self, run: ReplayRun) -> tuple[str, str]:
        attempts = Attempts(_AWAY)
        while True:
            try:
                await run.run()
            except Stopped:
                return CANCELLED, ""
            except (Failed, NotReplaceable) as error:
                return FAILED, str(error)
            except (Unavailable, StoreUnavailable) as error:
                pause_s = attempts.failed()
                if pause_s is None:
                    return FAILED, str(error)
                _log.warning("a replay begins anew: %s", error)
                await asyncio.sleep(pause_s)
            except Exception:  # noqa: BLE001 - whatever it is, the next one must have its turn
                _log.exception("a replay failed")
                return FAILED, reasons.INTERNAL
            else:
                return DONE, run.remark
