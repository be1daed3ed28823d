"""Encodes and decodes payloads as a terminal does: JSON or MessagePack, sealed if the terminal encrypts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from .sealing import Seal, SealError
from .spec import TerminalSpec

Points = Mapping[str, Any]


class PayloadError(ValueError):
    """A payload that a terminal cannot decode."""


class Codec:
    """Encodes what one terminal publishes, and decodes what it receives."""

    def __init__(self, spec: TerminalSpec) -> None:
        self._encode = ENCODERS[spec.format]
        self._seal: Seal | None = None
        if spec.encryption:
            self._seal = Seal(pin=spec.pin, uid=spec.uid, rsa_publickey=spec.rsa_publickey)

    def encode(self, points: Points) -> bytes:
        """The payload to publish."""
        payload = self._encode(points)
        return payload if self._seal is None else self._seal.seal(payload)

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The object in a received payload. Raises ``PayloadError``, also for a plain one if the terminal encrypts."""
        if self._seal is not None:
            try:
                payload = self._seal.open(payload)
            except SealError as error:
                raise PayloadError(str(error)) from error
        return decode(payload)


def encode_json(points: Points) -> bytes:
    """Compact JSON. NaN and infinity are not JSON and raise ValueError."""
    return json.dumps(points, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def encode_msgpack(points: Points) -> bytes:
    """MessagePack, floats of 64 bits."""
    return bytes(msgpack.packb(points))


ENCODERS: dict[str, Callable[[Points], bytes]] = {"json": encode_json, "msgpack": encode_msgpack}


def decode(payload: bytes) -> dict[str, Any]:
    """The object in a JSON or MessagePack payload, told apart by the first byte. Raises ``PayloadError``."""
    if not payload:
        raise PayloadError("the payload is empty")
    try:
        value = _decode_json(payload) if payload[:1] in b"{ \t\r\n" else msgpack.unpackb(payload)
    except (ValueError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise PayloadError(f"neither JSON nor MessagePack: {error}") from error
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise PayloadError("the payload is not an object with text keys")
    return value


def _decode_json(payload: bytes) -> Any:
    return json.loads(payload, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
