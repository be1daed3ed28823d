"""The channels: a message becomes a mail or an HTTP request, and the answer to it a receipt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlencode

import msgspec

from terrazzo.config.messenger import EmailSection, HttpSection, parse_body
from terrazzo.domain.template import as_text, fill, fill_text, flatten
from terrazzo.messenger.masking import Mask, secrets_of, shown_url
from terrazzo.messenger.message import ANSWERED, RULE_DELETED, Message, Receipt
from terrazzo.messenger.signature import signed_headers
from terrazzo.ports.providers import (
    Attachment,
    HttpAnswer,
    HttpCall,
    HttpCaller,
    Mail,
    Mailer,
    SendOutcome,
    SendVerdict,
)
from terrazzo.times import now_us

MOST_KEPT = 4_096  # characters of an answer
_REFUSED_FOR_NOW = {408, 425, 429, 503}  # statuses that say that nothing was done
_WORST = (SendOutcome.UNKNOWN, SendOutcome.FAILED, SendOutcome.LATER, SendOutcome.SENT)


class EmailChannel:
    """Sends e-mail by SMTP, with the settings of a project's section ``email``."""

    def __init__(self, mailer: Mailer, section: EmailSection) -> None:
        self.resend_unknown = section.resend_unknown
        self._mailer = mailer
        self._sender = section.sender
        self._mask = Mask([section.password])

    async def send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        """Makes one attempt: hands the mail to the server for the recipients that are still ``pending``."""
        mail = self._mail(message, attachments)
        verdicts = await self._mailer.send(mail)
        earlier = message.response if isinstance(message.response, dict) else {}
        told = {**earlier.get("recipients", {}), **{to: self._told(each) for to, each in verdicts.items()}}
        worst = min(verdicts.values(), key=lambda each: _WORST.index(each.outcome))
        later = tuple(to for to, each in verdicts.items() if each.outcome is SendOutcome.LATER)
        outcome = SendOutcome.LATER if later else _sum_up(told)
        request = {"to": list(mail.envelope), "subject": mail.subject, "files": [file.name for file in attachments]}
        return Receipt(
            outcome=outcome,
            svc_code=worst.code,
            svc_msg=self._mask.hide(worst.message)[:MOST_KEPT],
            reason=_reason(outcome, told),
            request=request,
            response={"message_id": mail.message_id, "recipients": told},
            pending=later or tuple(to for to, each in verdicts.items() if each.outcome is SendOutcome.UNKNOWN),
        )

    def _told(self, verdict: SendVerdict) -> dict[str, str]:
        message = self._mask.hide(verdict.message)[:MOST_KEPT]
        return {"outcome": verdict.outcome.value, "code": verdict.code, "message": message}

    def _mail(self, message: Message, attachments: tuple[Attachment, ...]) -> Mail:
        domain = parseaddr(self._sender)[1].rpartition("@")[2]
        return Mail(
            message_id=f"<{message.uid}@{domain}>",  # the same of every attempt: whoever gets it twice sees it once
            sender=self._sender,
            to=message.recipients,
            envelope=message.pending,
            subject=message.content["EmailSubject"],
            text=message.content["EmailContent"],
            date_us=message.created,
            attachments=attachments,
        )


class HttpChannel:
    """Sends SMS, app push and official-account messages by one request to an HTTP provider."""

    def __init__(self, caller: HttpCaller, section: HttpSection) -> None:
        self.resend_unknown = section.resend_unknown
        self._caller = caller
        self._section = section
        self._template = parse_body(section)
        self._mask = Mask([section.url, *secrets_of(section.url, section.headers, self._template)])

    async def send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        """Makes one attempt, which is one request."""
        call = self._call(message)
        answer = await self._caller.call(call)
        request = {
            "method": call.method,
            "url": shown_url(call.url),
            "body": self._mask.hide(call.body.decode("utf-8", "replace")),
        }
        return judge(answer, self._section, self._mask, request, message)

    def _call(self, message: Message) -> HttpCall:
        section, values = self._section, values_of(message)
        body = fill(self._template, values)
        is_form = section.format == "form"
        media_type = "application/x-www-form-urlencoded" if is_form else "application/json"
        sent = urlencode({k: as_text(v) for k, v in body.items()}).encode() if is_form else msgspec.json.encode(body)
        filled = {name: header_text(fill_text(value, values)) for name, value in section.headers.items()}
        return HttpCall(
            method=section.method,
            url=section.url,
            headers={"Content-Type": media_type, **filled},
            body=sent,
            timeout_s=section.timeout_s,
            tls_ca=section.tls_ca,
        )


