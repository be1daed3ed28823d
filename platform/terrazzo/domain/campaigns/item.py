"""One terminal's progress in a firmware campaign: a state machine. Pure: each event is passed in with its time."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import msgspec

from terrazzo.domain.command import CommandState

HAD_VERSION = "had the version already"
CAME_BACK = "came back with version {version}"
REPORTS_FAILURE = "the terminal reports a failure"
NOT_REPORTED = "did not report version {version} within {seconds:g} s"
TOO_MANY_FAILED = "{failed} of the {ended} terminals that ended have failed"
CAMPAIGN_REASONS = (HAD_VERSION, CAME_BACK, REPORTS_FAILURE, NOT_REPORTED, TOO_MANY_FAILED)
"""Why a terminal's upgrade or a whole campaign ended, as their records have it; a terminal may give its own."""


class ItemState(Enum):
    """Where a terminal stands."""

    PENDING = "pending"  # its wave hasn't begun, or its command is queued
    SENT = "sent"
    DOWNLOADING = "downloading"  # it has accepted the command, or fetches the file
    DONE = "done"  # it has reported the target version
    FAILED = "failed"


ENDED = frozenset({ItemState.DONE, ItemState.FAILED})
UNDER_WAY = frozenset({ItemState.SENT, ItemState.DOWNLOADING})


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The target version of a campaign, its number of attempts and its time limits."""

    unit: str
    version: str
    retries: int  # attempts after the first
    timeout_us: int  # from a sign of life of the upgrade to the report of the version


def _nobody(_item: Item) -> None:
    """Hears of no change."""


class Item(msgspec.Struct, kw_only=True, eq=False):
    """A terminal of a campaign. ``attempts``: upgrade commands so far; ``failures``: how many of them failed.

    ``on_change`` is called after each change of what is stored of it.
    """

    terminal_id: str
    wave: int
    state: ItemState = ItemState.PENDING
    reason: str = ""
    version: str = ""  # the last that was reported while the campaign ran
    attempts: int = 0
    failures: int = 0
    command_uid: str = ""
    sent_us: int | None = None
    downloading_us: int | None = None
    ended_us: int | None = None
    deadline_us: int | None = None
    came_back: bool = False  # reconnected since the command was sent: a power cut may have ended the upgrade
    on_change: Callable[[Item], None] = _nobody

    @property
    def is_waiting(self) -> bool:
        """Whether it has no command yet."""
        return self.state is ItemState.PENDING and not self.command_uid

    @property
    def is_told(self) -> bool:
        """Whether the terminal may have the command; it can answer before the journal has stored that it was sent."""
        return self.state in UNDER_WAY or (self.state is ItemState.PENDING and bool(self.command_uid))

    def give(self, command_uid: str) -> None:
        """Notes the command that was put into the journal for this terminal."""
        self.command_uid, self.came_back = command_uid, False
        self.attempts += 1
        self.on_change(self)

    def on_step(self, command_uid: str, state: CommandState, reason: str, *, terms: Terms, now_us: int) -> None:
        """Its command has reached a new state in the journal."""
        if command_uid != self.command_uid or self.state in ENDED:
            return
        match state:
            case CommandState.SENT if self.state is ItemState.PENDING:
                self._move(ItemState.SENT, now_us)
            case CommandState.DELIVERED | CommandState.ANSWERED if self.deadline_us is None:
                self.deadline_us = now_us + terms.timeout_us
                if self.state is ItemState.PENDING:
                    self._move(ItemState.SENT, now_us)
                else:
                    self.on_change(self)
            case CommandState.EXPIRED | CommandState.FAILED:
                self.fail(reason, terms=terms, now_us=now_us)

    def on_version(self, version: str, *, terms: Terms, now_us: int) -> None:
        """The terminal has reported its version; an old one after a reconnect means that the upgrade was lost."""
        if self.state in ENDED:
            return
        self.version = version[:64]
        if version == terms.version:
            self.reason = "" if self.attempts else HAD_VERSION
            self._end(ItemState.DONE, now_us)
        elif self.state in UNDER_WAY and self.came_back:
            self.fail(CAME_BACK.format(version=version[:64]), terms=terms, now_us=now_us)
        else:
            self.on_change(self)

    def on_notice(self, notice: UpgradeNotice, *, terms: Terms, now_us: int) -> None:
        """The terminal has sent a notice about the upgrade (channel ``n``)."""
        if not self.is_told:
            return
        if notice.is_ok:
            self.on_download(terms=terms, now_us=now_us)
        else:
            self.fail(notice.reason or REPORTS_FAILURE, terms=terms, now_us=now_us)

    def on_download(self, *, terms: Terms, now_us: int) -> None:
        """The terminal fetches the firmware file; its time limit starts again."""
        if not self.is_told:
            return
        self.deadline_us = now_us + terms.timeout_us
        if self.state is ItemState.DOWNLOADING:
            self.on_change(self)
        else:
            self.sent_us = self.sent_us or now_us
            self._move(ItemState.DOWNLOADING, now_us)

    def on_reconnect(self) -> None:
        """The terminal has connected again."""
        self.came_back = self.state in UNDER_WAY

    def check_time(self, *, terms: Terms, now_us: int) -> None:
        """Fails the attempt when its deadline has passed."""
        if self.state in UNDER_WAY and self.deadline_us is not None and self.deadline_us <= now_us:
            reason = NOT_REPORTED.format(version=terms.version, seconds=terms.timeout_us / 1e6)
            self.fail(reason, terms=terms, now_us=now_us)

    def fail(self, reason: str, *, terms: Terms, now_us: int) -> None:
        """The attempt has failed: another one follows while ``terms`` allow one."""
        self.failures += 1
        self.reason = reason[:255]
        if self.failures > terms.retries:
            self._end(ItemState.FAILED, now_us)
        else:
            self._wait()

    def recall(self, reason: str) -> None:
        """The command was withdrawn before it was sent; that counts as no failure."""
        self.reason = reason
        self._wait()

    def explain(self, reason: str) -> None:
        """Why nothing more comes of it, where nothing else was said before."""
        if not self.reason:
            self.reason = reason
            self.on_change(self)

    def _wait(self) -> None:
        self.state, self.command_uid, self.deadline_us = ItemState.PENDING, "", None
        self.sent_us = self.downloading_us = None
        self.on_change(self)

    def _move(self, state: ItemState, now_us: int) -> None:
        self.state = state
        if state is ItemState.SENT:
            self.sent_us, self.reason = now_us, ""
        else:
            self.downloading_us = now_us
        self.on_change(self)

    def _end(self, state: ItemState, now_us: int) -> None:
        self.state, self.ended_us, self.deadline_us = state, now_us, None
        self.on_change(self)


class UpgradeNotice(NamedTuple):
    """A notice from a terminal about its upgrade (channel ``n``)."""

    is_ok: bool
    reason: str
