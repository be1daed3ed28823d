"""A real SMTP server (aiosmtpd) on a loopback port, and what it was handed."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

USER, PASSWORD = "plant", "a mail password"


@dataclass
class MailBox:
    """Answers as a test says; keeps what it took."""

    rcpt_answers: dict[str, list[str]] = field(default_factory=dict)  # address -> answers in turn, then 250
    data_answers: list[str] = field(default_factory=list)
    hangs_after_data: bool = False
    taken: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    over_tls: list[bool] = field(default_factory=list)
    attempts: int = 0

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        self.attempts += 1
        answers = self.rcpt_answers.get(address)
        if answers:
            return answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.data_answers:
            return self.data_answers.pop(0)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.taken.append((list(envelope.rcpt_tos), message))
        self.over_tls.append(session.ssl is not None)
        if self.hangs_after_data:
            await asyncio.sleep(3_600)  # never answers; ends with the server
        return "250 taken as m-1"


class MailServer:
    """The server; ``async with`` it."""

    def __init__(self, box: MailBox, *, tls: ssl.SSLContext | None = None, login: bool = False) -> None:
        self.box = box
        self._tls = tls
        self._login = login
        self.port = 0

    def _protocol(self) -> SMTP:
        def authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
            assert isinstance(data, LoginPassword)
            return AuthResult(success=(data.login, data.password) == (USER.encode(), PASSWORD.encode()), handled=False)

        return SMTP(
            self.box,
            hostname="mail.test",
            tls_context=self._tls,
            require_starttls=self._tls is not None,
            auth_required=self._login,
            auth_require_tls=self._tls is not None,
            authenticator=authenticate,
            enable_SMTPUTF8=True,
        )

    async def __aenter__(self) -> MailServer:
        self._server = await asyncio.get_running_loop().create_server(self._protocol, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