class WebhookChannel:
    """Signed requests to addresses that rules name.

    Args:
        secret_of: the URL and the secret of a rule, by its id; None where there is no such rule any more.
        clock: UTC microseconds.
    """

    resend_unknown = True  # receivers know a delivery again by its id

    def __init__(
        self,
        caller: HttpCaller,
        secret_of: Callable[[int], Awaitable[tuple[str, str] | None]],
        *,
        timeout_s: float,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._caller = caller
        self._secret_of = secret_of
        self._timeout_s = timeout_s
        self._clock = clock

    async def send(self, message: Message, attachments: tuple[Attachment, ...]) -> Receipt:
        """Makes one attempt: one request, signed anew, because the signature covers the time."""
        found = await self._secret_of(message.rule_id or 0)
        if found is None:
            return Receipt(outcome=SendOutcome.FAILED, reason=RULE_DELETED)
        url, secret = found
        body = msgspec.json.encode(message.content)
        headers = signed_headers(body, secret, time_s=self._clock() // 1_000_000, delivery=message.uid)
        call = HttpCall(
            method="POST",
            url=url,
            headers={"Content-Type": "application/json", **headers},
            body=body,
            timeout_s=self._timeout_s,
        )
        answer = await self._caller.call(call)
        mask = Mask([secret, url, *secrets_of(url, {}, {})])
        return judge(answer, _WEBHOOK, mask, {"method": "POST", "url": shown_url(url)}, message)


class _Webhook(msgspec.Struct, frozen=True):
    code_field: str = ""
    message_field: str = ""
    success: tuple[str, ...] = ()


_WEBHOOK = _Webhook()


def judge(
    answer: HttpAnswer, section: HttpSection | _Webhook, mask: Mask, request: Mapping[str, Any], message: Message
) -> Receipt:
    """The receipt of an HTTP attempt: 2xx with a success code is sent, 408, 425, 429 and 503 are tried again.

    Args:
        answer: of the provider or the receiver, or why there is none.
        section: where the answer has its code and its message, and which codes mean success.
        request: what of the request is journaled, secrets masked.
    """
    if answer.outcome is not SendOutcome.SENT:
        reason = mask.hide(answer.reason)
        return Receipt(outcome=answer.outcome, svc_msg=reason, reason=reason, request=request, pending=message.pending)
    body = mask.hide(answer.body[:MOST_KEPT])
    content = _read(answer.body)
    code = _member(content, section.code_field) or str(answer.status)
    said = mask.hide(_member(content, section.message_field) or body)[:MOST_KEPT]
    is_accepted = 200 <= answer.status < 300
    is_success = is_accepted and (not section.success or code in section.success)
    outcome = (
        SendOutcome.SENT
        if is_success
        else SendOutcome.LATER
        if answer.status in _REFUSED_FOR_NOW
        else SendOutcome.FAILED
    )
    return Receipt(
        outcome=outcome,
        svc_code=code[:64],
        svc_msg=said,
        reason="" if is_success else ANSWERED.format(status=answer.status, code=code[:64]),
        request=request,
        response={"status": answer.status, "body": body},
        pending=message.pending if outcome is SendOutcome.LATER else (),
    )


def values_of(message: Message) -> dict[str, Any]:
    """The placeholders of a provider's templates, name to value; the message's content flattened by dots."""
    return {
        **flatten(message.content),
        "recipients": list(message.recipients),
        "recipient": message.recipients[0] if message.recipients else "",
        "project_id": message.project_id,
        "object_id": message.object_id,
        "message_id": message.uid,
        "created": message.created // 1_000_000,
    }


def header_text(value: str) -> str:
    """A value without the characters that may not stand in an HTTP header, line ends above all."""
    return "".join(character for character in value if character.isprintable())


def _sum_up(told: Mapping[str, Mapping[str, str]]) -> SendOutcome:
    """The outcome for all recipients together: the worst that one of them has."""
    return min((SendOutcome(each["outcome"]) for each in told.values()), key=_WORST.index)


def _reason(outcome: SendOutcome, told: Mapping[str, Mapping[str, str]]) -> str:
    if outcome is SendOutcome.SENT:
        return ""
    missing = [
        f"{to}: {each['code']} {each['message']}".strip() for to, each in told.items() if each["outcome"] != "sent"
    ]
    return "; ".join(missing)[:MOST_KEPT]


def _read(body: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None  # providers may answer anything; their status still counts


def _member(content: Any, path: str) -> str:
    """A member of a JSON answer by its path with dots, as text; empty where there is none."""
    if not path:
        return ""
    for name in path.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return "" if content is None else as_text(content)
