"""A message on its way, and what came of one attempt to send it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

import msgspec

from terrazzo.ports.providers import Attachment, Outcome


class MessageState(Enum):
    """Where a message stands."""

    QUEUED = "queued"
    SENDING = "sending"  # journaled before the attempt: found so after a crash, its end is unknown
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One that is being sent."""

    id: int
    uid: str
    project_id: int
    channel: str
    recipients: tuple[str, ...]
    pending: tuple[str, ...]
    content: Mapping[str, Any]
    object_id: int | None
    rule_id: int | None
    company_id: int
    attempts: int  # this one included
    created: int
    expires_us: int
    response: Any  # of earlier attempts


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt; ``pending`` are the recipients that it has still to be sent to."""

    outcome: Outcome
    svc_code: str = ""
    svc_msg: str = ""
    reason: str = ""
    request: Any = None
    response: Any = None
    pending: tuple[str, ...] = ()


class Channel(Protocol):
    """One way to send messages."""

    resend_unknown: bool  # whether what may have been sent may be sent again

    async def send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        """Makes one attempt. Never raises for what the other side can do."""
