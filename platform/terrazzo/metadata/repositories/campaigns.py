"""The repository of firmware campaigns: terminals are fixed at creation, states follow ``MAY_BECOME``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.field import shorten
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import CAMPAIGN_TERMINAL
from terrazzo.domain.actor import Actor
from terrazzo.domain.campaigns.item import Item, ItemState
from terrazzo.domain.campaigns.rollout import MAY_BECOME, CampaignState
from terrazzo.domain.campaigns.waves import wave_numbers
from terrazzo.errors import BadParameter, Conflict
from terrazzo.metadata.definitions.registry import CAMPAIGN, CONFIGURATION, TERMINAL
from terrazzo.metadata.lookup import as_id, storable
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say

_SETTLED = ("config_id", "unit", "version", "terminal_list", "waves")
_AT_ONCE = 500  # terminals: milliseconds of the event loop


class CampaignRepository(EntityRepository):
    """Firmware campaigns. The terminals, waves, file and version of one can't be changed after its creation."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(CAMPAIGN, **parts)

    async def set_state(self, actor: Actor, key: int | str, state: CampaignState, *, reason: str = "") -> Row:
        """Starts, pauses, resumes, aborts or ends a campaign; one that is in ``state`` already stays as it is.

        Raises:
            Conflict: ``MAY_BECOME`` has no way from its present state to this one.
        """
        return await self._update(actor, key, {}, {"state": state.value, "reason": reason[:255]})

    async def set_wave(self, actor: Actor, key: int | str, wave: int) -> Row:
        """Stores the number of the wave that has begun, from 1."""
        return await self._update(actor, key, {}, {"wave": wave})

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        await super()._guard(connection, actor, draft, before)
        if before is None:
            return
        if not draft:
            if before["state"] in (CampaignState.RUNNING.value, CampaignState.PAUSED.value):
                raise Conflict(say("campaign_to_abort", campaign=before["uid"], state=before["state"]))
            return
        for name in _SETTLED:
            if name in draft:
                _require_same(name, draft.pop(name), before)
        if "state" in draft:
            self._change_state(draft, before)

    def _change_state(self, draft: Draft, before: Row) -> None:
        state, was = CampaignState(draft["state"]), CampaignState(before["state"])
        if state is was:
            draft["reason"] = before["reason"]
            return
        if was not in MAY_BECOME[state]:
            raise Conflict(say("campaign_cannot_become", campaign=before["uid"], state=was.value, wanted=state.value))
        now = self._clock()
        if state is CampaignState.RUNNING and before["started"] is None:
            draft["started"] = now
        if state in (CampaignState.ABORTED, CampaignState.DONE):
            draft["ended"] = now

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        await super()._resolve(connection, draft, company)
        if "config_id" not in draft:
            return  # a change, which can't touch what follows
        table, unit = CONFIGURATION.table, draft["unit"].lower()
        columns = (table.c[f"{unit}_file"].label("file"), table.c[f"{unit}_version"].label("version"))
        found = (await connection.execute(sa.select(*columns).where(table.c.id == draft["config_id"]))).one()
        if not found.file:
            raise BadParameter("config_id", say("configuration_names_no_file", unit=unit))
        draft["file"], draft["version"] = found.file, draft.get("version") or found.version
        if not draft["version"]:
            raise BadParameter("version", say("required_without_version", unit=unit))
        draft["waves"] = draft.get("waves") or [100]
        draft["terminal_list"] = await _check_terminals(connection, draft.get("terminal_list") or [], company) or None

    async def _written(self, connection: AsyncConnection, record_id: int, draft: Draft) -> None:
        if "config_id" not in draft:
            return
        given = draft["terminal_list"]
        count = len(given) if given else await _count_of_configuration(connection, draft["config_id"])
        if not count:
            raise BadParameter("terminal_list", say("no_terminal_with_configuration"))
        waves = iter(wave_numbers(count, draft["waves"]))
        pages = _pages_of(given) if given else _of_configuration(connection, draft["config_id"])
        async for uids in pages:
            rows = [
                item_row(Item(terminal_id=uid, wave=wave)) | {"campaign_id": record_id}
                for uid, wave in zip(uids, waves, strict=False)  # the last page ends first
            ]
            await connection.execute(sa.insert(CAMPAIGN_TERMINAL), rows)


