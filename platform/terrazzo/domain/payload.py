"""Decodes terminals' payloads, JSON or MessagePack (told apart by the first byte), into points.

Any fault in the bytes raises ``Reject``, and nothing else.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any

import msgspec

from terrazzo.reasons import say

MAX_DEPTH = 32  # objects within objects, the payload itself included

Points = dict[str, Any]
"""Point name to number, string, boolean, null, or a dict of the same."""


class RejectKind(Enum):
    """Why a payload is rejected; a label of ``/metrics``."""

    MALFORMED = "malformed"  # not JSON, not MessagePack, not UTF-8
    SHAPE = "shape"  # well formed, but not an object of points
    TIME = "time"  # a ``Time`` that cannot be read
    CLOCK_AHEAD = "clock_ahead"
    SEALED = "sealed"  # a sealed payload that does not open, or a plain one where sealed ones are due
    DECODER = "decoder"  # refused by a decoder of the configuration's, or that one can't be had
    SERIES = "series"  # on one topic more than a terminal may have recorded
    FRONT = "front"  # refused by a front already, whose own figures say why


class Reject(Exception):
    """A payload that can't become a record; ``str()`` is the reason that is stored with it."""

    def __init__(self, kind: RejectKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


# 64 bits signed, and the finite doubles: what every store and every reader of the records can hold.
_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Finite = Annotated[float, msgspec.Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]


def _points_type() -> Any:
    """The type of points for msgspec: objects nested down to ``MAX_DEPTH``, spelled out level by level."""
    points: Any = dict[str, bool | _Integer | _Finite | str | None]
    for _ in range(MAX_DEPTH - 1):
        points = dict[str, bool | _Integer | _Finite | str | points | None]
    return points


# These check everything while decoding, at no extra cost; what they refuse is looked at again to say why.
decode_json: Callable[[bytes], Points] = msgspec.json.Decoder(_points_type()).decode
"""``decode`` for a payload that starts with a brace; it raises errors of msgspec's, which ``decode`` explains."""
_msgpack: Callable[[bytes], Points] = msgspec.msgpack.Decoder(_points_type()).decode
_any_json = msgspec.json.Decoder().decode
_any_msgpack = msgspec.msgpack.Decoder().decode

_BRACE = 0x7B
MANY_BYTES = 16 * 1024
_MANY_VALUES = 3_000
_MANY_EXTREMES = 150
_EXTREME_BYTES = 4 * 1024  # each has a name: in a shorter payload they are read in 3 ms
_FOLDED = bytes.maketrans(b"123456789.E", b"0000000000e")
_EXTREME = re.compile(rb"[0-9.][eE][-+]?0*[1-9][0-9]{2}(?=[\s,}\]])")
_JSON_STARTS = frozenset(b"{ \t\r\n")
_MAP_STARTS = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])  # fixmap, map 16, map 32


def decode(payload: bytes) -> Points:
    """The points of a payload, nested objects as they came (see ``flatten``).

    Of a name that occurs twice the last value counts, in JSON and in MessagePack.

    Raises:
        Reject: the payload is not one object of points.
    """
    try:
        return decode_json(payload) if payload and payload[0] == _BRACE else _decode_other(payload)
    except msgspec.ValidationError:
        raise _explained(payload) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def extreme_numbers(text: bytes, begin: int = 0, end: int = sys.maxsize) -> int:
    """How many numbers of JSON have exponents of three digits: beyond 1e288 msgspec takes 8 us for each."""
    return len(_EXTREME.findall(text, begin, end))


def has_many_extremes(text: bytes) -> bool:
    """Whether it may take more than a millisecond or two to read numbers in JSON, however short it is."""
    return text.translate(_FOLDED).count(b"0e") > _MANY_EXTREMES


def has_many_values(payload: bytes) -> bool:
    """Whether it takes more than some 3 ms to decode a payload, or to say what is wrong with it."""
    if len(payload) <= MANY_BYTES:
        return len(payload) > _EXTREME_BYTES and has_many_extremes(payload)
    if payload[0] in _MAP_STARTS:
        return True
    values = payload.count(b",") + payload.count(b"[") + payload.count(b"{")
    return values > _MANY_VALUES or (values > _MANY_EXTREMES and has_many_extremes(payload))


def point_name(name: str) -> str:
    """The name as ``decode`` returns it: the decoder's own cached string, which a dict finds in half the time."""
    decoded: str = next(iter(_any_json(msgspec.json.encode({name: None}))))
    return decoded


class PointLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the points of one payload may take once they are flat (``[limits]``).

    Attributes:
        name_chars: the longest name of a point in an object, with the names of the objects around it.
        points: how many points a payload with objects in it may have, the objects counted too.
        text_chars: the longest text that a variable takes; see ``take_points``.
    """

    name_chars: int = 1_024
    points: int = 20_000
    text_chars: int = 4_096


DEFAULT_LIMITS = PointLimits()


def flatten(points: Points, limits: PointLimits = DEFAULT_LIMITS) -> Points:
    """Nested objects as dotted names: ``{"a": {"b": 1}}`` becomes ``{"a.b": 1}``. Empty objects vanish.

    Raises:
        Reject: a name would be too long, or there are too many points.
    """
    if dict not in map(type, points.values()):
        return points
    flat: Points = {}
    _count_points(points, 0, limits)
    _add_leaves(points, "", flat)
    return flat


def check_nested(points: Points, limits: PointLimits = DEFAULT_LIMITS) -> None:
    """Checks what ``flatten`` checks, without making anything; raises as it does."""
    if dict in map(type, points.values()):
        _count_points(points, 0, limits)


def take_points(payload: bytes, limits: PointLimits = DEFAULT_LIMITS) -> Points:
    """The points of a payload as the mapping takes them: flat, and a text that is too long for a variable is null.

    Raises:
        Reject: as ``decode`` and ``flatten``.
    """
    points = flatten(decode(payload), limits)
    return shorten(points, limits) if len(payload) > limits.text_chars else points


def shorten(points: Points, limits: PointLimits) -> Points:
    """Flat points without texts that are too long for a variable, which are null. A shorter payload needs no look."""
    long = [name for name, value in points.items() if type(value) is str and len(value) > limits.text_chars]
    return points | dict.fromkeys(long) if long else points


def _count_points(points: Points, around: int, limits: PointLimits) -> int:
    """Counts values and objects; ``around``: the characters that stand before each name."""
    longest = max(map(len, points), default=0)
    if around + longest > limits.name_chars:
        shown = _shown(next(name for name in points if len(name) == longest))
        most = f"longer than {limits.name_chars} characters with the objects around it"
        raise Reject(RejectKind.SHAPE, say("point_name_wrong", name=shown, expected=most))
    count = len(points)
    if count <= limits.points:
        for name, value in points.items():
            if type(value) is dict:
                count += _count_points(value, around + len(name) + 1, limits)
    if count > limits.points:
        raise Reject(RejectKind.SHAPE, say("too_many_points", most=limits.points))
    return count


def _add_leaves(points: Points, prefix: str, flat: Points) -> None:
    for name, value in points.items():
        if type(value) is dict:
            _add_leaves(value, f"{prefix}{name}.", flat)
        else:
            flat[prefix + name] = value


def _decode_other(payload: bytes) -> Points:
    """Decodes what doesn't start with ``{``: usually MessagePack."""
    first = payload[0] if payload else None
    if first in _MAP_STARTS:
        return _msgpack(payload)
    if first in _JSON_STARTS:
        return decode_json(payload)
    raise _explained(payload)


def _explained(payload: bytes) -> Reject:
    """Decodes a refused payload again to find the reason, and the name of the point that is at fault."""
    if not payload:
        return Reject(RejectKind.MALFORMED, say("payload_empty"))
    try:
        if payload[0] in _MAP_STARTS:
            points = _any_msgpack(payload)
        elif payload[0] in _JSON_STARTS or payload.lstrip()[:1] in b'["-0123456789tfn':
            points = _any_json(payload)
        else:
            return Reject(RejectKind.MALFORMED, say("payload_unknown_format", byte=payload[0]))
    except (msgspec.MsgspecError, RecursionError, ValueError, TypeError) as error:
        return _malformed(error)
    if type(points) is not dict:
        return Reject(RejectKind.SHAPE, say("payload_no_object", got=kind_of(points)))
    fault = _fault_of(points)
    return Reject(RejectKind.SHAPE, fault or say("name_twice"))


def _fault_of(points: dict[Any, Any], path: tuple[str, ...] = ()) -> str | None:
    """What is wrong within an object; ``path``: the names around it. Only what is at fault is given a whole name."""
    if len(path) >= MAX_DEPTH:
        return say("objects_too_deep", most=MAX_DEPTH)
    for name, value in points.items():
        if type(name) is not str:
            return say("point_name_no_text", place=_shown(".".join((*path, ""))) or "the payload", got=kind_of(name))
        if type(value) is dict:
            if (fault := _fault_of(value, (*path, name))) is not None:
                return fault
        elif (fault := _fault_of_value(value)) is not None:
            return say("point_wrong", point=_shown(".".join((*path, name))), reason=fault)
    return None


def _fault_of_value(value: Any) -> str | None:
    if value is None or isinstance(value, bool | str):
        return None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else say("integer_too_large")
    if isinstance(value, float):
        return None if math.isfinite(value) else say("not_a_number", value=value)
    return say("not_a_value", got=kind_of(value))


def _malformed(error: Exception) -> Reject:
    if isinstance(error, RecursionError):
        return Reject(RejectKind.SHAPE, say("objects_too_deep", most=MAX_DEPTH))
    if isinstance(error, UnicodeDecodeError):
        return Reject(RejectKind.MALFORMED, say("string_not_utf8"))
    return Reject(RejectKind.MALFORMED, _shown(str(error), 200))


_KINDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
    bytes: "binary data",
}


def kind_of(value: object) -> str:
    """What a decoded value is called in a reason, with its article."""
    return _KINDS.get(type(value), "an extension type")


def _shown(text: str, limit: int = 64) -> str:
    """A text from a peer, cut short enough for a reason."""
    return text if len(text) <= limit else text[:limit] + "..."
