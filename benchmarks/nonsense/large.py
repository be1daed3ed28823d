"""Content as large as may come: requests of nearly 1 MiB of many values, reports of 0.9 MB of many points."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from nonsense.values import Values

REQUEST_BYTES = 1_000_000
REPORT_BYTES = 900_000
MOST_BYTES = (1 << 20) - 1_000  # of a payload in a packet that is taken


def large_request(values: Values, example: dict[str, Any]) -> bytes:
    """An example one of whose fields is, or has within, as many values as a request has room for."""
    fields = [*example, "where_in", "where_and", "keys", "payloads", values.text()[:50]]
    name = values.pick([each for each in fields if each != "action"])
    item = values.pick(
        ([], {}, 0, "", None, "a", [[]], [0, 0], {"a": 1}, {"uid": "a"}, "a" * 300, 1e300, values.value(1))
    )
    encoded = json.dumps(item)
    many: Any = [item] * (REQUEST_BYTES // (len(encoded) + 2))
    match values.random.randrange(6):
        case 0:
            many = {str(number): item for number in range(REQUEST_BYTES // (len(encoded) + 12))}
        case 1:
            many = json.dumps(many[: len(many) // 2])  # text that is read as JSON once more
        case 2:
            many = ",".join(["a"] * (REQUEST_BYTES // 2))
    kept = example.get(name)
    if isinstance(kept, list) and values.chance(0.5):
        many = (kept or [item]) * (REQUEST_BYTES // max(1, len(json.dumps(kept)) + 2))
    return json.dumps({**example, name: many}).encode()[: (1 << 20) - 100 if values.chance(0.1) else None]


def large_report(values: Values, points: tuple[str, ...]) -> bytes:
    """Points without end: flat or in objects, numbers or texts, in JSON, MessagePack or CBOR (which nobody reads)."""
    value = values.pick((0, 1.5, True, None, "x", "x" * 50, -(2**40)))
    size = 4 + len(json.dumps(value))
    count = REPORT_BYTES // (size + 5)
    found: dict[str, Any] = {**dict.fromkeys(points, 1), **{str(number): value for number in range(count)}}
    match values.random.randrange(5):
        case 0:
            found = {"n" * values.pick((1, 900, 60_000)): found}
        case 1:
            found = {f"o{number}": {"a": {"b": value}} for number in range(REPORT_BYTES // (size + 22))}
        case 2:
            found = {values.pick(points): [value] * count}
    encode = values.pick(_ENCODERS)
    made = encode(found)
    if len(made) > MOST_BYTES:
        fewer = max(1, len(found) * REPORT_BYTES // len(made))
        made = encode(dict(islice(found.items(), fewer)))
    return made[: values.random.randrange(len(made))] if values.chance(0.1) else made


def _cbor(value: Any) -> bytes:
    """As far as the points above need it [RFC 8949, 3]."""
    match value:
        case dict():
            return b"\xba" + len(value).to_bytes(4, "big") + b"".join(_cbor(k) + _cbor(v) for k, v in value.items())
        case list():
            return b"\x9a" + len(value).to_bytes(4, "big") + b"".join(map(_cbor, value))
        case str():
            return b"\x7a" + len(value.encode()).to_bytes(4, "big") + value.encode()
    return b"\xf6" if value is None else b"\x1a\0\0\0\1"


_ENCODERS: tuple[Callable[[Any], bytes], ...] = (
    msgspec.json.encode,
    msgspec.json.encode,
    msgspec.msgpack.encode,
    _cbor,
)
