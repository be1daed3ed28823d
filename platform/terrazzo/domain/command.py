"""A command to a terminal: the request, its states, and the steps between them for the journal."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import msgspec

from terrazzo.domain.command_payload import Firmware


class CommandState(Enum):
    """Where a command stands."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    ANSWERED = "answered"
    EXPIRED = "expired"
    FAILED = "failed"


TERMINAL_DELETED = "the terminal was deleted"
NOT_THERE = "the terminal was not there in time"
NOT_ACKNOWLEDGED = "sent, not acknowledged in time"
REFUSED = "refused by the terminal"
SESSION_ENDED = "the session ended before the terminal acknowledged it"
CAMPAIGN_PAUSED = "the campaign was paused"
CAMPAIGN_ABORTED = "the campaign was aborted"
RECALLED_BY = "recalled by {user}"
COMMAND_REASONS = (
    TERMINAL_DELETED,
    NOT_THERE,
    NOT_ACKNOWLEDGED,
    REFUSED,
    SESSION_ENDED,
    CAMPAIGN_PAUSED,
    CAMPAIGN_ABORTED,
    RECALLED_BY,
)
"""Why a command failed, expired or waits again, as the journal has it; an aborted campaign may give its own."""


class CommandStep(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a command's state, as the journal stores it."""

    uid: str
    state: CommandState
    time_us: int
    reason: str = ""
    answer: str | None = None
    terminal_id: str = ""  # with an answer: who gave it


class FirmwareLink(NamedTuple):
    """The URL of a firmware file; size in bytes and SHA-256 in hexadecimal where the file is stored here."""

    url: str
    size: int | None = None
    sha256: str = ""


class CommandRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send a command to a terminal.

    With a ``point`` that point is set, whatever the command is called. ``firmware``: where ``AXUpgrade`` finds its
    files instead of in the terminal's configuration. A repeated ``idempotency_key`` means the command that was first
    given with it. ``expiry_s``: how long it may wait for its terminal, at most as long as any may; ``rule_id``: the
    rule that gives it.
    """

    terminal_id: str
    command: str
    value: Any
    object_id: int | None = None
    point: str | None = None
    idempotency_key: str | None = None
    firmware: Firmware | None = None
    expiry_s: int | None = None
    rule_id: int | None = None
