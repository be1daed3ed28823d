"""Segments alone: bytes a record and processor time of sealing and reading, and of each encoding by itself.

Run: ``python benchmarks/segments.py [--records 4096] [--rounds 7]``; the least of the rounds counts. One object and its
terminal, a record of ten points each 30 s: *smooth* points walk in steps of N(0, 0.05), *random* ones are independent,
uniform from 0 to 100; both have two decimals. Grid records are JSON, mosaic records MessagePack.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
import zstandard

from terrazzo_adapters.segments import Packing, Segment, encode
from terrazzo_adapters.segments.chunks import decode_chunk, encode_chunk
from terrazzo_adapters.segments.mosaic import read_bodies
from terrazzo_adapters.segments.numeric import decode_floats, decode_integers, encode_floats, encode_integers
from terrazzo_adapters.segments.templates import decode_template, encode_template, find_templates
from terrazzo_adapters.segments.texts import decode_texts, encode_texts, make_texts
from terrazzo_adapters.segments.tokens import find_tokens
from terrazzo_adapters.segments.values import decode_values, encode_values, make_values

NAMES = ["temperature", "pressure", "flow", "level", "current", "voltage", "rpm", "energy", "valve", "state"]
START_US = 1_735_689_600_000_000
PERIOD_US = 30_000_000
Records = list[tuple[int, int, bytes]]


class Bench:
    """Times what it is given."""

    def __init__(self, records: int, rounds: int) -> None:
        self.records = records
        self.rounds = rounds

    def us(self, work: Callable[[], object], *, of: int = 1) -> float:
        """The processor time of ``work``, divided by ``of``, in microseconds."""
        took = []
        for _ in range(self.rounds):
            start = time.process_time()
            work()
            took.append(time.process_time() - start)
        return min(took) * 1e6 / of

    def columns(self, kind: str) -> list[list[float]]:
        """The values of each point."""
        rng = np.random.default_rng(1)
        if kind == "smooth":
            walks = [20 + np.cumsum(rng.normal(0, 0.05, self.records)) for _ in NAMES]
        else:
            walks = [rng.uniform(0, 100, self.records) for _ in NAMES]
        return [np.round(walk, 2).tolist() for walk in walks]

    def made(self, kind: str, render: Callable[[object], bytes]) -> Records:
        """Records as they come from 200 terminals: times are not even, others arrive in between."""
        rng = np.random.default_rng(2)
        times_us = START_US + np.arange(self.records) * PERIOD_US + rng.integers(0, 200_000, self.records)
        arrivals = np.arange(self.records) * 400 + rng.integers(0, 400, self.records)
        rows = zip(*self.columns(kind), strict=True)
        bodies = [render(dict(zip(NAMES, row, strict=True))) for row in rows]
        return list(zip(times_us.tolist(), arrivals.tolist(), bodies, strict=True))


def as_json(points: object) -> bytes:
    """A payload as terminals write them."""
    return json.dumps(points, separators=(",", ":")).encode()


def print_segments(bench: Bench) -> None:
    """Sealing and reading whole segments."""
    print(
        "us a record: seal, all bodies; us: 50 bodies, a column\n"
        "segment                bytes before   zstd alone      now    seal   bodies    50 bodies     column"
    )
    for kind in ("smooth", "random"):
        for name, render, mosaic in (("grid", as_json, False), ("mosaic", msgspec.msgpack.encode, True)):
            found = bench.made(kind, render)
            for packing in Packing:
                print(_segment_line(bench, found, f"{kind} {name} {packing.value}", mosaic=mosaic, packing=packing))


def _segment_line(bench: Bench, found: Records, name: str, *, mosaic: bool, packing: Packing) -> str:
    count = len(found)
    parts = encode(found, mosaic=mosaic, packing=packing)
    bodies = [body for _, _, body in found]
    assert Segment(parts.get).bodies(0, count) == bodies
    alone = len(zstandard.compress(b"\n".join(bodies)))
    before, now = sum(map(len, bodies)), sum(map(len, parts.values()))
    return (
        f"{name:22} {before / count:>12.0f} {alone / count:>12.1f} {now / count:>8.1f}"
        f" {bench.us(lambda: encode(found, mosaic=mosaic, packing=packing), of=count):>8.2f}"
        f" {bench.us(lambda: Segment(parts.get).bodies(0, count), of=count):>8.2f}"
        f" {bench.us(lambda: Segment(parts.get).bodies(100, 150)):>12.0f}"
        f" {bench.us(lambda: Segment(parts.get).column('flow')):>10.0f}"
    )


def print_encodings(bench: Bench) -> None:
    """Each encoding by itself."""
    print("encoding                bytes an element   encode, decode us an element")
    count, packing = bench.records, Packing.CHEAP
    smooth, payloads = np.array(bench.columns("smooth")[0]), bench.made("smooth", as_json)
    bodies = [body for _, _, body in payloads]
    times_us = np.array([time_us for time_us, _, _ in payloads])
    words = [("run", "stop", "wait")[place // 7 % 3] for place in range(count)]
    mixed = [None if place % 50 == 0 else value for place, value in enumerate(smooth.tolist())]
    found = find_templates(bodies)[0].template
    encodings: dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]] = {
        "integers (times)": (lambda: encode_integers(times_us, packing), lambda data: decode_integers(data, count)),
        "floats, two decimals": (lambda: encode_floats(smooth, packing), lambda data: decode_floats(data, count)),
        "floats, any": (lambda: encode_floats(smooth / 3, packing), lambda data: decode_floats(data, count)),
        "texts": (lambda: encode_texts(make_texts(words), packing), lambda data: decode_texts(data, count)),
        "values with nulls": (
            lambda: encode_values(make_values(mixed), packing),
            lambda data: decode_values(data, count),
        ),
        "bodies as they are": (lambda: encode_chunk(bodies, packing), lambda data: decode_chunk(data, count)),
        "template, its columns": (
            lambda: encode_template(found, times_us, packing),
            lambda data: decode_template(data, times_us).render(),
        ),
    }
    for name, (encoded, decoded) in encodings.items():
        data = encoded()
        forth, back = bench.us(encoded, of=count), bench.us(partial(decoded, data), of=count)
        print(f"{name:22} {len(data) / count:>10.2f} {forth:>12.3f} {back:>10.3f}")
    maps = [body for _, _, body in bench.made("smooth", msgspec.msgpack.encode)]
    print(f"{'numbers found in texts':22} {'':>10} {bench.us(lambda: find_tokens(bodies), of=count):>12.3f}")
    print(f"{'maps read':22} {'':>10} {bench.us(lambda: read_bodies(maps), of=count):>12.3f}")
    print(f"{'CRC-32':22} {'':>10} {bench.us(lambda: zlib.crc32(b''.join(bodies)), of=count):>12.3f}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_096)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    bench = Bench(arguments.records, arguments.rounds)
    print_segments(bench)
    print_encodings(bench)


if __name__ == "__main__":
    main()
