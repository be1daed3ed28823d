"""Commands, as a terminal receives them on ``p2p/<uid>``."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from typing import Any

ACTS = ("Control", "Reboot", "Diag", "AXUpgrade", "Config")
UNITS = ("LUA", "MCU")


def shown(value: object) -> str:
    """A value as text for a message, cut short."""
    return reprlib.repr(value)


class CommandError(ValueError):
    """A command that the terminal does not carry out; the text is the reason in its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command with its parameters; for MQTT 5 with Response Topic and Correlation Data."""

    act: str
    values: dict[str, Any] = field(default_factory=dict)
    correlation: bytes | None = None
    response_topic: str | None = None
    payload: bytes = b""  # as it came, sealed where the terminal encrypts


def parse_command(points: dict[str, Any], **origin: Any) -> Command:
    """The command in a decoded payload; ``origin``: the other fields of ``Command``.

    Raises:
        CommandError: it is no command that terminals know.
    """
    act = points.get("Act")
    if act not in ACTS:
        raise CommandError(f"Act must be one of {', '.join(ACTS)}, got {shown(act)}")
    return Command(act=act, values={name: value for name, value in points.items() if name != "Act"}, **origin)