def item_row(item: Item) -> dict[str, Any]:
    """The columns of ``campaign_terminal`` for a terminal's progress."""
    return {
        "terminal_id": item.terminal_id,
        "wave": item.wave,
        "state": item.state.value,
        "reason": item.reason,
        "version": item.version,
        "attempts": item.attempts,
        "failures": item.failures,
        "command_uid": item.command_uid,
        "sent_us": item.sent_us,
        "downloading_us": item.downloading_us,
        "ended_us": item.ended_us,
        "deadline_us": item.deadline_us,
    }


_STORED = tuple(name for name in item_row(Item(terminal_id="", wave=0)) if name != "state")


def read_item(row: sa.RowMapping) -> Item:
    """The reverse of ``item_row``."""
    return Item(state=ItemState(row["state"]), **{name: row[name] for name in _STORED})


def _require_same(name: str, value: Any, before: Row) -> None:
    """Accepts for a column that is fixed at creation only its present value, or none.

    Raises:
        BadParameter: the value is another one.
    """
    was = before[name]
    same = value in (None, was) or (name == "config_id" and str(value) in (str(was), before["config_uid"]))
    if not same and value not in ("", []):
        raise BadParameter(name, say("campaign_settled"))


async def _check_terminals(connection: AsyncConnection, keys: Sequence[int | str], company: int) -> list[str]:
    """The uids of terminals that are given by uid or id; a text that reads as a number is taken for a uid first."""
    texts = [storable(str(key)) for key in keys]
    numbers = {key: number for key in keys if (number := as_id(key)) is not None}
    table = TERMINAL.table
    query = sa.select(table.c.id, table.c.uid, table.c[TERMINAL.company].label("company_id"))

    async def mine(clause: sa.ColumnElement[bool]) -> list[Any]:
        # the company's in a condition, too, would have SQLite read all of its terminals
        return [row for row in await connection.execute(query.where(clause)) if row.company_id == company]

    by_uid = {row.uid for row in await mine(one_of(table.c.uid, texts))}
    by_id = {row.id: row.uid for row in await mine(one_of(table.c.id, numbers.values()))} if numbers else {}
    found = dict[str, None]()
    for key, text in zip(keys, texts, strict=True):
        uid = text if text in by_uid else by_id.get(numbers.get(key, 0))
        if uid is None:
            raise BadParameter("terminal_list", say("no_terminal", terminal=shorten(key)))
        if uid in found:
            raise BadParameter("terminal_list", say("terminal_twice", terminal=uid))
        found[uid] = None
    return list(found)


async def _count_of_configuration(connection: AsyncConnection, config_id: int) -> int:
    table = TERMINAL.table
    query = sa.select(sa.func.count()).select_from(table).where(table.c.config_id == config_id)
    return int((await connection.execute(query)).scalar_one())


async def _of_configuration(connection: AsyncConnection, config_id: int) -> AsyncIterator[list[str]]:
    """The uids of a configuration's terminals, the oldest first, some at a time: a fleet has a hundred thousand."""
    table, last = TERMINAL.table, 0
    query = sa.select(table.c.id, table.c.uid).where(table.c.config_id == config_id).order_by(table.c.id)
    while found := (await connection.execute(query.where(table.c.id > last).limit(_AT_ONCE))).all():
        last = found[-1].id
        yield [row.uid for row in found]


async def _pages_of(uids: Sequence[str]) -> AsyncIterator[Sequence[str]]:
    for start in range(0, len(uids), _AT_ONCE):
        yield uids[start : start + _AT_ONCE]
