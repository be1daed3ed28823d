"""``MessageDraft``: a message to be sent by e-mail, SMS, push or webhook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from terrazzo.ports.providers import Attachment

WEBHOOKS = 0
"""The ``project_id`` of rules' webhooks, which belong to no project of the configuration."""


class MessageDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was asked for and is not yet in the messenger's journal."""

    company_id: int
    project_id: int
    channel: str
    recipients: tuple[str, ...]
    content: Mapping[str, Any]
    object_id: int | None = None
    rule_id: int | None = None
    created_by: int = 0
    idempotency_key: str | None = None
    attachments: tuple[Attachment, ...] = ()
    expiry_s: int | None = None  # None: the project's
