"""``[messenger]`` and ``[[messenger.project]]``: their keys and the checks across them (docs/configuration.md)."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from terrazzo.config.values import ConfigError
from terrazzo.domain.template import names_in

Text = Annotated[str, Meta(min_length=1)]
Timeout = Annotated[int, Meta(ge=1, le=120)]

COMMON_NAMES = ("recipient", "recipients", "project_id", "object_id", "message_id", "created")
NAMES: dict[str, tuple[str, ...]] = {
    "sms": ("msgdata", "equipment_id", "equipment_name", "datetime"),
    "android": (
        *("Body", "Body.Ticker", "Body.Title", "Body.Text", "Body.Remark"),
        *("AfterOpen", "Url", "DesText", "id", "type"),
    ),
    "ios": (
        *("APS", "APS.AlertTitle", "APS.AlertSubtitle", "APS.AlertBody"),
        *("Extra", "Extra.id", "Extra.type", "DesText", "type"),
    ),
    "wechat": (
        *("data_msg", "first", "keyword1", "keyword2", "keyword3", "keyword4", "remark"),
        *(f"{name}.{part}" for name in ("first", "remark") for part in ("value", "color")),
        *(f"keyword{number}.{part}" for number in range(1, 5) for part in ("value", "color")),
    ),
}
"""The placeholders that the body of each kind of HTTP provider may contain, besides ``COMMON_NAMES``."""


class EmailSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[messenger.project.email]``: the mail server of a project."""

    host: Text
    sender: Text
    port: Annotated[int, Meta(ge=1, le=65_535)] = 587
    tls: Literal["starttls", "tls", "off"] = "starttls"
    tls_ca: str = ""
    username: str = ""
    password: str = ""
    timeout_s: Timeout = 30
    resend_unknown: bool = False


class HttpSection(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP provider of a project: ``android``, ``ios`` or ``wechat``."""

    url: Text
    body: Text
    method: Literal["POST", "PUT"] = "POST"
    format: Literal["json", "form"] = "json"
    headers: dict[str, str] = {}
    per_recipient: bool = False
    code_field: str = ""
    message_field: str = ""
    success: tuple[str, ...] = ()
    tls_ca: str = ""
    timeout_s: Timeout = 15
    resend_unknown: bool = False


class SmsSection(HttpSection, frozen=True, kw_only=True):
    """``[messenger.project.sms]``: an SMS provider, of one of two variants (section 2 "Messenger")."""

    variant: Literal["a", "b"] = "a"


class MessengerProjectSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[[messenger.project]]``: providers by channel, and limits."""

    id: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    name: Text
    company_id: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    per_minute: Annotated[int, Meta(ge=0, le=1_000_000)] = 60
    attempts: Annotated[int, Meta(ge=1, le=100)] = 6
    expiry_s: Annotated[int, Meta(ge=1, le=30 * 86_400)] = 3_600
    email: EmailSection | None = None
    sms: SmsSection | None = None
    android: HttpSection | None = None
    ios: HttpSection | None = None
    wechat: HttpSection | None = None


class MessengerSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[messenger]``: limits of all projects, and the projects."""

    allow_private: tuple[str, ...] = ()
    attachment_bytes: Annotated[int, Meta(ge=0, le=100 * 2**20)] = 5 * 2**20
    queued_messages: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_000
    webhook_timeout_s: Timeout = 10
    project: tuple[MessengerProjectSection, ...] = ()


def check_messenger(section: MessengerSection) -> None:
    """Checks what the types of single keys can't: networks, unique ids, mail servers and providers.

    Raises:
        ConfigError: names the key.
    """
    for number, network in enumerate(section.allow_private, 1):
        try:
            ip_network(network)
        except ValueError as error:
            raise ConfigError(f"messenger.allow_private[{number}]: {error}") from None
    seen: dict[int, int] = {}
    for number, project in enumerate(section.project, 1):
        source = f"messenger.project[{number}]"
        if project.id in seen:
            raise ConfigError(f"{source}.id: project[{seen[project.id]}] has the id {project.id} already")
        seen[project.id] = number
        if project.email is not None:
            _check_email(project.email, f"{source}.email")
        for channel, provider in providers_of(project):
            _check_provider(provider, channel, f"{source}.{channel}")


def providers_of(project: MessengerProjectSection) -> Iterator[tuple[str, HttpSection]]:
    """The HTTP providers of a project, each with its channel."""
    for channel in NAMES:
        provider: HttpSection | None = getattr(project, channel)
        if provider is not None:
            yield channel, provider


def parse_body(section: HttpSection) -> Any:
    """The template of a provider's request body, parsed from JSON, also where it is sent as a form."""
    return msgspec.json.decode(section.body)


def _check_email(email: EmailSection, source: str) -> None:
    if email.password and not email.username:
        raise ConfigError(f"{source}.username: is required with {source}.password")
    if email.username and email.tls == "off":
        raise ConfigError(f"{source}.tls: off would send the password in the clear; expected starttls or tls")
    if "@" not in email.sender or any(c in email.sender for c in "\r\n"):
        raise ConfigError(f"{source}.sender: expected an address, or name <address>")
    _check_file(email.tls_ca, f"{source}.tls_ca")


def _check_provider(provider: HttpSection, channel: str, source: str) -> None:
    try:
        parts = urlsplit(provider.url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or names_of_url(provider.url):
        raise ConfigError(f"{source}.url: expected http://host/path or https://host/path, without placeholders")
    _check_file(provider.tls_ca, f"{source}.tls_ca")
    for name, value in provider.headers.items():
        if any(not c.isprintable() for c in name + value) or not name.isascii() or ":" in name or " " in name:
            raise ConfigError(f"{source}.headers.{name[:64]}: not a header")
    try:
        body = parse_body(provider)
    except (msgspec.MsgspecError, RecursionError):
        raise ConfigError(f"{source}.body: expected JSON with placeholders such as {{msgdata}} in its texts") from None
    if not isinstance(body, dict) or (provider.format == "form" and any(isinstance(v, dict) for v in body.values())):
        raise ConfigError(
            f"{source}.body: expected an object{', flat for a form' if provider.format == 'form' else ''}"
        )
    known = (*COMMON_NAMES, *NAMES[channel])
    for name in (*names_in(body), *names_in(dict(provider.headers))):
        if name not in known:
            raise ConfigError(f"{source}.body: {{{name}}} is unknown; there are {', '.join(known)}")


def names_of_url(url: str) -> list[str]:
    """The placeholders in a provider's URL. There must be none: a message must not choose the host that is called."""
    return [*names_in(url)]


def _check_file(file: str, source: str) -> None:
    if file and not Path(file).expanduser().is_file():
        raise ConfigError(f"{source}: no file {file!r:.200}")
