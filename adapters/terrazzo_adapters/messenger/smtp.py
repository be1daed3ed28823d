"""E-mail over SMTP (RFC 5321), one connection for each mail, with an outcome for each recipient.

Until the end of the data the server has accepted nothing, and another attempt is safe. Once the data has been sent,
only the server's answer says what became of it: without one the outcome is unknown.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime, parseaddr

import aiosmtplib
import msgspec

from terrazzo.ports.providers import (
    LOGIN_REFUSED,
    NO_ANSWER_TO_MAIL,
    NOT_AN_EMAIL,
    NOT_CAPABLE,
    Mail,
    SendOutcome,
    SendVerdict,
)
from terrazzo.times import to_datetime

_QUIT_S = 2.0


class MailServer(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a mail server and the login; ``tls`` is ``starttls``, ``tls`` or ``off``."""

    host: str
    port: int
    tls: str = "starttls"
    tls_ca: str = ""
    username: str = ""
    password: str = ""
    timeout_s: float = 30


class SmtpMailer:
    """Implements ``terrazzo.ports.providers.Mailer``."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def send(self, mail: Mail) -> Mapping[str, SendVerdict]:
        """See ``Mailer.send``."""
        try:
            content = build(mail)
        except (ValueError, UnicodeError) as error:
            return _all(mail, SendVerdict(SendOutcome.FAILED, "", NOT_AN_EMAIL.format(error=error)))
        try:
            client = self._client()
            await client.connect()
            try:
                return await self._transact(client, mail, content)
            finally:
                await _part(client)
        except aiosmtplib.SMTPAuthenticationError as error:
            return _all(mail, _verdict(error.code, LOGIN_REFUSED.format(said=error.message)))
        except aiosmtplib.SMTPResponseException as error:
            return _all(mail, _verdict(error.code, error.message))
        except aiosmtplib.SMTPNotSupported as error:
            return _all(mail, SendVerdict(SendOutcome.FAILED, "", NOT_CAPABLE.format(said=error.message)))
        except (aiosmtplib.SMTPException, OSError) as error:
            return _all(mail, SendVerdict(SendOutcome.LATER, "", _words(error)))

    def _client(self) -> aiosmtplib.SMTP:
        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.tls == "tls",
            start_tls=server.tls == "starttls",
            tls_context=ssl.create_default_context(cafile=server.tls_ca or None) if server.tls != "off" else None,
            username=server.username or None,
            password=server.password or None,
            timeout=server.timeout_s,
        )

    async def _transact(self, client: aiosmtplib.SMTP, mail: Mail, content: bytes) -> Mapping[str, SendVerdict]:
        verdicts: dict[str, SendVerdict] = {}
        await client.mail(parseaddr(mail.sender)[1])
        taken = []
        for recipient in mail.envelope:
            try:
                await client.rcpt(recipient)
            except aiosmtplib.SMTPResponseException as error:  # of this recipient alone
                verdicts[recipient] = _verdict(error.code, error.message)
            else:
                taken.append(recipient)
        if taken:
            verdict = await self._hand_over(client, content)
            verdicts |= dict.fromkeys(taken, verdict)
        return verdicts

    async def _hand_over(self, client: aiosmtplib.SMTP, content: bytes) -> SendVerdict:
        try:
            code, message = await client.data(content)
        except aiosmtplib.SMTPResponseException as error:
            return _verdict(error.code, error.message)
        except (aiosmtplib.SMTPException, OSError) as error:
            return SendVerdict(SendOutcome.UNKNOWN, "", NO_ANSWER_TO_MAIL.format(error=_words(error)))
        return SendVerdict(SendOutcome.SENT, str(code), message)


async def _part(client: aiosmtplib.SMTP) -> None:
    """Sends QUIT; whatever the server answers, the outcome stays as it is."""
    try:
        await client.quit(timeout=_QUIT_S)
    except (aiosmtplib.SMTPException, OSError):
        client.close()


def build(mail: Mail) -> bytes:
    """The mail as MIME; 8-bit text is encoded, so that any server accepts it.

    Raises:
        ValueError: a header has an impossible value, such as an address with a line break.
    """
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"] = mail.sender
    message["To"] = ", ".join(mail.to)
    message["Subject"] = " ".join(mail.subject.splitlines())
    message["Date"] = format_datetime(to_datetime(mail.date_us))
    message["Message-ID"] = mail.message_id
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answers of absence
    message.set_content(mail.text, cte="quoted-printable" if mail.text.isascii() else "base64")
    for file in mail.attachments:
        main, _, sub = file.media_type.partition("/")
        message.add_attachment(
            file.content, maintype=main or "application", subtype=sub or "octet-stream", filename=file.name
        )
    return message.as_bytes()


def _verdict(code: int, message: str) -> SendVerdict:
    """The outcome of a reply code (RFC 5321 4.2.1): 4yz may be tried again, 5yz may not."""
    return SendVerdict(SendOutcome.LATER if 400 <= code < 500 else SendOutcome.FAILED, str(code), message)


def _all(mail: Mail, verdict: SendVerdict) -> dict[str, SendVerdict]:
    return dict.fromkeys(mail.envelope, verdict)


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
