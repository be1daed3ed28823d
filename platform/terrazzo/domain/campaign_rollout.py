"""A firmware campaign in progress: which terminals are due, and when it ends. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

import msgspec

from terrazzo.domain.campaign_item import ENDED, TOO_MANY_FAILED, UNDER_WAY, Item, ItemState, Terms


class CampaignState(Enum):
    """The state of a campaign."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    ABORTED = "aborted"
    DONE = "done"


MAY_BECOME = {
    CampaignState.RUNNING: (CampaignState.CREATED, CampaignState.PAUSED),
    CampaignState.PAUSED: (CampaignState.RUNNING,),
    CampaignState.ABORTED: (CampaignState.CREATED, CampaignState.RUNNING, CampaignState.PAUSED),
    CampaignState.DONE: (CampaignState.RUNNING,),
}
"""For each state, the states from which it can be reached."""

FOLLOWED = (CampaignState.RUNNING, CampaignState.PAUSED, CampaignState.ABORTED)
"""States in which terminals may have an upgrade in progress."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign is aborted at this number of failed terminals, if they are this percentage of those that ended."""

    failure_percent: int
    failure_minimum: int


class RolloutVerdict(msgspec.Struct, frozen=True):
    """The final state that a campaign has reached, and why."""

    state: CampaignState
    reason: str = ""


class Rollout(msgspec.Struct, kw_only=True, eq=False):
    """A campaign and its terminals. ``wave``: the number of the last wave that has begun, from 1."""

    id: int
    company_id: int
    file: str
    created_by: int
    terms: Terms
    limits: Limits
    state: CampaignState
    wave: int
    items: dict[str, Item]  # by uid

    def verdict(self) -> RolloutVerdict | None:
        """How a running campaign ends now: aborted at its limits, done when all terminals ended; None if it goes on."""
        counts = Counter(item.state for item in self.items.values())
        failed, ended = counts[ItemState.FAILED], counts[ItemState.FAILED] + counts[ItemState.DONE]
        limits = self.limits
        if (
            failed >= limits.failure_minimum
            and failed * 100 >= limits.failure_percent * ended
            and ended < len(self.items)
        ):
            return RolloutVerdict(CampaignState.ABORTED, TOO_MANY_FAILED.format(failed=failed, ended=ended))
        return RolloutVerdict(CampaignState.DONE) if ended == len(self.items) else None

    def open_wave(self) -> bool:
        """Begins the next wave when all terminals of the earlier ones have ended; returns whether one has begun."""
        open_ones = [item.wave for item in self.items.values() if item.state not in ENDED]
        following = min(open_ones, default=self.wave)
        if following <= self.wave:
            return False
        self.wave = following
        return True

    def due(self) -> list[Item]:
        """The terminals of waves that have begun which have no command yet."""
        return [item for item in self.items.values() if item.wave <= self.wave and item.is_waiting]

    def unsent(self) -> list[Item]:
        """The terminals whose commands are queued and not yet sent."""
        return [item for item in self.items.values() if item.state is ItemState.PENDING and item.command_uid]

    def dirty(self) -> list[Item]:
        """The terminals whose changes are not yet stored."""
        return [item for item in self.items.values() if item.is_dirty]

    @property
    def is_over(self) -> bool:
        """Whether no terminal of the campaign needs to be followed any more."""
        if self.state in (CampaignState.RUNNING, CampaignState.PAUSED):
            return False
        return not any(
            item.state in UNDER_WAY or (item.command_uid and item.state is ItemState.PENDING)
            for item in self.items.values()
        )

    def abort(self, reason: str) -> None:
        """Ends the campaign: no further attempts; those under way are followed to their end."""
        self.state = CampaignState.ABORTED
        for item in self.items.values():
            item.may_retry = False
            if item.is_waiting and not item.reason:
                item.reason, item.is_dirty = reason, True

    def check_times(self, now_us: int) -> None:
        """Fails the attempts whose deadlines have passed."""
        for item in self.items.values():
            item.check_time(terms=self.terms, now_us=now_us)


def count_states(items: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The number of terminals by state, every state included."""
    return {state.value: 0 for state in ItemState} | dict(items)
