"""Writes the golden segments: ``python tests/segments/golden_segments.py FILE``, never over an earlier version's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
from segment_bodies import ODD, Records, spaced

from terrazzo_adapters.segments import Packing, encode


class Golden(msgspec.Struct, array_like=True):
    """Some records and the segment that was made of them."""

    mosaic: bool
    records: Records
    parts: dict[bytes, bytes]


def golden_records() -> list[tuple[bool, Records]]:
    """Records of every kind."""
    states = ["run", "stop", "wait"]
    maps = [
        {"T": n / 100, "n": n * 1_000, "s": states[n % 3], "on": n % 2 == 0, "x": [None, -1.5, 7][n % 3]}
        for n in range(99)
    ]
    texts = [json.dumps({**each, "Time": 1_700_000_000_000 + place * 30_000}) for place, each in enumerate(maps)]
    mosaic = [msgspec.msgpack.encode(each) for each in maps]
    dense = [msgspec.msgpack.encode({"T": n % 37 / 10, "on": n % 4 == 0, "x": n / 3}) for n in range(300)]
    return [
        (True, spaced(dense)),
        (True, spaced(mosaic)),
        (True, spaced([*mosaic[:20], *ODD])),
        (False, spaced([text.encode() for text in texts])),
        (False, spaced([*(text.encode() for text in texts[:20]), *ODD])),
        (False, spaced(ODD)),
    ]


if __name__ == "__main__":
    every = [
        Golden(mosaic, records, encode(records, mosaic=mosaic, packing=packing))
        for mosaic, records in golden_records()
        for packing in Packing
    ]
    with Path(sys.argv[1]).open("xb") as file:
        file.write(msgspec.msgpack.encode(every))
