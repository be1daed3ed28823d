"""Definition of the entity ``rule``: what is told of events, labels, terminals and objects, to whom, how, and when."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from terrazzo.database.entity import authors, define
from terrazzo.database.field import Field, flag, number, secret, structure, text
from terrazzo.domain.command_payload import MAX_TEXT
from terrazzo.domain.events.definition import SEVERITIES
from terrazzo.reasons import say

HAPPENINGS = ("event", "opened", "closed")
TERMINAL_KINDS = ("offline", "silent", "refused", "clock_off")
OBJECT_KINDS = ("object_offline", "object_silent")
LASTING = (*TERMINAL_KINDS, *OBJECT_KINDS)
"""The kinds that begin and end: ``back`` tells of their end."""

BACK, OUTAGE, SCHEDULE = "back", "outage", "schedule"
KINDS = (*HAPPENINGS, *LASTING, BACK, OUTAGE, SCHEDULE)
BEGINNINGS = frozenset({"event", "opened", *LASTING})
"""The kinds that a command may answer to."""

NOBODY = "none"
"""The channel of rules that tell nobody, and only give commands."""

DIGESTS = ("none", "hourly", "daily")
MOST_MINUTES = 7 * 1_440
CHANNELS = ("email", "sms", "android", "ios", "wechat", "webhook", NOBODY)
PLACEHOLDERS = ("object", "object_id", "kind", "code", "label", "value", "time", "count", "terminal")
"""The placeholders that templates of rules may contain."""

MOST_CODES = 1_000
MOST_COMMANDED = 100
MOST_RECIPIENTS = 100
MOST_RUNS = 50  # of a schedule
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MIN_SECRET = 16
_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.]+)\}")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def is_plain(kinds: Iterable[str]) -> bool:
    """Whether these are kinds of events and labels alone."""
    return set(kinds) <= set(HAPPENINGS)


def check_template(template: str) -> None:
    """Checks that a template names only placeholders of ``PLACEHOLDERS``. Raises ``ValueError``."""
    for name in _PLACEHOLDER.findall(template):
        if name not in PLACEHOLDERS:
            raise ValueError(say("placeholder_unknown", name=name, names=", ".join(PLACEHOLDERS)))


def check_clock(time: str) -> None:
    """Checks a time of day, ``HH:MM`` in the zone ``time.zone``. Raises ``ValueError``."""
    if not _CLOCK.fullmatch(time):
        raise ValueError(say("expected_hh_mm", got=time))


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
        raise ValueError(say("expected_http_address"))


def check_kinds(kinds: Any) -> None:
    """Checks that a list has one or more of ``KINDS``, and nothing else. Raises ``ValueError``."""
    if not isinstance(kinds, list) or not kinds or any(kind not in KINDS for kind in kinds):
        raise ValueError(say("expected_array_of", expected=", ".join(KINDS)))
    subjects = [each for each in (HAPPENINGS, TERMINAL_KINDS, OBJECT_KINDS) if not set(each).isdisjoint(kinds)]
    if len(subjects) > 1:
        first, second = (next(kind for kind in each if kind in kinds) for each in subjects[:2])
        raise ValueError(say("kinds_of_two_rules", first=first, second=second))
    if SCHEDULE in kinds and len(set(kinds)) > 1:
        raise ValueError(say("kind_alone", kind=SCHEDULE))
    if BACK in kinds and set(LASTING).isdisjoint(kinds):
        raise ValueError(say("kind_goes_with", kind=BACK, expected=", ".join(LASTING)))
    if OUTAGE in kinds and subjects == [HAPPENINGS]:
        raise ValueError(say("kind_alone_or_lasting", kind=OUTAGE))


def check_schedule(runs: Any) -> None:
    """Checks a schedule: an array of ``{"at": "HH:MM", "days": ["mon", ...]}``, no days: all. Raises ``ValueError``."""
    if not isinstance(runs, list) or len(runs) > MOST_RUNS:
        raise ValueError(say("expected_runs", most=MOST_RUNS))
    for position, run in enumerate(runs, 1):
        if not isinstance(run, dict) or not run.keys() <= {"at", "days"}:
            raise ValueError(say("element_expected_run", element=position))
        try:
            _check_run(run)
        except ValueError as error:
            raise ValueError(say("element_wrong", element=position, reason=error)) from None


def _check_run(run: dict[str, Any]) -> None:
    at, days = run.get("at"), run.get("days", [])
    if not isinstance(at, str):
        raise ValueError(say("run_expected_hh_mm"))
    try:
        check_clock(at)
    except ValueError as error:
        raise ValueError(say("run_at_wrong", reason=error)) from None
    if not isinstance(days, list) or any(day not in DAYS for day in days):
        raise ValueError(say("run_expected_days", expected=", ".join(DAYS)))


def check_texts(most: int) -> Any:
    """Makes a check for a column that holds an array of at most ``most`` texts."""

    def check(texts: Any) -> None:
        if not isinstance(texts, list):
            raise ValueError(say("expected_texts"))
        if len(texts) > most:
            raise ValueError(say("too_many_elements", most=most, got=len(texts)))
        for position, each in enumerate(texts, 1):
            if not isinstance(each, str) or not each.strip() or len(each) > 320:
                raise ValueError(say("element_expected_text", element=position))

    return check


def check_secret(key: str) -> None:
    """Checks the key that webhooks are signed with. Raises ``ValueError``."""
    if len(key) < MIN_SECRET:
        raise ValueError(say("fewer_characters", least=MIN_SECRET))


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
    _listed(
        "terminal_list", check_texts(MOST_CODES), unset="[]"
    ),  # uids; of terminals, as tags and group_list: any of them
    _listed("tags", check_texts(MOST_CODES), unset="[]"),
    _listed("group_list", check_texts(MOST_CODES), unset="[]"),  # ids of groups of objects
    number("minutes", default=5, minimum=1, maximum=MOST_MINUTES),  # how long a terminal has to be away
    number("back_minutes", default=5, maximum=MOST_MINUTES),  # and how long it has to be well again
    text("digest", 8, default="none", choices=DIGESTS),
    text("digest_at", 5, default="08:00", check=check_clock),
    text("command", MAX_TEXT),  # of the objects' control table
    text("command_value", MAX_TEXT),  # empty: the row's default
    _listed("command_objects", check_texts(MOST_COMMANDED), unset="[]"),  # ids; none: the object that it happens on
    number("command_expiry_s", default=3_600, minimum=1, maximum=7 * 86_400),
    number("commands_per_hour", default=60, minimum=1, maximum=1_000),
    number("loop_s", default=60, maximum=86_400),  # no second command within it for what the first may have caused
    structure("schedule", check=check_schedule, unset="[]"),
)
