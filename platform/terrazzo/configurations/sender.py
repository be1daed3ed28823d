"""Sends terminals their configurations, some each second and companies in turn, and follows what they report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

import msgspec

from terrazzo.company_queue import CompanyQueue
from terrazzo.configurations.comparison import WantedConfiguration
from terrazzo.configurations.delivery import ConfigDeliveries, ConfigStatus, Configured
from terrazzo.configurations.records import ConfigRecords
from terrazzo.database.port import Row
from terrazzo.domain.payload import Points, Reject, has_many_values, take_points
from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import series_name_in
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import Throttled, Unavailable
from terrazzo.loop_pauses import LoopPauses, next_turn
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.bus import DeliveryFate, MessageBus
from terrazzo.ports.store import Record
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us

_log = SparseLog(logging.getLogger(__name__))

SENDS_PER_S = 200.0
"""Of all terminals together."""

_AT_ONCE = 500  # terminals that are looked at in a turn of the loop
_CORRELATION = b"config"
_PARAMETERS = "/p"
_LONG_OF_COMPANY = 16  # long reports that wait to be read, the newest of a terminal each

ReadPoints = Callable[[bytes], Awaitable[Points]]
"""The points of a long report, read beside the event loop; raises ``Reject`` and ``Throttled``."""


class ConfigStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    sent: int = 0
    lost: int = 0  # without an acknowledgement: sent again when the terminal subscribes next
    refused: int = 0
    reports: int = 0  # of parameters, held against what is wanted
    reports_left: int = 0  # long ones that were not, as as many of the company waited as may


class ConfigSender:
    """Delivers the configurations that have ``deliver`` = 1.

    Args:
        registry: the terminals.
        bus: publishes to terminals.
        records: what is kept over a restart.
        tasks: runs what sends and writes.
        read_points: of reports that are long.
        per_second: how many messages leave in a second.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        registry: Registry,
        bus: MessageBus,
        records: ConfigRecords,
        tasks: Tasks,
        *,
        read_points: ReadPoints,
        per_second: float = SENDS_PER_S,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = ConfigStats()
        self._registry = registry
        self._bus = bus
        self._records = records
        self._supervisor = tasks
        self._read_points = read_points
        self._pause_s = 1 / per_second
        self._clock = clock
        self._deliveries = ConfigDeliveries()
        self._wake = asyncio.Event()  # somebody is due
        self._changed = asyncio.Event()  # something has to be written, or terminals have to be looked at
        self._to_follow: dict[int, None] = {}  # configurations whose terminals have to be looked at
        self._long: dict[str, bytes] = {}  # reports to be read, by uid
        self._to_read: CompanyQueue[str] = CompanyQueue()  # of them
        self._reading = ""  # whose is read now; empty when it has said something else since
        self._tasks: list[Task] = []
        registry.terminal_changes.listen(self._on_terminal)

    def status(self, uid: str) -> ConfigStatus | None:
        """How far a terminal is; None: its configuration isn't delivered."""
        return self._deliveries.status(uid)

    async def start(self, configurations: AsyncIterator[Row]) -> None:
        """Takes what was kept, and these rows; then it sends.

        Raises:
            Unavailable: the database doesn't answer.
        """
        for record_id, status in (await self._records.every()).items():
            terminal = self._registry.terminal_by_id(record_id)
            if terminal is None:
                self._deliveries.gone[record_id] = None
            else:
                self._deliveries.load(terminal.uid, status)
        async for row in configurations:
            self.on_change(RowChange(row["id"], row["uid"], row))
        spawn, restart = self._supervisor.spawn, OnFailure.RESTART
        self._tasks = [
            spawn("configurations to send", self._send, restart),
            spawn("configurations of terminals", self._follow_and_write, restart),
        ]

    async def stop(self) -> None:
        """Stops, and writes what is not written yet."""
        for task in self._tasks:
            await task.stop()
        try:
            await self._write()
        except Unavailable as error:
            _log.warning("what terminals reported of their configurations could not be written: %s", error)

    def on_change(self, change: RowChange) -> None:
        """A configuration was made, changed or deleted."""
        row, wanted = change.row, None
        if row is not None and row["deliver"] and row["is_available"]:
            wanted = WantedConfiguration.of(row["config_script"] or {})
        if self._deliveries.set_wanted(change.record_id, wanted):
            self._to_follow[change.record_id] = None
            self._changed.set()

    def on_ready(self, uid: str) -> None:
        """A terminal has connected and subscribed to its commands."""
        self._deliveries.on_ready(uid)
        self._wake.set()

    def on_records(self, records: Sequence[Record]) -> None:
        """``IngestPipeline.records`` tells this."""
        if self._deliveries.is_idle:
            return
        for record in records:
            series = record.series
            if series.endswith(_PARAMETERS) and series.startswith("g/"):
                self._on_parameters(record)

    def _on_parameters(self, record: Record) -> None:
        terminal = self._registry.terminal_of_series(series_name_in(record.series))
        if terminal is None or self._deliveries.status(terminal.uid) is None:
            return
        if has_many_values(record.body):
            self._put_long(terminal, record.body)
            return
        self._forget_long(terminal.uid)
        try:
            points = take_points(record.body)
        except Reject:
            return  # stored as it came, by other limits
        self._on_points(terminal, points)

    def _on_points(self, terminal: Terminal, points: Points) -> None:
        self.stats.reports += 1
        self._deliveries.on_report(terminal.uid, terminal.config_id, points, self._clock())
        self._changed.set()

    def _put_long(self, terminal: Terminal, body: bytes) -> None:
        uid = terminal.uid
        self._forget_long(uid)
        if self._to_read.of_company(terminal.company_id) >= _LONG_OF_COMPANY:
            self.stats.reports_left += 1
            return
        self._long[uid] = body
        self._to_read.put(terminal.company_id, uid)
        self._changed.set()

    def _forget_long(self, uid: str) -> None:
        """The terminal has said something else."""
        self._long.pop(uid, None)
        self._to_read.drop(uid)
        if self._reading == uid:
            self._reading = ""

    async def _read_long(self) -> None:
        """Reads the long reports that wait, companies in turn."""
        while (uid := self._to_read.take()) is not None:
            body, terminal = self._long.pop(uid), self._registry.terminal(uid)
            if terminal is None:
                continue
            self._reading = uid
            begun = at_work.begin(Work("configuration", terminal.company_id))
            try:
                points = await self._read_points(body)
            except (Reject, Throttled):
                continue
            finally:
                at_work.end(begun)
            if self._reading == uid:
                self._on_points(terminal, points)

    def _on_terminal(self, before: Terminal | None, after: Terminal | None) -> None:
        if after is None:
            if before is not None:
                self._forget_long(before.uid)
                self._deliveries.forget(before.uid)
        elif before is None or (before.id, before.config_id) != (after.id, after.config_id):
            self._deliveries.follow(_configured(after), self._clock())
        self._changed.set()
        self._wake.set()

    async def _send(self) -> None:
        pauses = LoopPauses()
        while True:
            self._wake.clear()
            uid = self._deliveries.next_due()
            if uid is None:
                await self._wake.wait()
            elif self._send_unless_it_fails(uid):
                await asyncio.sleep(self._pause_s)
            await pauses.pause()  # of many that are not there

    def _send_unless_it_fails(self, uid: str) -> bool:
        """As ``_send_to``; one with a fault of its own is sent it when it has subscribed next, as what is lost."""
        try:
            return self._send_to(uid)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one terminal
            self.stats.lost += 1
            self._deliveries.give_up(uid)
            _log.error("the configuration of %s could not be sent: %r", uid, error)
            return False

    def _send_to(self, uid: str) -> bool:
        """Whether something was sent."""
        terminal = self._registry.terminal(uid)
        wanted = None if terminal is None else self._deliveries.begin(_configured(terminal), self._clock())
        if wanted is None:
            return False
        on_fate = partial(self._on_fate, uid)
        if not self._bus.send(uid, wanted.command, correlation=_CORRELATION, on_fate=on_fate):
            self._deliveries.give_up(uid)
            return False
        self.stats.sent += 1
        return True

    def _on_fate(self, uid: str, fate: DeliveryFate) -> None:
        self.stats.lost += fate is DeliveryFate.LOST
        self.stats.refused += fate is DeliveryFate.REFUSED
        self._deliveries.end(uid, fate, self._clock())
        self._changed.set()
        self._wake.set()

    async def _follow_and_write(self) -> None:
        while True:
            self._changed.clear()
            await self._follow()
            await self._read_long()
            await self._write()
            await self._changed.wait()

    async def _follow(self) -> None:
        """Looks at the terminals of configurations that are other ones now."""
        while self._to_follow:
            ids, self._to_follow = self._to_follow, {}
            uids = [terminal.uid for terminal in self._registry.terminals() if terminal.config_id in ids]
            for number, uid in enumerate(uids, 1):
                terminal = self._registry.terminal(uid)
                if terminal is not None:
                    self._deliveries.follow(_configured(terminal), self._clock())
                if not number % _AT_ONCE:
                    self._wake.set()
                    await next_turn()
            self._wake.set()

    async def _write(self) -> None:
        deliveries = self._deliveries
        changed, gone = dict(deliveries.changed), dict(deliveries.gone)
        if not changed and not gone:
            return
        await self._records.write(list(changed.values()), list(gone))
        for uid, status in changed.items():
            if deliveries.changed.get(uid) is status:
                del deliveries.changed[uid]
        for record_id in gone:
            deliveries.gone.pop(record_id, None)


def _configured(terminal: Terminal) -> Configured:
    return Configured(terminal.uid, terminal.id, terminal.company_id, terminal.config_id)
