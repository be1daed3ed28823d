"""What is said of a mapping's variables beside its rows, by code: unit, decimals, range, limits, names of states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.domain.events.definition import DEFAULT_SEVERITY, SEVERITIES
from terrazzo.reasons import say

MOST_CODES = 1_000  # as many as a mapping has rows
MOST_LIMITS = 8  # of a variable
MOST_STATES = 64  # of a variable
MOST_DECIMALS = 9

_Name = Annotated[str, Meta(max_length=64)]


class StateName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a value is called."""

    label_en: _Name = ""
    label_cn: _Name = ""


class ValueLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where values begin to mean something: ``above`` or ``below`` a value. It is shown, and raises nothing.

    Attributes:
        severity: one of ``SEVERITIES``.
        name: for people.
    """

    above: float | None = None
    below: float | None = None
    severity: str = DEFAULT_SEVERITY
    name: _Name = ""

    def __post_init__(self) -> None:
        given = [each for each in (self.above, self.below) if each is not None]
        if len(given) != 1 or not math.isfinite(given[0]):
            raise ValueError(say("expected_limit"))
        if self.severity not in SEVERITIES:
            raise ValueError(say("severity_expected", expected=", ".join(SEVERITIES), got=self.severity))


class VariableDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of the variable of one code.

    Attributes:
        unit: as it is shown behind values, such as ``°C``.
        decimals: how many are shown; None: as many as there are.
        low, high: the ends of the range that gauges and axes show; None: as the values are.
        limits: where values begin to mean something.
        states: names of values, by the value as text (``0``, ``1.5``, ``true``, ``run``).
    """

    unit: Annotated[str, Meta(max_length=16)] = ""
    decimals: Annotated[int, Meta(ge=0, le=MOST_DECIMALS)] | None = None
    low: float | None = None
    high: float | None = None
    limits: Annotated[tuple[ValueLimit, ...], Meta(max_length=MOST_LIMITS)] = ()
    states: Annotated[dict[_Name, StateName], Meta(max_length=MOST_STATES)] = {}

    def __post_init__(self) -> None:
        ends = [each for each in (self.low, self.high) if each is not None]
        if not all(map(math.isfinite, ends)):
            raise ValueError(say("range_expected_numbers"))
        if len(ends) == 2 and ends[0] >= ends[1]:
            raise ValueError(say("range_low_not_below"))


UNDEFINED = VariableDefinition()
"""What holds for a code of which nothing is said."""


def parse_variable_definitions(value: Any) -> dict[str, VariableDefinition]:
    """The definitions of a mapping's variables, by code.

    Raises:
        ValueError: names the code and what is wrong with it.
    """
    if not isinstance(value, Mapping):
        raise ValueError(say("expected_object_of_codes"))
    if len(value) > MOST_CODES:
        raise ValueError(say("too_many_codes_got", most=MOST_CODES, got=len(value)))
    return {_checked(code): parse_variable_definition(said, code) for code, said in value.items()}


def check_variable_definitions(value: Any) -> None:
    """Checks what ``parse_variable_definitions`` reads; raises as it does."""
    parse_variable_definitions(value)


def parse_variable_definition(said: Any, code: str) -> VariableDefinition:
    """The definition of one variable; a ``ValueError`` names its code and what is wrong with it."""
    try:
        return msgspec.convert(said, VariableDefinition, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(say("code_wrong", code=code, reason=error)) from None


def _checked(code: str) -> str:
    if not 0 < len(code) <= 64:
        raise ValueError(say("expected_code_of", code=code))
    return code
