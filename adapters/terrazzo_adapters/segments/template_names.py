"""Which names the records of a template carry, and in which hole each has its value.

A template whose records can't all be read alike has no names here, and its bodies are decoded instead: where a number
is no JSON number in some records (zeros in front), or stands where its form matters (an exponent), and where a name
itself has a hole.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.segments.numerals import Numbers
from terrazzo_adapters.segments.words import Words

Hole = Numbers | Words

FIXED, DECODED = -1, -2

_BEFORE_NUMBER = frozenset(b":,[ \t\r\n")
_AFTER_NUMBER = frozenset(b",]} \t\r\n")
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


class NamedHole(msgspec.Struct, array_like=True, frozen=True):
    """Where a name's value is. ``hole``: its number; ``FIXED``: ``value`` in each record; ``DECODED``: in the body."""

    name: str
    hole: int
    value: Value = None


def name_holes(pieces: Sequence[bytes], holes: Sequence[Hole]) -> list[NamedHole] | None:
    """The names of a template's records; None: their bodies have to be decoded."""
    strings = _strings(pieces)
    if not all(_is_regular(hole, strings[place], pieces[place : place + 2]) for place, hole in enumerate(holes)):
        return None
    first, second = (parse_points(_marked(pieces, holes, turn)) for turn in (0, 1))
    if list(first) != list(second):
        return None
    marks = {_mark(hole, place, 0): place for place, hole in enumerate(holes)}
    return [_named(name, first[name], second[name], marks, holes) for name in first]


def _named(name: str, first: Value, second: Value, marks: dict[bytes, int], holes: Sequence[Hole]) -> NamedHole:
    if type(first) is type(second) and first == second:
        return NamedHole(name, FIXED, first) if _is_short(first) else NamedHole(name, DECODED)
    hole = marks.get(str(first).encode())
    if hole is None or isinstance(holes[hole], Words) is not isinstance(first, str):
        return NamedHole(name, DECODED)
    return NamedHole(name, hole)


def _is_short(value: Value) -> bool:
    """Whether MessagePack holds it."""
    return type(value) is not int or -(2**63) <= value < 2**63


def _mark(hole: Hole, place: int, turn: int) -> bytes:
    """What stands in the hole while the names are found; no two are alike."""
    number = 1_000_000 + 3_000_000 * turn + place
    return b"%d" % number if isinstance(hole, Numbers) else b"word %d" % number


def _marked(pieces: Sequence[bytes], holes: Sequence[Hole], turn: int) -> bytes:
    marks = [_mark(hole, place, turn) for place, hole in enumerate(holes)]
    return b"".join(piece + mark for piece, mark in zip(pieces, [*marks, b""], strict=True))


def _strings(pieces: Sequence[bytes]) -> list[bool | None]:
    """For each hole whether it lies in a string; None: in one with a backslash."""
    found: list[bool | None] = []
    inside = escaped = escapes = False
    for piece in pieces[:-1]:
        for byte in piece:
            if escaped:
                escaped = False
            elif byte == _QUOTE:
                inside, escapes = not inside, False
            elif byte == _BACKSLASH:
                escaped = escapes = True
        found.append(None if inside and escapes else inside)
    return found


def _is_regular(hole: Hole, in_string: bool | None, around: Sequence[bytes]) -> bool:
    """Whether what stands in the hole is valid in each record as its mark is."""
    before, after = around[0][-1:], around[1][:1]
    if isinstance(hole, Words):
        return in_string is True and before == after == b'"' and all(map(_is_text, hole.words))
    if in_string is not False:
        return in_string is True
    stands_alone = bool(before and after) and before[0] in _BEFORE_NUMBER and after[0] in _AFTER_NUMBER
    return stands_alone and hole.is_plain()


def _is_text(word: bytes) -> bool:
    """Whether it is a JSON string's inside; there is no quotation mark or backslash in it."""
    try:
        return word.decode().isprintable() or min(word, default=32) >= 32
    except UnicodeDecodeError:
        return False
