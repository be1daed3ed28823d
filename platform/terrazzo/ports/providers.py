"""The ports to mail servers and HTTP providers: what is handed over, and what came of it.

What matters of an attempt is whether another one is safe: ``LATER`` was certainly not accepted and may be tried again,
``FAILED`` was refused for good, ``UNKNOWN`` may have been accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import msgspec


class Outcome(Enum):
    """What came of one attempt."""

    SENT = "sent"
    LATER = "later"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Attachment(msgspec.Struct, frozen=True):
    """A file that goes with an e-mail."""

    name: str
    media_type: str
    content: bytes


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """One e-mail. ``envelope`` are those that it is handed over for now, ``to`` the ones that its head names."""

    message_id: str
    sender: str
    to: tuple[str, ...]
    envelope: tuple[str, ...]
    subject: str
    text: str
    date_us: int
    attachments: tuple[Attachment, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """What a server said about one recipient, or about all of a message."""

    outcome: Outcome
    code: str = ""  # of SMTP
    message: str = ""


class Mailer(Protocol):
    """A mail server."""

    async def send(self, mail: Mail) -> Mapping[str, Verdict]:
        """Hands an e-mail over; a verdict for each of its ``envelope``. Never raises for what a server can do."""


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a provider, or to a webhook."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_s: float
    tls_ca: str = ""  # a PEM file; empty: the system's


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """``SENT``: there was an answer, whatever its ``status``; else ``reason`` says why there was none."""

    outcome: Outcome
    status: int = 0
    body: str = ""  # at most its first 64 KiB
    reason: str = ""


class HttpCaller(Protocol):
    """The way to HTTP providers."""

    async def call(self, call: HttpCall) -> HttpAnswer:
        """Sends one request to an allowed address, follows no redirect. Never raises for what a server can do."""
