"""The ports to mail servers and HTTP providers: what is sent, and the outcome of an attempt.

An outcome says whether another attempt is safe: after ``LATER`` it is, as nothing was accepted; ``FAILED`` was refused
for good; ``UNKNOWN`` may have been accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import msgspec

NO_ANSWER = "no answer within {seconds:g} s"
NOT_PUBLIC = "{host} is not a public address (messenger.allow_private)"
NOT_AN_IP_ADDRESS = "{host} is not an address"
NOT_AN_ADDRESS = "not an address: {error}"
NOT_AN_EMAIL = "not an e-mail: {error}"
LOGIN_REFUSED = "login refused: {said}"
NOT_CAPABLE = "the server can't do what is configured: {said}"
NO_ANSWER_TO_MAIL = "no answer after the mail was handed over: {error}"
PROVIDER_REASONS = (
    NO_ANSWER,
    NOT_PUBLIC,
    NOT_AN_IP_ADDRESS,
    NOT_AN_ADDRESS,
    NOT_AN_EMAIL,
    LOGIN_REFUSED,
    NOT_CAPABLE,
    NO_ANSWER_TO_MAIL,
)
"""What adapters say of attempts that failed, beside the words of servers, networks and TLS, which stay as they are."""


class SendOutcome(Enum):
    """The outcome of one attempt."""

    SENT = "sent"
    LATER = "later"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Attachment(msgspec.Struct, frozen=True):
    """A file attached to an e-mail."""

    name: str
    media_type: str
    content: bytes


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """One e-mail. ``envelope``: the recipients of this attempt; ``to``: those named in its header."""

    message_id: str
    sender: str
    to: tuple[str, ...]
    envelope: tuple[str, ...]
    subject: str
    text: str
    date_us: int
    attachments: tuple[Attachment, ...] = ()


class SendVerdict(msgspec.Struct, frozen=True):
    """A server's answer for one recipient, or for the whole message."""

    outcome: SendOutcome
    code: str = ""  # of SMTP
    message: str = ""


class Mailer(Protocol):
    """A mail server, as the messenger uses it."""

    async def send(self, mail: Mail) -> Mapping[str, SendVerdict]:
        """Sends an e-mail; returns a verdict for each address in ``envelope``. Never raises for a server's failures."""


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a provider, or to a webhook."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_s: float
    tls_ca: str = ""  # a PEM file; empty: the system's


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """``SENT``: there was an answer, whatever its ``status``; otherwise ``reason`` says why there was none."""

    outcome: SendOutcome
    status: int = 0
    body: str = ""  # at most its first 64 KiB
    reason: str = ""


class HttpCaller(Protocol):
    """Sends requests to HTTP providers and webhooks."""

    async def call(self, call: HttpCall) -> HttpAnswer:
        """Sends one request to an allowed address, without redirects. Never raises for the server's failures."""
