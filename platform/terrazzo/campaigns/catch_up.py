"""What happened to a campaign's terminals before this start, read some at a time: commands, notices, versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from terrazzo.campaigns.terminal_records import CampaignTerminalRecords
from terrazzo.campaigns.terminal_reports import reported_version
from terrazzo.database.port import Row
from terrazzo.domain.campaigns.rollout import Rollout
from terrazzo.domain.payload import Reject, decode
from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import series_name_in, uid_of
from terrazzo.ports.store import Record, TimeSeriesStore
from terrazzo.times import LATEST_US

Hear = Callable[[Rollout, str, str, Record], None]
"""Takes a terminal's report: its uid, the channel, the record."""

_AT_ONCE = 100  # terminals of one question


class CatchUp:
    """Applies the journaled commands of a campaign, the notices since them, and the last versions.

    Args:
        rollout: the campaign.
        records: has the journal's commands.
        registry: the terminals.
        store: has their reports.
        hear: takes a report.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        rollout: Rollout,
        *,
        records: CampaignTerminalRecords,
        registry: Registry,
        store: TimeSeriesStore,
        hear: Hear,
        clock: Callable[[], int],
    ) -> None:
        self._rollout = rollout
        self._records = records
        self._registry = registry
        self._store = store
        self._hear = hear
        self._clock = clock
        self._commands = [item.command_uid for item in rollout.items.values() if item.command_uid]
        self._terminals = list(rollout.items)

    async def go_on(self) -> bool:
        """Reads of some terminals; whether all were read. What fails is read the next time.

        Raises:
            Unavailable, StoreUnavailable: the database or the store doesn't answer.
        """
        if self._commands:
            rows = await self._records.commands(self._commands[-_AT_ONCE:])
            for row in rows:
                self._rollout.on_journaled(row, self._clock())
            if rows:
                await self._read_notices(rows)
            del self._commands[-_AT_ONCE:]
            return False
        terms = self._rollout.terms
        for uid in self._terminals[-_AT_ONCE:]:
            item = self._rollout.items[uid]
            if item.ended_us is None and await self._last_version(uid) == terms.version:
                item.on_version(terms.version, terms=terms, now_us=self._clock())
        del self._terminals[-_AT_ONCE:]
        return not self._terminals

    async def _read_notices(self, commands: Sequence[Row]) -> None:
        """Applies notices on ``n`` since the commands; compared by the records' own times, the store has no others."""
        since = {row["terminal_id"]: row["queued_us"] for row in commands}
        series = [f"g/{name}/n" for uid in since if (name := self._series_name(uid))]
        async for records in self._store.scan(series, min(since.values()), LATEST_US):
            for record in records:
                uid = uid_of(series_name_in(record.series))
                if record.time_us >= since[uid]:
                    self._hear(self._rollout, uid, "n", record)

    async def _last_version(self, uid: str) -> str | None:
        name = self._series_name(uid)
        for record in await self._store.latest([f"g/{name}/v"], 1) if name else ():
            return reported_version(points_of(record), self._rollout.terms.unit)
        return None

    def _series_name(self, uid: str) -> str:
        """The name of the series of a campaign's terminal; empty where the uid is another company's, or nobody's."""
        terminal = self._registry.terminal(uid)
        is_own = terminal is not None and terminal.company_id == self._rollout.company_id
        return terminal.series_name if terminal is not None and is_own else ""


def points_of(record: Record) -> Mapping[str, Any]:
    """The points of a report; none of one of before a stricter decoder."""
    try:
        return decode(record.body)
    except Reject:
        return {}
