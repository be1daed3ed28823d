"""Load: the history of some objects, the same for Terrazzo, InfluxDB and VictoriaMetrics.

Run as ``python benchmarks/history_load.py terrazzo|influxdb|victoria '<JSON of Load>'``; prints ``connected``, begins
with a line on its input, and prints one JSON line ``{"messages", "seconds"}`` when all of it is acknowledged. The
load's ``uids`` are terminals, ``<object>-1`` and ``<object>-2``; a message has ten points and the time of its own,
each terminal has one each 30 s. *Smooth*: each point a random walk of steps N(0, 0.05) with two decimals. An object's
record has the variables that a message has changed; the databases get these, and nothing that stays what it was.
"""

from __future__ import annotations

import http.client
import itertools
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import msgspec
import numpy as np
from publishers import Connection, Load, run

from mqtt_bytes import publish

PERIOD_MS = 30_000
START_MS = 1_735_689_600_000  # 2025-01-01, UTC
POINTS = 10
DATABASE = "bench"
RANDOM_SEED = 2
"""Of a load whose points are independent, uniform in 0 to 100, with two decimals."""

_PIECE = 1_000  # messages that are drawn at once, whoever takes them
_WRITTEN = 2_500  # messages of a terminal in one write to a database


class Message(NamedTuple):
    """What a terminal says at a time."""

    time_ms: int
    values: list[float]


def variable(terminal: int, point: int) -> str:
    """The code of what a point of an object's first or second terminal becomes."""
    return f"V{terminal}_{point}"


def split(uid: str) -> tuple[str, int]:
    """A terminal's object and which of the two it is."""
    name, number = uid.rsplit("-", 1)
    return name, int(number)


def messages(uid: str, count: int, *, seed: int) -> Iterator[Message]:
    """A terminal's first messages."""
    made = np.random.default_rng((seed, zlib.crc32(uid.encode())))
    time_ms = START_MS + PERIOD_MS // 4 + (split(uid)[1] - 1) * PERIOD_MS // 2  # on no edge of a minute
    last = np.full(POINTS, 50.0)
    for first in range(0, count, _PIECE):
        if seed == RANDOM_SEED:
            values = made.uniform(0, 100, (_PIECE, POINTS)).round(2)
        else:
            steps = made.normal(0, 0.05, (_PIECE, POINTS))
            values = (last + steps.cumsum(axis=0)).round(2)
            last = values[-1]
        for row in values[: count - first].tolist():
            yield Message(time_ms, row)
            time_ms += PERIOD_MS


class HistoryConnection(Connection):
    """A terminal that tells its history."""

    @staticmethod
    def precode(load: Load, uid: str) -> Iterator[bytes]:
        """The packets of a block, and of the next one, made when they are needed."""
        names, topic, encode = [f"P{n}" for n in range(POINTS)], f"g/{uid}/r", msgspec.json.encode
        ids = itertools.cycle(range(1, load.window * 2 + 1))
        packets = (
            publish(
                topic, encode({"Time": message.time_ms, **dict(zip(names, message.values, strict=True))}), packet_id=n
            )
            for message, n in zip(messages(uid, load.messages, seed=load.seed), ids, strict=False)
        )
        while block := b"".join(itertools.islice(packets, load.block)):
            yield block


def _in_turn(load: Load) -> Iterator[tuple[str, list[Message]]]:
    """Pieces of what the terminals say, in turn: time goes on for all of them together."""
    sources = [(uid, messages(uid, load.messages, seed=load.seed)) for uid in load.uids]
    for _ in range(0, load.messages, _WRITTEN):
        yield from ((uid, list(itertools.islice(source, _WRITTEN))) for uid, source in sources)


def changed(uid: str, said: Sequence[Message], last: Sequence[float]) -> Iterator[tuple[int, dict[str, float]]]:
    """The variables that each message has changed; ``last``: the values before the first one."""
    terminal = split(uid)[1]
    names = [variable(terminal, point) for point in range(POINTS)]
    for message in said:
        found = zip(names, message.values, last, strict=True)
        yield message.time_ms, {name: value for name, value, before in found if value != before}
        last = message.values


def to_lines(name: str, records: Iterable[tuple[int, dict[str, float]]]) -> bytes:
    """Line protocol, one for a record."""
    lines = (
        f"mosaic,object={name} {','.join(map('{}={}'.format, record, record.values()))} {time_ms}"
        for time_ms, record in records
        if record
    )
    return "\n".join(lines).encode()


def to_series(name: str, records: Iterable[tuple[int, dict[str, float]]]) -> bytes:
    """VictoriaMetrics' own format: a line for each variable, with many values."""
    columns: dict[str, tuple[list[float], list[int]]] = {}
    for time_ms, record in records:
        for code, value in record.items():
            values, times = columns.setdefault(code, ([], []))
            values.append(value)
            times.append(time_ms)
    made = (
        {"metric": {"__name__": code, "object": name}, "values": values, "timestamps": times}
        for code, (values, times) in columns.items()
    )
    return b"\n".join(map(msgspec.json.encode, made))


def write(load: Load, path: str, encode: Callable[[str, Iterable[tuple[int, dict[str, float]]]], bytes]) -> float:
    """Writes all by one connection, in pieces, at the load's rate where it has one; the seconds it took."""
    connection = http.client.HTTPConnection(load.host, load.port)
    connection.connect()
    print("connected", flush=True)
    sys.stdin.readline()
    began, done, last = time.perf_counter(), 0, dict.fromkeys(load.uids, [inf] * POINTS)
    for uid, said in _in_turn(load):
        if load.rate:
            time.sleep(max(0.0, began + done / load.rate - time.perf_counter()))
        connection.request("POST", path, encode(split(uid)[0], changed(uid, said, last[uid])))
        last[uid] = said[-1].values
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{answer.status} {text[:500]!r}")
        done += len(said)
    return time.perf_counter() - began


def main() -> None:
    """Writes what the arguments say."""
    target, load = sys.argv[1], Load(**json.loads(sys.argv[2]))
    if target == "terrazzo":
        seconds = run(load, HistoryConnection)["seconds"]
    elif target == "influxdb":
        seconds = write(load, f"/write?db={DATABASE}&precision=ms", to_lines)
    else:
        seconds = write(load, "/api/v1/import", to_series)
    print(json.dumps({"messages": load.messages * len(load.uids), "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
