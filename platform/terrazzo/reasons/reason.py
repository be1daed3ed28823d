"""A reason as answers carry it, beside its text: code and parameters."""

from __future__ import annotations

import math
from string import Formatter
from typing import Any, TypeGuard

import msgspec

from terrazzo.reasons.catalogue import CATALOGUE
from terrazzo.reasons.said import SEVERAL, Said, say, told_by

_MOST_WITHIN = 8
"""Reasons in one another; what is deeper is text."""
_SIMPLE = ("", ",")
"""How numbers are written that are told as such; what is rounded or no decimal number is told as it is written."""
_formatter = Formatter()


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why something is refused, for programs.

    Attributes:
        code: which sentence of the catalogue.
        parameters: what the sentence was filled with, by name: numbers as such, a reason within it with its own code
            and parameters, everything else as text. ``several`` has the reasons of all fields, ``faults``.
        field: what the reason is about, where the text names it first.
    """

    code: str
    parameters: dict[str, str | int | float | Reason | list[Reason]]
    field: str | msgspec.UnsetType = msgspec.UNSET


def reason_of(text: str, *, field: str = "") -> Reason | msgspec.UnsetType:
    """That of a sentence; UNSET: the text is none of the catalogue, such as what another program says.

    Args:
        field: what it is about.
    """
    if isinstance(text, _Retold):
        return text.reason if not field else msgspec.structs.replace(text.reason, field=field[:])
    return _reason(text, field[:] or msgspec.UNSET, 0) if isinstance(text, Said) else msgspec.UNSET


class _Retold(str):
    """A sentence that another process has said."""

    __slots__ = ("reason",)
    reason: Reason


def retold(text: str, reason: Reason | msgspec.UnsetType) -> str:
    """What another process has said, with the reason that came beside it."""
    if isinstance(reason, msgspec.UnsetType):
        return text
    made = _Retold(text)
    made.reason = reason
    return made


def _reason(said: Said, field: str | msgspec.UnsetType, depth: int) -> Reason:
    if said.code == SEVERAL:
        if said.values["faults"][0][0] == field:
            field = msgspec.UNSET  # it is told of with the others
        parameters: dict[str, Any] = {"faults": [_fault(name, text, depth) for name, text in said.values["faults"]]}
    else:
        parameters = {
            name: _parameter(said.values[name], conversion, spec or "", depth)
            for _, name, spec, conversion in _formatter.parse(CATALOGUE[said.code])
            if name
        }
    return Reason(code=said.code, parameters=parameters, field=field)


def _fault(field: str, text: str, depth: int) -> Reason:
    """Of one of several fields."""
    return _reason(text if isinstance(text, Said) else say("text", text=text), field, depth + 1)


def _parameter(value: object, conversion: str | None, spec: str, depth: int) -> str | int | float | Reason:
    """A value as it is told: a number, a reason, or the text that stands in the sentence."""
    if not conversion and spec in _SIMPLE and _is_number(value):
        return value
    within = told_by(value) if isinstance(value, BaseException) else value
    if isinstance(within, Said) and depth < _MOST_WITHIN:
        return _reason(within, msgspec.UNSET, depth + 1)
    if isinstance(within, _Retold):
        return within.reason
    return _encodable(format(_formatter.convert_field(value, conversion), spec))


def _is_number(value: object) -> TypeGuard[int | float]:
    """Whether JSON can carry it as a number, to every reader."""
    if type(value) is int:
        return abs(value) < 2**53
    return type(value) is float and math.isfinite(value)


def _encodable(text: str) -> str:
    """Lone surrogates, which text from elsewhere may have and JSON can't, as escapes."""
    plain = text[:]  # of whatever kind of text it is
    return plain if plain.isascii() else plain.encode("utf-8", "backslashreplace").decode()
