"""A mosaic record's body, and its values as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from terrazzo.ports.store import Value

_decoder = msgspec.msgpack.Decoder(dict[str, float | int | str | bool | None])
_EXACT = 2**53  # up to here a float tells every whole number


def parse_mosaic(body: bytes) -> Mapping[str, Value]:
    """The variables that the record carries."""
    return _decoder.decode(body)


def plain_number(value: Value) -> Value:
    """A whole number without its decimal point, as far as floats are exact; all else as it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value


def plain_numbers(values: Sequence[Value]) -> list[Value]:
    """``plain_number`` of each."""
    return [
        int(value) if value.__class__ is float and value.is_integer() and -_EXACT <= value <= _EXACT else value
        for value in values
    ]


def text_of(value: Value) -> str | None:
    """A value as the component interfaces show it: ``21.5``, ``21``, ``true``."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(plain_number(value))
