"""Firmware campaigns: the five actions of an entity, four that change its state, and its terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import Changed, EntityActions
from terrazzo.api.operations.entities.types import given, key_type, take_key
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.campaigns.item import ItemState
from terrazzo.domain.campaigns.rollout import CampaignState
from terrazzo.domain.record import record_of
from terrazzo.metadata.definitions.registry import CAMPAIGN
from terrazzo.times import format_spaced


class CampaignTerminals(PageRequest):
    """Of one campaign, in one state or all."""

    uid: Key
    state: ItemState | None = None


class CampaignTerminal(msgspec.Struct):
    """Where a terminal stands; times are null for what has not happened in the present attempt."""

    terminal_id: str
    wave: int
    state: ItemState
    reason: str
    version: str  # the last that it reported while the campaign ran
    attempts: int  # commands that it was given
    failures: int
    command_uid: str  # of the present attempt, as in get_command_list
    sent: str | None
    downloading: str | None
    ended: str | None
    deadline: str | None  # when the present attempt counts as failed


async def _with_progress(services: Services, request: Any, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    numbers = [row["id"] for row in rows]
    counts, waves = await services.campaigns.counts(numbers), await services.campaigns.wave_counts(numbers)
    return [{"progress": counts[number], "wave_progress": waves[number]} for number in numbers]


CAMPAIGNS = EntityActions(
    title="firmware campaign",
    name="campaign",
    create="create_campaign",
    update="update_campaign",
    delete="delete_campaign",
    get_item="get_campaign_item",
    get_list="get_campaign_list",
    entity=CAMPAIGN,
    repository=lambda services: services.entities.campaigns,
    more={"progress": dict[str, int], "wave_progress": list[dict[str, int]]},
    extend=_with_progress,
)


class _StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """An action that brings a campaign into a state."""

    name: str
    summary: str
    state: CampaignState
    reason: str = ""

    def operation(self) -> Operation:
        """The row of the action."""
        return Operation(
            name=self.name,
            summary=self.summary,
            request=key_type("campaign", CAMPAIGNS.keys),
            result=Changed,
            permission=Role.ADMIN,
            handler=self.handle,
        )

    async def handle(self, services: Services, actor: Actor, request: msgspec.Struct) -> Changed:
        """Sets the state; the campaign's task does what follows from it."""
        key = take_key(given(request), CAMPAIGNS.keys)
        row = await services.entities.campaigns.set_state(actor, key, self.state, reason=self.reason)
        return Changed(row["uid"])


STATE_CHANGES = (
    _StateChange(
        name="start_campaign",
        summary="Starts a firmware campaign",
        state=CampaignState.RUNNING,
    ),
    _StateChange(
        name="pause_campaign",
        summary="Pauses a campaign: no more commands; what was sent goes on",
        state=CampaignState.PAUSED,
        reason="paused",
    ),
    _StateChange(
        name="resume_campaign",
        summary="Goes on with a paused campaign",
        state=CampaignState.RUNNING,
    ),
    _StateChange(
        name="abort_campaign",
        summary="Ends a campaign; terminals under way are followed to their end",
        state=CampaignState.ABORTED,
        reason="aborted",
    ),
)


async def handle_get_campaign_terminal_list(
    services: Services, actor: Actor, request: CampaignTerminals
) -> Paged[CampaignTerminal]:
    """A campaign's terminals, in the order of their waves."""
    campaign = await services.entities.campaigns.item(actor, request.uid)
    rows = await services.campaigns.page(
        campaign["id"],
        state=request.state and request.state.value,
        page_index=request.page_index,
        page_size=request.page_size,
    )
    return paged(request, [_present(row, services.zone) for row in rows.rows], rows.total)


def _present(row: Row, zone: tzinfo) -> CampaignTerminal:
    times = {
        name: None if row[f"{name}_us"] is None else format_spaced(row[f"{name}_us"], zone)
        for name in ("sent", "downloading", "ended", "deadline")
    }
    return record_of(CampaignTerminal, row, times, {"state": ItemState(row["state"])})


OPERATIONS = (
    *CAMPAIGNS.operations(),
    *(change.operation() for change in STATE_CHANGES),
    Operation(
        name="get_campaign_terminal_list",
        summary="How the terminals of a firmware campaign fare",
        request=CampaignTerminals,
        result=Paged[CampaignTerminal],
        permission=Role.VIEWER,
        handler=handle_get_campaign_terminal_list,
    ),
)
