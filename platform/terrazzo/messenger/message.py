"""A message that is being sent, the receipt of one attempt, and the port of the channels."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

import msgspec

from terrazzo.ports.providers import Attachment, SendOutcome

INTERRUPTED = "the attempt was interrupted: it may have arrived"
PLATFORM_ENDED = "the platform ended while it was being sent: it may have arrived"
NOT_SENT = "interrupted before it was sent"
NO_CHANNEL = "the configuration has no {channel} in project {project}"
INTERNAL = "internal error during the attempt; the log has it"
GIVEN_UP = "given up after {attempts} attempts: {reason}"
NO_PROJECT = "the project is no longer configured"
RULE_DELETED = "the rule was deleted"
ANSWERED = "the provider answered {status}, code {code}"
MESSAGE_REASONS = (
    INTERRUPTED,
    PLATFORM_ENDED,
    NOT_SENT,
    NO_CHANNEL,
    INTERNAL,
    GIVEN_UP,
    NO_PROJECT,
    RULE_DELETED,
    ANSWERED,
)
"""Why a message failed or waits again, as the journal has it; adapters and servers may give their own."""


class MessageState(Enum):
    """Where a message stands."""

    QUEUED = "queued"
    SENDING = "sending"  # journaled before the attempt: found so after a crash, its end is unknown
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A journaled message that is being sent; times in UTC microseconds."""

    id: int
    uid: str
    project_id: int
    channel: str
    recipients: tuple[str, ...]
    pending: tuple[str, ...]  # the recipients that it has still to be sent to
    content: Mapping[str, Any]
    object_id: int | None
    rule_id: int | None
    company_id: int
    attempts: int  # this one included
    created: int
    expires_us: int
    response: Any  # of earlier attempts


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt; ``pending`` are the recipients that the message has still to be sent to.

    ``svc_code`` and ``svc_msg`` are the provider's words; ``request`` and ``response`` are journaled, secrets masked.
    """

    outcome: SendOutcome
    svc_code: str = ""
    svc_msg: str = ""
    reason: str = ""
    request: Any = None
    response: Any = None
    pending: tuple[str, ...] = ()


class MessageChannel(Protocol):
    """Sends messages of one kind: e-mail, SMS, push, official account or webhook."""

    resend_unknown: bool  # whether what may have been sent may be sent again

    async def send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        """Makes one attempt. Whatever the other side does is a receipt, never an exception."""
