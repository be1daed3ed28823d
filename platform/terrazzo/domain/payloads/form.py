"""How the payloads of a configuration's terminals are read where they aren't objects of points: arrays, decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.domain.payload import Points, Reject, RejectKind, decode
from terrazzo.reasons import say, told_by

MOST_NAMES = 1_000
MOST_NAME_CHARS = 256
READABLE_CHANNELS = ("r", "a", "i")
"""Channels of which the form of payloads may be said: what comes on the others the platform reads itself."""

_ARRAY, _DECODER = "array", "decoder"
_MSGPACK_ARRAYS = frozenset([*range(0x90, 0xA0), 0xDC, 0xDD])  # fixarray, array 16, array 32
_json = msgspec.json.Decoder(list[Any])
_msgpack = msgspec.msgpack.Decoder(list[Any])


class PayloadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How payloads are read on some channels.

    Attributes:
        format: ``array`` or ``decoder``.
        names: of the values of an array, in their order; an empty one: no point.
        decoder: the name of an entry point.
        channels: of ``READABLE_CHANNELS``.
    """

    format: str
    names: Annotated[tuple[Annotated[str, Meta(max_length=MOST_NAME_CHARS)], ...], Meta(max_length=MOST_NAMES)] = ()
    decoder: Annotated[str, Meta(max_length=64)] = ""
    channels: Annotated[tuple[str, ...], Meta(min_length=1, max_length=8)] = ("r",)

    def __post_init__(self) -> None:
        if self.format not in (_ARRAY, _DECODER):
            raise ValueError(say("format_expected", got=self.format))
        if bool(self.names) != (self.format == _ARRAY):
            raise ValueError(say("names_with_array_only"))
        if bool(self.decoder) != (self.format == _DECODER):
            raise ValueError(say("decoder_with_decoder_only"))
        given = [name for name in self.names if name]
        if len(set(given)) < len(given):
            raise ValueError(say("names_twice"))
        for channel in self.channels:
            if channel not in READABLE_CHANNELS:
                raise ValueError(say("channels_expected", expected=", ".join(READABLE_CHANNELS), got=channel))

    def read_array(self, payload: bytes) -> Points:
        """The points of an array, JSON or MessagePack; an object of points is read as ever.

        Raises:
            Reject: it is neither, has another number of values than there are names, or something that is no value.
        """
        first = payload.lstrip()[:1]
        if first != b"[" and not (payload and payload[0] in _MSGPACK_ARRAYS):
            return decode(payload)
        try:
            values = _json.decode(payload) if first == b"[" else _msgpack.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Reject(RejectKind.MALFORMED, say("not_an_array", why=str(error)[:200])) from None
        if len(values) != len(self.names):
            raise Reject(RejectKind.SHAPE, say("array_length", values=len(values), names=len(self.names)))
        points = {name: value for name, value in zip(self.names, values, strict=True) if name}
        return decode(_encoded(points))


def array_form(names: Sequence[str]) -> PayloadForm:
    """The form of arrays whose values have these names."""
    return PayloadForm(format=_ARRAY, names=tuple(names))


def parse_payload_form(value: Any) -> PayloadForm | None:
    """The form that a configuration's field ``payload`` describes; None for an empty one: objects, as ever.

    Raises:
        ValueError: says what is wrong with it.
    """
    if not isinstance(value, dict):
        raise ValueError(say("expected_object"))
    if not value:
        return None
    try:
        return msgspec.convert(value, PayloadForm, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(told_by(error)) from None


def check_payload_form(value: Any) -> None:
    """Checks what ``parse_payload_form`` reads; raises as it does."""
    parse_payload_form(value)


def _encoded(points: Points) -> bytes:
    """Points as MessagePack, so that what is read of an array is checked as an object's points are."""
    try:
        return msgspec.msgpack.encode(points)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise Reject(RejectKind.SHAPE, say("array_value_wrong")) from None
