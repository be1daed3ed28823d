"""Definition of the entity ``rule``: which events and labels are sent to whom, over which channel, and when."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from terrazzo.database.entity import authors, define
from terrazzo.database.field import Field, flag, number, secret, structure, text
from terrazzo.domain.events.definition import SEVERITIES

KINDS = ("event", "opened", "closed")
CHANNELS = ("email", "sms", "android", "ios", "wechat", "webhook")
PLACEHOLDERS = ("object", "object_id", "kind", "code", "label", "value", "time", "count")
"""The placeholders that templates of rules may contain."""

MOST_CODES = 1_000
MOST_RECIPIENTS = 100
MIN_SECRET = 16
_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.]+)\}")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def check_template(template: str) -> None:
    """Checks that a template names only placeholders of ``PLACEHOLDERS``. Raises ``ValueError``."""
    for name in _PLACEHOLDER.findall(template):
        if name not in PLACEHOLDERS:
            raise ValueError(f"{{{name}}}: unknown; there are {', '.join(PLACEHOLDERS)}")


def check_clock(time: str) -> None:
    """Checks a time of day, ``HH:MM`` in the zone ``time.zone``. Raises ``ValueError``."""
    if not _CLOCK.fullmatch(time):
        raise ValueError(f"expected HH:MM, got {time!r:.32}")


def check_url(url: str) -> None:
    """Checks the form of a webhook's URL; whether its address is a private one is checked at each call.

    Raises:
        ValueError: it is no http or https URL.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or "@" in parts.netloc or not url.isascii() or any(not c.isprintable() or c == " " for c in url):
        raise ValueError("expected http://host/path or https://host/path, without user and password")


def check_kinds(kinds: Any) -> None:
    """Checks that a list has one or more of ``KINDS``, and nothing else. Raises ``ValueError``."""
    if not isinstance(kinds, list) or not kinds or any(kind not in KINDS for kind in kinds):
        raise ValueError(f"expected an array of {', '.join(KINDS)}")


def check_texts(most: int) -> Any:
    """Makes a check for a column that holds an array of at most ``most`` texts."""

    def check(texts: Any) -> None:
        if not isinstance(texts, list):
            raise ValueError("expected an array of texts")
        if len(texts) > most:
            raise ValueError(f"at most {most} elements, got {len(texts)}")
        for position, each in enumerate(texts, 1):
            if not isinstance(each, str) or not each.strip() or len(each) > 320:
                raise ValueError(f"element {position}: expected text of 1 to 320 characters")

    return check


def check_secret(key: str) -> None:
    """Checks the key that webhooks are signed with. Raises ``ValueError``."""
    if len(key) < MIN_SECRET:
        raise ValueError(f"expected at least {MIN_SECRET} characters")


def _listed(name: str, check: Any, **more: Any) -> Field:
    return structure(name, read=_read_list, check=check, **more)


def _read_list(value: Any) -> Any:
    """Splits text with items separated by commas into a list; leaves lists and JSON text as they are."""
    if not isinstance(value, str) or value.lstrip().startswith("["):
        return value
    return [each.strip() for each in value.split(",")]


RULE = define(
    "rule",
    text("name", 64, required=True),
    text("description", 255),
    flag("is_active", read_only=True),
    _listed("object_list", check_texts(MOST_CODES)),  # ids; none: all objects of the company
    _listed("codes", check_texts(MOST_CODES)),  # none: all
    _listed("kinds", check_kinds, required=True),
    text("severity", 16, choices=("", *SEVERITIES)),  # the least that an event has to have
    text("channel", 16, required=True, choices=CHANNELS),
    number("project_id", default=1, minimum=1),  # of the messenger
    _listed("recipients", check_texts(MOST_RECIPIENTS)),
    text("subject", 255, default="{object}: {label}", check=check_template),
    text("template", 4_096, default="{object}: {label} ({code}) = {value} at {time}", check=check_template),
    secret("url", 1_024, check=check_url),  # of many receivers it is all that keeps others from calling it
    secret("secret", 128, check=check_secret),
    number("repeat_s", maximum=7 * 86_400),  # 0: sent once
    number("repeat_times", maximum=1_000),
    number("window_s", default=60, maximum=86_400),  # events within it make one message
    text("quiet_start", 5, check=check_clock),
    text("quiet_end", 5, check=check_clock),
    *authors(),
)
