"""Campaigns' terminals in the database: read when a campaign is loaded, written step by step, shown in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row, Rows
from terrazzo.database.tables.registry import CAMPAIGN_TERMINAL, COMMAND
from terrazzo.domain.campaigns.item import Item, ItemState, Terms
from terrazzo.domain.campaigns.rollout import FOLLOWED, CampaignState, Limits, Rollout, count_states
from terrazzo.metadata.definitions.registry import CAMPAIGN
from terrazzo.metadata.repositories.campaigns import item_row, read_item

_columns = CAMPAIGN_TERMINAL.c
_AT_ONCE = 500
_OPEN = (ItemState.PENDING.value, ItemState.SENT.value, ItemState.DOWNLOADING.value)


class CampaignTerminalRecords:
    """Reads and writes the table ``campaign_terminal``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def followed(self) -> list[int]:
        """Ids of the campaigns to follow: running, paused, or aborted with terminals whose command has not ended."""
        table = CAMPAIGN.table
        ended = sa.and_(
            table.c.state == CampaignState.ABORTED.value,
            ~sa.exists().where(
                _columns.campaign_id == table.c.id, _columns.state.in_(_OPEN), _columns.command_uid != ""
            ),
        )
        query = sa.select(table.c.id).where(table.c.state.in_([state.value for state in FOLLOWED]), ~ended)
        async with self._database.reading() as connection:
            return list((await connection.execute(query.order_by(table.c.id))).scalars())

    async def load(self, row: Row) -> Rollout:
        """The rollout of a campaign's record, with all its terminals."""
        rollout = Rollout(
            id=row["id"],
            company_id=row["permission_company_id"],
            file=row["file"],
            created_by=row["created_by"],
            terms=terms_of(row),
            limits=limits_of(row),
            state=CampaignState(row["state"]),
            wave=row["wave"],
        )
        query, last = sa.select(CAMPAIGN_TERMINAL).where(_columns.campaign_id == row["id"]), 0
        async with self._database.reading() as connection:
            while True:
                some = query.where(_columns.id > last).order_by(_columns.id).limit(_AT_ONCE)
                found = (await connection.execute(some)).mappings().all()
                if not found:
                    break
                last = found[-1]["id"]
                rollout.places.add(read_item(each) for each in found)
        if rollout.state is CampaignState.ABORTED:
            rollout.abort(row["reason"])
        return rollout

    async def commands(self, uids: Sequence[str]) -> list[Row]:
        """The journal's ``uid``, ``terminal_id``, ``state``, ``reason`` and ``queued_us`` of these commands."""
        rows: list[Row] = []
        columns = [COMMAND.c[name] for name in ("uid", "terminal_id", "state", "reason", "queued_us")]
        async with self._database.reading() as connection:
            for start in range(0, len(uids), _AT_ONCE):
                query = sa.select(*columns).where(one_of(COMMAND.c.uid, uids[start : start + _AT_ONCE]))
                found = await connection.execute(query)
                rows += [dict(each) for each in found.mappings()]
        return rows

    async def save(self, campaign_id: int, items: Sequence[Item]) -> None:
        """Writes the states of some terminals, in one transaction.

        Raises:
            Unavailable: the database can't take them. They have changed again then, as after any failure.
        """
        keys = (_columns.campaign_id == sa.bindparam("of"), _columns.terminal_id == sa.bindparam("who"))
        values: dict[str, Any] = {
            name: sa.bindparam(f"new_{name}") for name in item_row(items[0]) if name not in ("terminal_id", "wave")
        }
        update = sa.update(CAMPAIGN_TERMINAL).where(*keys).values(**values)
        rows = [_bind(campaign_id, item) for item in items]
        try:
            async with self._database.writing() as connection:
                await connection.execute(update, rows)
        except BaseException:  # cancelled too: what isn't written has to be written next time
            for item in items:
                item.on_change(item)
            raise

    async def counts(self, campaign_ids: Sequence[int]) -> dict[int, dict[str, int]]:
        """The number of terminals in each state, for each of these campaigns: campaign id to state to count."""
        if not campaign_ids:
            return {}
        query = sa.select(_columns.campaign_id, _columns.state, sa.func.count()).where(
            one_of(_columns.campaign_id, campaign_ids)
        )
        async with self._database.reading() as connection:
            found = (await connection.execute(query.group_by(_columns.campaign_id, _columns.state))).all()
        return {
            number: count_states((state, count) for of, state, count in found if of == number)
            for number in campaign_ids
        }

    async def wave_counts(self, campaign_ids: Sequence[int]) -> dict[int, list[dict[str, int]]]:
        """The number of terminals in each state of each wave, the first wave first, for each of these campaigns."""
        if not campaign_ids:
            return {}
        of, wave, state = _columns.campaign_id, _columns.wave, _columns.state
        query = sa.select(of, wave, state, sa.func.count()).where(one_of(of, campaign_ids)).group_by(of, wave, state)
        found: dict[int, dict[int, list[tuple[str, int]]]] = {number: {} for number in campaign_ids}
        async with self._database.reading() as connection:
            for number, of_wave, in_state, count in (await connection.execute(query)).all():
                found[number].setdefault(of_wave, []).append((in_state, count))
        return {number: [count_states(waves[each]) for each in sorted(waves)] for number, waves in found.items()}

    async def page(self, campaign_id: int, *, state: str | None, page_index: int, page_size: int) -> Rows:
        """A page of a campaign's terminals, in the order of their waves, and how many there are in all."""
        query = sa.select(CAMPAIGN_TERMINAL).where(_columns.campaign_id == campaign_id)
        if state is not None:
            query = query.where(_columns.state == state)
        page = query.order_by(_columns.id).limit(page_size).offset((page_index - 1) * page_size)
        async with self._database.reading() as connection:
            total = (await connection.execute(sa.select(sa.func.count()).select_from(query.subquery()))).scalar_one()
            rows = (await connection.execute(page)).mappings().all()
        return Rows([dict(row) for row in rows], total)


def terms_of(row: Row) -> Terms:
    """Unit, target version, retries and timeout in a campaign's record."""
    return Terms(
        unit=row["unit"], version=row["version"], retries=row["retries"], timeout_us=row["timeout_s"] * 1_000_000
    )


def limits_of(row: Row) -> Limits:
    """The share and the number of failures at which a campaign's record has it aborted."""
    return Limits(failure_percent=row["failure_percent"], failure_minimum=row["failure_minimum"])


def _bind(campaign_id: int, item: Item) -> dict[str, Any]:
    kept = {f"new_{name}": value for name, value in item_row(item).items() if name not in ("terminal_id", "wave")}
    return {"of": campaign_id, "who": item.terminal_id, **kept}
