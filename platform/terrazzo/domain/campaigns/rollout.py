"""A firmware campaign in progress: which terminals are due, and when it ends. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import msgspec

from terrazzo.domain.campaigns.item import TOO_MANY_FAILED, Item, ItemState, Terms
from terrazzo.domain.campaigns.places import ItemPlaces
from terrazzo.domain.command import CommandState


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


class Rollout:
    """A campaign and its terminals.

    Args:
        id, company_id, created_by: of its record.
        file: the firmware that its terminals download.
        terms, limits: see there.
        state: of its record.
        wave: the number of the last wave that has begun, from 1.
    """

    def __init__(
        self,
        *,
        id: int,
        company_id: int,
        file: str,
        created_by: int,
        terms: Terms,
        limits: Limits,
        state: CampaignState,
        wave: int,
    ) -> None:
        self.id = id
        self.company_id = company_id
        self.file = file
        self.created_by = created_by
        self.limits = limits
        self.state = state
        self.wave = wave
        self.places = ItemPlaces()
        self._terms = terms
        self._abandoned: list[Item] = []  # of an aborted campaign, those that waited and are not told why yet
        self._reason = ""
        self._recalled: list[Item] = []  # of one that does not run, those whose commands are to be recalled

    @property
    def items(self) -> Mapping[str, Item]:
        """Its terminals, by uid."""
        return self.places.items

    @property
    def terms(self) -> Terms:
        """Its terms; once it was aborted nothing is tried again."""
        return msgspec.structs.replace(self._terms, retries=0) if self.state is CampaignState.ABORTED else self._terms

    @terms.setter
    def terms(self, terms: Terms) -> None:
        self._terms = terms

    def on_journaled(self, command: Mapping[str, Any], now_us: int) -> None:
        """Applies where a terminal's command stands in the journal: ``uid``, ``terminal_id``, ``state``, ``reason``."""
        item, state = self.items[command["terminal_id"]], CommandState(command["state"])
        item.on_step(command["uid"], state, command["reason"], terms=self.terms, now_us=now_us)

    def verdict(self) -> RolloutVerdict | None:
        """How a running campaign ends now: aborted at its limits, done when all terminals ended; None if it goes on."""
        counts = self.places.counts
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
        following = self.places.open_wave
        if following is None or following <= self.wave:
            return False
        self.wave = following
        return True

    def due(self) -> Iterator[Item]:
        """The terminals of waves that have begun which have no command yet; none may change meanwhile."""
        return self.places.waiting(self.wave)

    def begin_recall(self) -> None:
        """Where it does not run: from now on ``take_unsent`` has the terminals whose commands are not sent."""
        is_running = self.state is CampaignState.RUNNING
        self._recalled = [] if is_running else list(self.places.unsent.values())

    def take_unsent(self, most: int) -> list[Item]:
        """Some whose commands are queued and not sent, each once, those queued last first.

        What is queued last is sent last, so that the fewest are sent while others are recalled.
        """
        taken = self._recalled[-most:]
        del self._recalled[-most:]
        return [item for item in reversed(taken) if item.state is ItemState.PENDING and item.command_uid]

    @property
    def is_recalling(self) -> bool:
        """Whether commands are still to be recalled."""
        return bool(self._recalled)

    @property
    def is_over(self) -> bool:
        """Whether no terminal of the campaign needs to be followed any more."""
        if self.state in (CampaignState.RUNNING, CampaignState.PAUSED):
            return False
        return self.places.is_still and not self._abandoned

    def abort(self, reason: str) -> None:
        """Ends the campaign: no further attempts; those under way are followed to their end.

        The terminals that wait are told why by ``explain``.
        """
        self.state, self._reason = CampaignState.ABORTED, reason
        self._abandoned = list(self.places.waiting(sys.maxsize))

    def explain(self, most: int) -> bool:
        """Gives some terminals of an aborted campaign that waited its reason; whether there are more."""
        for item in self._abandoned[-most:]:
            if item.is_waiting:
                item.explain(self._reason)
        del self._abandoned[-most:]
        return bool(self._abandoned)

    def check_times(self, now_us: int, most: int) -> bool:
        """Fails some of the attempts whose deadlines have passed; whether there may be more."""
        late = self.places.overdue(now_us, most)
        for item in late:
            item.check_time(terms=self.terms, now_us=now_us)
        return len(late) == most


def count_states(items: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The number of terminals by state, every state included."""
    return {state.value: 0 for state in ItemState} | dict(items)
