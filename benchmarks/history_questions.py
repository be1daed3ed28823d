"""What operators ask of the past, as each database is asked; its answers in one form, so that they can be compared."""

from __future__ import annotations

import json
import math
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from history_load import DATABASE
from history_peers import Request

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
CURVE_BUCKETS = 500  # of 2,000 points: the first, lowest, highest and last of each

Answer = Mapping[str, Any]
"""By variable: a value, or values by the milliseconds at which their buckets begin."""
Read = Callable[[Any], Answer]


@dataclass(frozen=True)
class Question:
    """``ways``: by the name of a database, what it is asked and how its answer is read."""

    name: str
    ways: Mapping[str, tuple[Request, Read]]


def _action(action: str, **fields: Any) -> Request:
    return Request("POST", "/apiproxy/api", json.dumps({"action": action, **fields}).encode())


def _influxql(statement: str) -> Request:
    return Request("GET", "/query?" + urllib.parse.urlencode({"q": statement, "db": DATABASE, "epoch": "ms"}))


def _metricsql(query: str, *, start_ms: int, end_ms: int, step_ms: int) -> Request:
    """Values at each step after the start: each is of the step before it."""
    span = {"start": start_ms // 1000 + step_ms // 1000, "end": end_ms // 1000, "step": step_ms // 1000}
    return Request("GET", "/api/v1/query_range?" + urllib.parse.urlencode({"query": query, **span}))


def _iso(time_ms: int, *, less_us: int = 0) -> str:
    return datetime.fromtimestamp((time_ms * 1000 - less_us) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _span(start_ms: int, end_ms: int) -> dict[str, str]:
    return {"start_time": _iso(start_ms), "end_time": _iso(end_ms, less_us=1)}


def _when(start_ms: int, end_ms: int) -> str:
    return f"time >= {start_ms}ms AND time < {end_ms}ms"


def _matching(keys: Sequence[str], name: str) -> str:
    return f'{{__name__=~"{"|".join(keys)}",object="{name}"}}'


def _spaced_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def _tables(answer: Any) -> list[dict[str, Any]]:
    return [series for result in answer["results"] for series in result.get("series", ())]


def means(name: str, object_id: str, keys: Sequence[str], start_ms: int, end_ms: int, step_ms: int) -> Question:
    """The means of each step, of some variables of the object ``name``."""

    def ours(answer: Any) -> Answer:
        rows = [(_spaced_ms(row["time"]), row) for row in answer["result"]["data"]]
        return {key: {at: row[key] for at, row in rows if row[key] is not None} for key in keys}

    def influx(answer: Any) -> Answer:
        (table,) = _tables(answer)
        return {key: {row[0]: row[n] for row in table["values"] if row[n] is not None} for n, key in enumerate(keys, 1)}

    def victoria(answer: Any) -> Answer:
        return {
            each["metric"]["__name__"]: {at * 1000 - step_ms: float(value) for at, value in each["values"]}
            for each in answer["data"]["result"]
        }

    asked = {"object_id": object_id, "keys": list(keys), "resample": f"{step_ms // 1000}s", "page_size": 1000}
    columns = ", ".join(f'mean("{key}")' for key in keys)
    statement = (
        f"SELECT {columns} FROM mosaic WHERE object = '{name}' AND {_when(start_ms, end_ms)}"
        f" GROUP BY time({step_ms // 1000}s) fill(none)"
    )
    query = f"avg_over_time({_matching(keys, name)}[{step_ms // 1000}s]) keep_metric_names"
    ranged = _metricsql(query, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms)
    return Question(
        f"means, {len(keys)} variable{'s' if len(keys) > 1 else ''}",
        {
            "Terrazzo": (_action("get_mosaic_list_by_key", **asked, **_span(start_ms, end_ms)), ours),
            "InfluxDB": (_influxql(statement), influx),
            "VictoriaMetrics": (ranged, victoria),
        },
    )


def curve(name: str, object_id: str, key: str, end_ms: int, length_ms: int) -> Question:
    """A curve of 2,000 points: of each of 500 buckets the first, lowest, highest and last value.

    Buckets of more than three hours are of whole hours, those of more than 45 minutes of quarters, as Terrazzo chooses.
    """
    step_ms = max(1000, length_ms // CURVE_BUCKETS // 1000 * 1000)
    for part_ms in (HOUR_MS // 4, HOUR_MS):
        if step_ms > 3 * part_ms:
            step_ms = -(-step_ms // part_ms) * part_ms
    start_ms = end_ms // step_ms * step_ms - CURVE_BUCKETS * step_ms
    end_ms = start_ms + CURVE_BUCKETS * step_ms

    def ours(answer: Any) -> Answer:
        found: dict[int, list[float]] = {}
        points = answer["result"]["data"][key]
        for at, value in zip(points["times"], points["values"], strict=True):
            found.setdefault((at - start_ms) // step_ms * step_ms + start_ms, []).append(value)
        return {key: {at: (each[0], min(each), max(each), each[-1]) for at, each in found.items()}}

    def influx(answer: Any) -> Answer:
        (table,) = _tables(answer)
        return {key: {row[0]: tuple(row[1:]) for row in table["values"]}}

    def victoria(answer: Any) -> Answer:
        parts: dict[str, dict[int, float]] = {
            each["metric"]["rollup"]: {at * 1000: float(value) for at, value in each["values"]}
            for each in answer["data"]["result"]
        }
        times = parts["open"]
        return {key: {at: tuple(parts[part][at] for part in ("open", "low", "high", "close")) for at in times}}

    statement = (
        f'SELECT first("{key}"), min("{key}"), max("{key}"), last("{key}") FROM mosaic WHERE object = \'{name}\''
        f" AND {_when(start_ms, end_ms)} GROUP BY time({step_ms}ms, {start_ms % step_ms}ms) fill(none)"
    )
    query = f'rollup_candlestick({key}{{object="{name}"}}[{step_ms // 1000}s])'  # told at the beginnings of its steps
    ranged = _metricsql(query, start_ms=start_ms - step_ms, end_ms=end_ms - step_ms, step_ms=step_ms)
    asked = _action("get_mosaic_chart", object_id=object_id, keys=[key], points=2000, **_span(start_ms, end_ms))
    return Question(
        "chart of 2,000 points",
        {
            "Terrazzo": (asked, ours),
            "InfluxDB": (_influxql(statement), influx),
            "VictoriaMetrics": (Request(ranged.method, ranged.path + "&nocache=1"), victoria),
        },
    )


def page(name: str, object_id: str, key: str, start_ms: int, end_ms: int) -> Question:
    """The newest 50 records that have a variable, and how many there are."""

    def ours(answer: Any) -> Answer:
        rows = answer["result"]["data"]
        return {"total": answer["result"]["total_records"], key: [row[key] for row in rows]}

    def influx(answer: Any) -> Answer:
        rows, count = _tables(answer)
        return {"total": count["values"][0][1], key: [row[1] for row in rows["values"]]}

    where = f"FROM mosaic WHERE object = '{name}' AND {_when(start_ms, end_ms)}"
    statement = f'SELECT "{key}" {where} ORDER BY time DESC LIMIT 50; SELECT count("{key}") {where}'
    asked = {"object_id": object_id, "keys": [key], "page_size": 50}
    return Question(
        "page of 50 by key, exact total",
        {
            "Terrazzo": (_action("get_mosaic_list", **asked, **_span(start_ms, end_ms)), ours),
            "InfluxDB": (_influxql(statement), influx),
        },
    )


def latest(name: str, object_id: str, keys: Sequence[str], end_ms: int) -> Question:
    """The newest value of each of some variables."""

    def ours(answer: Any) -> Answer:
        (row,) = answer["result"]["data"]
        return {key: row[key] for key in keys}

    def influx(answer: Any) -> Answer:
        (table,) = _tables(answer)
        return dict(zip(keys, table["values"][0][1:], strict=True))

    def victoria(answer: Any) -> Answer:
        return {each["metric"]["__name__"]: float(each["value"][1]) for each in answer["data"]["result"]}

    columns = ", ".join(f'last("{key}")' for key in keys)
    query = f"last_over_time({_matching(keys, name)}[1d])"
    path = "/api/v1/query?" + urllib.parse.urlencode({"query": query, "time": end_ms // 1000})
    return Question(
        f"newest value of {len(keys)} variables",
        {
            "Terrazzo": (_action("get_last_mosaic", object_id=object_id, keys=list(keys)), ours),
            "InfluxDB": (_influxql(f"SELECT {columns} FROM mosaic WHERE object = '{name}'"), influx),
            "VictoriaMetrics": (Request("GET", path), victoria),
        },
    )


def difference(ours: Answer, theirs: Answer) -> str:
    """Where two answers differ; empty: they say the same (sums to 1e-9, all else exactly)."""
    if ours.keys() != theirs.keys():
        return f"{sorted(ours)} instead of {sorted(theirs)}"
    for key, mine in ours.items():
        other = theirs[key]
        if isinstance(mine, Mapping):
            if mine.keys() != other.keys():
                return f"{key}: {len(mine)} buckets instead of {len(other)}"
            pairs = [(mine[at], other[at]) for at in mine]
        else:
            pairs = [(mine, other)]
        for left, right in pairs:
            if not _is_same(left, right):
                return f"{key}: {left} instead of {right}"
    return ""


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return math.isclose(left, right, rel_tol=1e-9)
