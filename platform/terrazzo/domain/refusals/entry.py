"""``RefusalEntry``: refusals of one terminal, or at one address, for one reason; and as the APIs show them."""

from __future__ import annotations

from datetime import tzinfo
from typing import NamedTuple

import msgspec

from terrazzo.domain.refusals.reasons import REASONS
from terrazzo.domain.terminal import Terminal
from terrazzo.times import format_spaced


class RefusalEntry(NamedTuple):
    """Refusals for one reason at one address. Times in UTC microseconds.

    Attributes:
        reason: a name of ``REASONS``.
        address: the last one of the share.
        code: the MQTT 5 reason code of the last one, 0 where there was none.
        protocol: the MQTT level of the last one, 3 to 5; 0 where it isn't known.
        is_own: it was the terminal itself: it had proven that, or comes from where it has logged in before.
        detail: of the last one.
    """

    reason: str
    address: str
    first_us: int
    last_us: int
    times: int
    code: int = 0
    protocol: int = 0
    is_own: bool = False
    detail: str = ""


class ToldRefusal(NamedTuple):
    """What listeners are told of: an entry that is new, or counts more. ``terminal``: None where none is known."""

    terminal: Terminal | None
    entry: RefusalEntry


class RefusalRecord(msgspec.Struct):
    """Refusals for one reason at one address: when the first and the last one were, and how many.

    ``text`` says what was wrong, ``advice`` what to do about it; docs/troubleshooting.md has all reasons. ``proven``:
    it was the terminal itself, else whoever gave its uid. ``reason_code`` is that of MQTT 5, 0 where there was none.
    """

    time: str
    first_time: str
    count: int
    address: str
    reason: str
    reason_code: int
    proven: bool
    text: str
    advice: str


def refusal_record(entry: RefusalEntry, zone: tzinfo) -> RefusalRecord:
    """The entry as the APIs show it."""
    reason = REASONS[entry.reason]
    return RefusalRecord(
        time=format_spaced(entry.last_us, zone),
        first_time=format_spaced(entry.first_us, zone),
        count=entry.times,
        address=entry.address,
        reason=entry.reason,
        reason_code=entry.code,
        proven=entry.is_own,
        text=f"{reason.text}: {entry.detail}" if entry.detail else reason.text,
        advice=reason.advice,
    )
