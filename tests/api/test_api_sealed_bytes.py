"""Bodies of every kind, read out through each interface: the same bytes before, amid and after sealing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
from api_rig import Rig, open_rig

from length import rounds
from open_stores import seal
from terrazzo.ports.store import Record
from terrazzo.times import format_iso, parse_time

START = parse_time("2026-03-01T00:00:00Z")
STEP_US = 30_000_000
PAGE = 50
NUMBERS = ["1e5", "1E+2", "-0.0", "0.10", "-7", "1.50", "12345678901234567890123", "9007199254740993", "1e-7", "0.1e1"]
VALUES = [*NUMBERS, "null", "true", '"a\\u00e9\\n"', '"1"', '""', "[1,[2,[]]]", '{"d":{"e":[{}]}}']


def payload(chance: random.Random) -> bytes:
    """JSON or MessagePack as a terminal may write it, with names twice, any spacing, deep nesting."""
    kind = chance.randrange(10)
    if kind == 0:
        return msgspec.msgpack.encode({"a": chance.choice([-0.0, 1, 2.5, None, "x", 2**63]), "n": {"b": [1, {}]}})
    if kind == 1:
        depth = chance.randrange(2, 30)
        return b'{"a":' * depth + b"1" + b"}" * depth
    gap = chance.choice(["", " ", "\t", "  \n "]) if kind < 5 else ""
    names = [chance.choice(["a", "b", "c", "a.b", "Time", '\\"q']) for _ in range(chance.randrange(6))]
    members = [f'"{name}"{gap}:{gap}{chance.choice(VALUES)}' for name in names]
    return f"{{{gap}{f'{gap},{gap}'.join(members)}{gap}}}".encode()


def values(chance: random.Random) -> bytes:
    """What a mapping makes: any values, in any order, names that come and go."""
    names = chance.sample(["a", "b", "c", "T 1", "é"], chance.randrange(1, 5))
    kinds = [None, True, False, 0, -1, 2**40, -(2**63), 2**64 - 1, 0.1, -0.0, 1e300, "", "x" * 40]
    return msgspec.msgpack.encode({name: chance.choice([*kinds, chance.random()]) for name in names})


def reject(chance: random.Random) -> bytes:
    raw = chance.randbytes(chance.randrange(30))
    return msgspec.msgpack.encode({"topic": "g/t1/r", "reason": "JSON: malformed", "payload": raw})


def records(count: int) -> list[Record]:
    """A grid, a mosaic and a reject record at each time, some of one time."""
    chance, found = random.Random(20), []
    for number in range(count):
        time_us = START + (number - number % 7 // 6) * STEP_US
        found.append(Record("g/t1/r", time_us, payload(chance)))
        found.append(Record("m/1", time_us, values(chance)))
        if number % 5 == 0:
            found.append(Record("x/t1", time_us, reject(chance)))
    return found


def questions(count: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Paths and queries of all that reads history."""
    last = format_iso(START + count * STEP_US)
    span = {"start_time": format_iso(START), "end_time": last}
    asked = {
        "get_grid_list": {"terminal_id": "t1", **span},
        "get_mosaic_list": {"object_id": 1, "keys": ["a", "é"], **span},
        "get_mosaic_list_by_key": {"object_id": 1, "keys": "*", **span},
        "get_reject_list": {"terminal_id": "t1", **span},
    }
    for action, fields in asked.items():
        for index in range(1, -(-count // PAGE) + 2):
            yield "/apiproxy/api", {"action": action, "page_index": index, "page_size": PAGE, **fields}
    for action in ("get_last_grid_list", "get_last_mosaic_list"):
        of = {"terminal_id": "t1"} if "grid" in action else {"object_id": 1, "keys": "*"}
        yield "/apiproxy/api", {"action": action, "items": PAGE, **of}
    for number in range(0, count, max(1, count // 10)):
        time = format_iso(START + number * STEP_US)
        yield "/apiproxy/api", {"action": "get_grid_item", "terminal_id": "t1", "time": time}
        yield "/apiproxy/api", {"action": "get_mosaic_item", "object_id": 1, "keys": ["b"], "time": time}
    yield "/apiproxy/api", {"action": "get_last_grid", "terminal_id": "t1"}
    yield "/apiproxy/api", {"action": "get_last_mosaic", "object_id": 1, "keys": "*"}
    for keys in (["a", "b"], ["T 1"]):
        yield "/apiproxy/api", {"action": "get_mosaic_chart", "object_id": 1, "keys": keys, "points": 40, **span}
        yield "/apiproxy/api", {"action": "get_grid_chart", "terminal_id": "t1", "keys": keys, "points": 40, **span}
    for path in ("/export/grid/t1", "/export/mosaic/1"):
        for form in ("csv", "ndjson"):
            yield path, {"format": form}
    yield "/grid/api/v1/grid/getListByDuration", {"terminal_id": "t1", "page_size": str(PAGE), **span}
    for field in ("a", "b", "c"):
        yield "/influx/query", {"db": "mosaic", "q": f'SELECT "{field}" FROM "object:1"', "epoch": "u"}


async def answers(rig: Rig, count: int) -> dict[str, bytes]:
    found = {}
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}", "Content-Type": "application/json"}
    for path, asked in questions(count):
        how = {"data": json.dumps(asked)} if path == "/apiproxy/api" else {"params": asked}
        method = rig.http.post if path == "/apiproxy/api" else rig.http.get
        async with method(path, headers=headers, **how) as response:
            text = await response.read()
            assert response.status == 200, f"{path} {asked}: {text[:300]!r}"
        assert path != "/apiproxy/api" or b'"code":200' in text, f"{asked}: {text[:300]!r}"
        found[f"{path} {asked}"] = text
    return found


async def test_each_interface_says_the_same_before_and_after_sealing(tmp_path: Path) -> None:
    count = rounds(120, 10_000)
    async with open_rig(tmp_path) as rig:
        signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        rows = [[code, code, code, "STA", f"$AdapterID-1.{code}", "x", ""] for code in ("a", "b", "c")]
        uid = (await rig.call("create_mapping", name="m", script=rows, **signed))["uid"]
        await rig.add_terminal("t1")
        assert (await rig.call("create_object", name="o", mapping_id=uid, terminal_list=[]))["id"] == 1
        every = records(count)
        await rig.services.store.append(every)
        before = await answers(rig, count)
        listed = b"".join(text for asked, text in before.items() if "get_grid_list" in asked)
        for record in every:
            if record.series == "g/t1/r" and record.body[:1] == b"{":
                assert record.body.replace(b"\n", b" ") in listed
        for cutoff_us in (START + count // 2 * STEP_US, 2**62):
            await seal(rig.services.store._store, block=16, cutoff_us=cutoff_us)
            assert rig.services.store.stats().sealed_records
            after = await answers(rig, count)
            differ = [asked for asked in before if before[asked] != after[asked]]
            assert not differ, f"{differ[0]}\n{before[differ[0]][:500]!r}\n{after[differ[0]][:500]!r}"
