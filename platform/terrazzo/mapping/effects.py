"""Events and labels as data, on their way to the database. Times are UTC microseconds, values texts."""

from __future__ import annotations

import msgspec

from terrazzo.domain.events.definition import DEFAULT_SEVERITY, severity_rank

BY_CONDITION, BY_EVENT = "condition", "event"
"""Why an event is cleared: its condition is false again; another event says so."""


class EventRaised(msgspec.Struct, frozen=True, tag="event", array_like=True):
    """An event: the condition of an EVNT row has turned true."""

    company_id: int
    object_id: int
    terminal_id: str  # whose message did it
    code: str
    label_en: str
    label_cn: str
    value: str
    extension_key: str  # the condition
    extension_value: str  # what met it
    time_us: int
    severity: int = severity_rank(DEFAULT_SEVERITY)  # its place in ``SEVERITIES``, from 1
    clear_at: int | None = None  # when it is cleared if it is still open; None: never


class EventsCleared(msgspec.Struct, frozen=True, tag="cleared", array_like=True):
    """What is open of an object's events of one code is over. ``cause``: ``BY_CONDITION`` or ``BY_EVENT``."""

    company_id: int
    object_id: int
    code: str
    cleared_us: int
    cause: str


class LabelOpened(msgspec.Struct, frozen=True, tag="opened", array_like=True):
    """A label opens: a retainer's variable has taken its open value."""

    company_id: int
    object_id: int
    terminal_id: str
    project_id: int  # the retainer script's id
    class_id: str  # and its uid
    code: str
    label_en: str
    label_cn: str
    value: str
    opened_us: int


class LabelClosed(msgspec.Struct, frozen=True, tag="closed", array_like=True):
    """It took its close value, or somebody closed the label by hand."""

    company_id: int
    object_id: int
    project_id: int
    code: str
    closed_us: int
    by_hand: bool


Effect = EventRaised | EventsCleared | LabelOpened | LabelClosed

encode_effects = msgspec.msgpack.Encoder().encode
decode_effects = msgspec.msgpack.Decoder(list[Effect]).decode
