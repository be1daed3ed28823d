"""What is said of a mapping's events beside its rows, by code: a name, how severe they are, and what clears them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.reasons import say

SEVERITIES = ("info", "warning", "minor", "major", "critical")
"""From the least to the most severe; where they are stored and compared, each is its place from 1."""

DEFAULT_SEVERITY = "warning"
MOST_CODES = 1_000  # as many as a mapping has rows
MOST_CLEARED = 16  # codes that one event clears
MOST_CLEAR_AFTER_S = 366 * 86_400

_Code = Annotated[str, Meta(min_length=1, max_length=64)]


class EventDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of the events of one code.

    Attributes:
        severity: one of ``SEVERITIES``; empty: ``DEFAULT_SEVERITY``.
        clears_itself: whether an event is cleared when its condition is false again.
        clears: codes of which an object's open events are cleared when one of these is raised.
        clear_after_s: after so many seconds an event is cleared in any case; 0: it isn't.
    """

    name: Annotated[str, Meta(max_length=64)] = ""
    severity: str = ""
    clears_itself: bool = False
    clears: Annotated[tuple[_Code, ...], Meta(max_length=MOST_CLEARED)] = ()
    clear_after_s: Annotated[int, Meta(ge=0, le=MOST_CLEAR_AFTER_S)] = 0

    def __post_init__(self) -> None:
        if self.severity and self.severity not in SEVERITIES:
            raise ValueError(say("severity_expected", expected=", ".join(SEVERITIES), got=self.severity))

    @property
    def rank(self) -> int:
        """The severity's place in ``SEVERITIES``, from 1."""
        return severity_rank(self.severity or DEFAULT_SEVERITY)


UNDEFINED = EventDefinition()
"""What holds for a code of which nothing is said."""


def severity_rank(name: str) -> int:
    """The place of a severity in ``SEVERITIES``, from 1; raises ``ValueError`` for any other text."""
    return SEVERITIES.index(name) + 1


def severity_name(rank: int) -> str:
    """The severity at a place, from 1."""
    return SEVERITIES[rank - 1]


def parse_event_definitions(value: Any) -> dict[str, EventDefinition]:
    """The definitions of a mapping's events, by code.

    Raises:
        ValueError: names the code and what is wrong with it.
    """
    if not isinstance(value, Mapping):
        raise ValueError(say("expected_object_of_codes"))
    if len(value) > MOST_CODES:
        raise ValueError(say("too_many_codes_got", most=MOST_CODES, got=len(value)))
    return {_checked(code): _definition(code, said) for code, said in value.items()}


def check_event_definitions(value: Any) -> None:
    """Checks what ``parse_event_definitions`` reads; raises as it does."""
    parse_event_definitions(value)


def _checked(code: str) -> str:
    if not 0 < len(code) <= 64:
        raise ValueError(say("expected_code_of", code=code))
    return code


def _definition(code: str, said: Any) -> EventDefinition:
    try:
        return msgspec.convert(said, EventDefinition, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(say("code_wrong", code=code, reason=error)) from None
