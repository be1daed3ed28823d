"""Parsers of what the operator and the platform itself have written: fuzzed too, as disks flip bits and hands slip.

They are no parsers of foreign input, and therefore not in ``PARSERS``: nobody sends what is hard on them.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from parser_kinds import Parser

from terrazzo.config.sections import ConfigError, load_config
from terrazzo.crypto.key_file import read_key
from terrazzo.mosaic.body import parse_mosaic
from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.segments import Packing
from terrazzo_adapters.segments.chunks import decode_chunk, encode_chunk
from terrazzo_adapters.segments.columns import decode_column, encode_column
from terrazzo_adapters.segments.head import MAGIC, VERSION, decode_head
from terrazzo_adapters.segments.numeric import decode_floats, decode_integers, encode_floats, encode_integers
from terrazzo_adapters.segments.packing import Damaged, decode_frame, encode_frame
from terrazzo_adapters.segments.rollups import decode_rollup, encode_rollup, make_rollup
from terrazzo_adapters.segments.shapes import Shape, Shapes, decode_shapes
from terrazzo_adapters.segments.texts import decode_texts, encode_texts, make_texts
from terrazzo_adapters.segments.times import decode_times, encode_times
from terrazzo_adapters.segments.values import decode_values, encode_values, make_values

_COUNT = 9
_ORDERS = np.arange(_COUNT, dtype=np.int64) * 1_000
_HEAD = msgspec.msgpack.encode([9, 0, 1, 9, 9, True, ["a", "b"], None, [5, 4], 0, {b"t": 1}])
_CHEAP = Packing.CHEAP
_COLUMN = encode_column(make_values([1, 2.5, None, True, "x"]), _ORDERS[:5], 4, _CHEAP)
_ROLLUP = make_rollup(PointColumn(np.arange(240) * 30_000_000, np.zeros(240, np.uint8), np.arange(240) / 3, []))
assert _ROLLUP is not None
_SHAPES = Shapes([Shape(True, (0, 2)), Shape(False, ())], _ORDERS % 2).encode(_CHEAP)


def _head(data: bytes) -> object:
    """A head whose checksum was forged as well."""
    whole = MAGIC + bytes([VERSION]) + data
    return decode_head(whole + zlib.crc32(whole).to_bytes(4, "little"))


def _file(text: str) -> Path:
    path = Path(tempfile.gettempdir()) / f"terrazzo-fuzz-{zlib.crc32(text.encode('utf-8', 'replace'))}"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def _config(text: str) -> object:
    path = _file(text)
    try:
        return load_config(path, {})
    finally:
        path.unlink()


def _key(text: str) -> object:
    path = _file(text)
    try:
        return read_key(path, size=32)
    finally:
        path.unlink()


def _segment(name: str, run: Any, *samples: bytes) -> Parser[bytes]:
    covers = f"terrazzo_adapters.segments.{name}"
    return Parser(covers=(covers,), run=run, raises=(Damaged,), worst=(lambda n: b"\xff" * n,), samples=samples)


ALSO_FUZZED: list[Parser[Any]] = [
    _segment("head:decode_head", _head, _HEAD),
    _segment("packing:decode_frame", decode_frame, encode_frame(b"abc" * 100, _CHEAP), encode_frame(b"a", _CHEAP)),
    _segment("numeric:decode_integers", lambda data: decode_integers(data, _COUNT), encode_integers(_ORDERS, _CHEAP)),
    _segment("numeric:decode_floats", lambda data: decode_floats(data, _COUNT), encode_floats(_ORDERS / 3, _CHEAP)),
    _segment(
        "times:decode_times",
        lambda data: decode_times(data, _COUNT).arrivals(),
        encode_times(_ORDERS, _ORDERS.astype(np.uint64), _CHEAP),
    ),
    _segment(
        "texts:decode_texts", lambda data: decode_texts(data, 3), encode_texts(make_texts(["a", "b", "a"]), _CHEAP)
    ),
    _segment(
        "values:decode_values",
        lambda data: decode_values(data, _COUNT),
        encode_values(make_values([1, 2.5, None, True, "x"]), _CHEAP),
    ),
    _segment("columns:decode_column", lambda data: decode_column(data, _COUNT).decode(), _COLUMN),
    _segment("rollups:decode_rollup", lambda data: decode_rollup(data, 240).starts_us, encode_rollup(_ROLLUP, _CHEAP)),
    _segment("shapes:decode_shapes", lambda data: decode_shapes(data, _COUNT, 3), _SHAPES),
    _segment("chunks:decode_chunk", lambda data: decode_chunk(data, 3), encode_chunk([b"a", b"", b"bcd" * 40], _CHEAP)),
    Parser(
        covers=("terrazzo.mosaic.body:parse_mosaic",),
        run=parse_mosaic,
        raises=(ValueError,),
        worst=(lambda n: b"[" * n,),
        samples=(b'{"a":1,"b":"x"}', msgspec.msgpack.encode({"a": 1.5})),
    ),
    Parser(
        covers=("terrazzo.config.sections:load_config",),
        run=_config,
        raises=(ConfigError,),
        worst=(lambda n: "[" * n,),
        samples=(
            '[http]\nport = 8080\n[limits]\nlogin_failures = 3\n[time]\nzone = "Europe/Berlin"\n',
            '[[bridge]]\nname = "a"\nurl = "mqtt://host"\n[[bridge.out]]\nfilter = "g/#"\n',
            '[messenger.project.email]\nhost = "mail"\nfrom = "a@b"\n[broker]\nkind = "embedded"\n',
        ),
        most=2**16,
    ),
    Parser(
        covers=("terrazzo.crypto.key_file:read_key",),
        run=_key,
        raises=(ValueError,),
        worst=(lambda n: "a" * n,),
        samples=("ab" * 32 + "\n", "zz"),
        most=2**10,
    ),
]
