"""Data and questions for InfluxQL: what Grafana's data source sends, and random ones from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from terrazzo.times import parse_time

START_US = parse_time("2026-03-01T00:00:00Z")
SECOND_US = 1_000_000
HOURS = 6
NAMES = ("Pump 1", "Pump 2", "Tank, north", "Twin", "Twin")
"""Of the objects 1 to 5."""

Row = tuple[int, int, dict[str, float | bool | str]]
"""Object, time in microseconds, values."""


def rows() -> list[Row]:
    """Records of all objects, no two at one time: ``flow`` often, ``level`` seldom, some flags and texts."""
    source, found = random.Random(20), []
    for object_id in range(1, 6):
        flow = 20.0
        for step in range(HOURS * 60):
            if source.random() < 0.25:
                continue
            time_us = START_US + (step * 60 + object_id * 7) * SECOND_US + source.randrange(1_000) * 1_000
            flow = round(flow + source.gauss(0, 1), 2)
            values: dict[str, float | bool | str] = {"flow": flow}
            if step % 7 == object_id:
                values["level"] = source.randrange(0, 50)
            if step % 31 == 3:
                values["running"] = source.random() < 0.5
            if step % 43 == 5:
                values["note"] = source.choice(["ok", "door open", "it's 5 o'clock"])
            if source.random() < 0.05:
                del values["flow"]
            if values:
                found.append((object_id, time_us, values))
    return found


def lines(found: list[Row]) -> str:
    """The records as InfluxDB takes them."""
    return "\n".join(
        f"{_escaped(NAMES[object_id - 1])},object_id={object_id} "
        + ",".join(f"{name}={_written(value)}" for name, value in values.items())
        + f" {time_us * 1_000}"
        for object_id, time_us, values in found
    )


def _escaped(name: str) -> str:
    return name.replace(",", "\\,").replace(" ", "\\ ")


def _written(value: float | bool | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else repr(float(value))


FROM_MS = START_US // 1_000
TO_MS = FROM_MS + HOURS * 3_600_000
RANGE = f"time >= {FROM_MS}ms and time <= {TO_MS}ms"
ODD = f"time >= {FROM_MS + 1_234_567}ms and time <= {FROM_MS + 9_876_543}ms"

GRAFANA = [
    # variables and the query editor
    'SHOW RETENTION POLICIES on "mosaic"',
    "SHOW MEASUREMENTS LIMIT 100",
    "SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)pump/ LIMIT 100",
    "SHOW MEASUREMENTS WHERE \"object_id\" = '3' LIMIT 100",
    'SHOW TAG KEYS FROM "Pump 1"',
    "SHOW TAG KEYS",
    'SHOW TAG VALUES FROM "Twin" WITH KEY = "object_id"',
    'SHOW TAG VALUES WITH KEY = "object_id"',
    'SHOW TAG VALUES FROM "Twin" WITH KEY = "object_id" WHERE "object_id" = \'5\'',
    "SHOW TAG VALUES FROM /^P/ WITH KEY =~ /obj/ LIMIT 3",
    'SHOW TAG VALUES WITH KEY IN ("object_id", "host")',
    'SHOW TAG VALUES WITH KEY = "nosuch"',
    'SHOW FIELD KEYS FROM "Pump 1"',
    'SHOW FIELD KEYS FROM "autogen"."Tank, north"',
    "SHOW SERIES",
    "SHOW SERIES FROM \"Twin\" WHERE object_id = '4'",
    "SHOW MEASUREMENTS OFFSET 1 LIMIT 1",
    # the query builder
    f'SELECT mean("flow") FROM "Pump 1" WHERE {RANGE} GROUP BY time(5m) fill(null)',
    f'SELECT mean("flow") FROM "autogen"."Pump 1" WHERE {RANGE} GROUP BY time(30s) fill(none)',
    f'SELECT mean("flow") FROM "Twin" WHERE ("object_id" = \'4\') AND {RANGE} GROUP BY time(10m) fill(null)',
    f'SELECT mean("flow") FROM "Twin" WHERE ("object_id"::tag = \'4\' OR "object_id"::tag = \'5\') AND {RANGE} '
    'GROUP BY time(10m), "object_id"::tag fill(null) ORDER BY time ASC',
    f'SELECT mean("flow") FROM "Twin" WHERE ("object_id" =~ /^(4|5)$/) AND {RANGE} '
    'GROUP BY time(1h), "object_id" fill(0)',
    f'SELECT mean("flow"), max("flow"), min("flow") FROM "Twin" WHERE {RANGE} GROUP BY time(1h), * fill(previous)',
    f'SELECT last("flow") AS "now" FROM "Pump 1" WHERE {RANGE}',
    f'SELECT last("flow") FROM /^Pump/ WHERE {RANGE} GROUP BY "object_id"',
    f'SELECT non_negative_derivative(mean("flow"), 10s) AS rate FROM "Pump 2" WHERE {RANGE} '
    "GROUP BY time(10m) fill(null)",
    f'SELECT derivative(last("level"), 1m) FROM "Pump 2" WHERE {RANGE} GROUP BY time(20m) fill(none)',
    f'SELECT difference(max("level")) FROM "Pump 2" WHERE {RANGE} GROUP BY time(1h)',
    f'SELECT moving_average(mean("flow"), 5) FROM "Pump 1" WHERE {ODD} GROUP BY time(5m)',
    f'SELECT cumulative_sum(count("flow")) FROM "Pump 1" WHERE {RANGE} GROUP BY time(30m)',
    f'SELECT mean("flow") * 2 + 1 AS "double" FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h) fill(linear)',
    f'SELECT mean("flow") / mean("level") FROM "Pump 1" WHERE {RANGE} GROUP BY time(7m) fill(null)',
    f'SELECT percentile("flow", 95) FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h)',
    f'SELECT count("note") FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h) fill(null)',
    f'SELECT count("note") FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h) fill(linear)',
    f'SELECT distinct("note") FROM "Pump 1" WHERE {RANGE}',
    f'SELECT "flow", "level" FROM "Pump 1" WHERE {RANGE} LIMIT 20',
    f'SELECT "note" FROM "Pump 1" WHERE {RANGE} ORDER BY time DESC LIMIT 100',
    f'SELECT * FROM "Tank, north" WHERE {RANGE} LIMIT 30 OFFSET 10',
    f'SELECT * FROM "Twin" WHERE {RANGE} GROUP BY * LIMIT 5',
    f'SELECT mean(*) FROM "Pump 1" WHERE {RANGE} GROUP BY time(2h)',
    f'SELECT max(/^(flow|level)$/) FROM "Pump 1" WHERE {RANGE} GROUP BY time(2h)',
    f'SELECT mean("flow") FROM "Pump 1" WHERE {RANGE} GROUP BY time(1d) fill(null) tz(\'Europe/Berlin\')',
    f'SELECT mean("flow") FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h, 20m) tz(\'Asia/Kolkata\')',
    f'SELECT top("flow", 3) FROM "Pump 1" WHERE {RANGE}',
    f'SELECT bottom("flow", 2), "level" FROM "Pump 1" WHERE {RANGE}',
    f'SELECT top("flow", 2) FROM "Pump 1" WHERE {RANGE} GROUP BY time(2h)',
    f'SELECT mean("m") FROM (SELECT max("flow") AS "m" FROM "Twin" WHERE {RANGE} GROUP BY time(10m), "object_id") '
    f"WHERE {RANGE} GROUP BY time(1h)",
    f'SELECT sum("f") FROM (SELECT last("flow") AS "f" FROM /^(Pump|Twin)/ WHERE {RANGE} GROUP BY "object_id")',
    f'SELECT max("d") FROM (SELECT "flow" - "level" AS "d" FROM "Pump 1" WHERE {RANGE})',
    f'SELECT count("flow") FROM "Pump 1", "Pump 2" WHERE {RANGE}',
    'SELECT last("flow") FROM "nosuch"',
    'SELECT last("nosuch") FROM "Pump 1"',
    "SELECT \"flow\" FROM \"Pump 1\" WHERE time >= '2026-03-01T01:00:00Z' AND time < '2026-03-01 01:10:00'",
    "SELECT mean(\"flow\") FROM \"Pump 1\" WHERE time > '2026-03-01' AND time < '2026-03-01' + 3h GROUP BY time(1h)",
    'SELECT mean("flow") FROM "Pump 1" WHERE time > now() - 1s GROUP BY time(1s)',
    f'SELECT first("flow"), "note" FROM "Pump 1" WHERE {RANGE}',
    f'SELECT max("flow"), "level", "object_id" FROM "Pump 1" WHERE {RANGE} GROUP BY time(2h)',
    f'SELECT mean("flow") FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h) LIMIT 2 OFFSET 1',
    f'SELECT mean("flow") FROM "Twin" WHERE {RANGE} GROUP BY time(1h), object_id SLIMIT 1 SOFFSET 1',
    f'SELECT mean("flow") FROM "Twin" WHERE {RANGE} GROUP BY time(1h), object_id ORDER BY time DESC',
    f'SELECT "flow" FROM "Pump 1" WHERE "level" > 25 AND {RANGE}',
    f'SELECT "flow" FROM "Pump 1" WHERE ("level" > 40 OR "note" = \'ok\') AND {RANGE}',
    f'SELECT "flow", "running" FROM "Pump 1" WHERE "running" = true AND {RANGE}',
    f'SELECT "flow" FROM "Pump 1" WHERE "note" =~ /o.*k/ AND {RANGE}',
    f'SELECT "note" FROM "Pump 1" WHERE "note" = \'it\\\'s 5 o\\\'clock\' AND {RANGE}',
    f'SELECT count("flow") FROM "Pump 1" WHERE "flow" > 20 AND {RANGE} GROUP BY time(1h)',
    f'SELECT count(distinct("level")) FROM "Pump 1" WHERE {RANGE}',
    f'SELECT integral("flow", 1h) FROM "Pump 1" WHERE {RANGE}',
    f'SELECT integral("flow") FROM "Pump 1" WHERE {RANGE} GROUP BY time(1h)',
    f'SELECT elapsed("flow", 1s) FROM "Pump 1" WHERE {RANGE} LIMIT 10',
    f'SELECT spread("flow"), stddev("flow"), median("flow"), mode("level") FROM "Pump 1" WHERE {RANGE} '
    "GROUP BY time(2h)",
    f'SELECT first("running"), last("note"), count("running") FROM "Pump 1" WHERE {RANGE} GROUP BY time(2h)',
    f'SELECT max("running") FROM "Pump 1" WHERE {RANGE}',
    f'SELECT "flow" - "level", "flow" % 3, -"flow" FROM "Pump 1" WHERE {RANGE} LIMIT 20',
    f'SELECT abs("flow" - 20), round("flow"), floor("flow"), sqrt("level") FROM "Pump 1" WHERE {RANGE} LIMIT 20',
    f'SELECT mean("flow"), mean("flow"), max("level") AS "mean_1" FROM "Pump 1" WHERE {RANGE}',
    f'SELECT mean("flow") FROM "Pump 1" WHERE {RANGE}; SELECT max("flow") FROM "Pump 2" WHERE {RANGE}',
    f'SELECT time, "flow" FROM "Pump 1" WHERE {RANGE} LIMIT 3',
    f'SELECT sum("level") FROM "Pump 1" WHERE {ODD} GROUP BY time(13m) fill(-1.5)',
    f'SELECT non_negative_difference(last("flow")) FROM "Pump 1" WHERE {ODD} GROUP BY time(13m)',
    f'SELECT difference("flow") FROM "Pump 1" WHERE {ODD}',
    f'SELECT derivative("flow", 1m) FROM "Pump 1" WHERE {ODD} ORDER BY time DESC',
    f'SELECT elapsed(mean("flow"), 1m) FROM "Pump 1" WHERE {ODD} GROUP BY time(7m) fill(none)',
    # what is refused
    'SELECT nosuch("flow") FROM "Pump 1"',
    'SELECT mean("flow"), "level" FROM "Pump 1"',
    'SELECT "flow" FROM "Pump 1" GROUP BY time(1m)',
    'SELECT mean("flow") FROM "Pump 1"; SELECT foo("flow") FROM "Pump 1"',
    'SELECT 1 + 2 FROM "Pump 1"',
]
"""As Grafana's editors, variables and builder send them, ``$timeFilter`` and ``$__interval`` put in."""

_AGGREGATES = ("mean", "min", "max", "sum", "count", "first", "last", "spread", "median", "stddev")
_TRANSFORMS = (
    "derivative",
    "non_negative_derivative",
    "difference",
    "cumulative_sum",
    "elapsed",
    "non_negative_difference",
)
_FILLS = ("", " fill(null)", " fill(none)", " fill(previous)", " fill(linear)", " fill(3.5)")


def random_questions(seed: int, count: int) -> Iterator[str]:
    """Questions of any shape; the same for a seed."""
    source = random.Random(seed)
    for _ in range(count):
        yield source.choice((_of_windows, _of_windows, _of_following, _of_rows, _of_all))(source)


def _span(source: random.Random) -> str:
    start = FROM_MS + source.randrange(0, 5 * 3_600_000)
    return f"time >= {start}ms AND time < {start + source.randrange(600_000, 4 * 3_600_000)}ms"


def _where(source: random.Random) -> str:
    more = source.choice(
        [
            "",
            "",
            "",
            ' AND "flow" > 20',
            ' AND "level" <= 30',
            " AND \"object_id\" != '4'",
            ' AND ("flow" < 19 OR "level" > 20)',
            ' AND "object_id" =~ /[1-4]/',
            ' AND "flow" < "level"',
        ]
    )
    return f" WHERE {_span(source)}{more}"


def _source(source: random.Random) -> str:
    return source.choice(
        ['"Pump 1"', '"Pump 2"', '"Tank, north"', '"Twin"', "/^Pump/", '"Pump 1", "Tank, north"', "/.*/"]
    )


def _aggregate(source: random.Random) -> str:
    field = source.choice(("flow", "flow", "level"))
    return source.choice(
        [*(f'{name}("{field}")' for name in _AGGREGATES), f'percentile("{field}", {source.randrange(1, 100)})']
    )


def _end(source: random.Random, *, ordered: bool = True) -> str:
    order = source.choice(["", "", " ORDER BY time DESC"]) if ordered else ""
    return order + source.choice(["", "", f" LIMIT {source.randrange(1, 9)}", f" LIMIT 5 OFFSET {source.randrange(3)}"])


def _windows(source: random.Random) -> str:
    offset = source.choice(["", "", ",90s", ",-7m"])
    tags = source.choice(["", "", ", object_id", ", *"])
    return f" GROUP BY time({source.choice(['7m', '10m', '1h', '90s'])}{offset}){tags}"


def _of_windows(source: random.Random) -> str:
    columns = ", ".join(_column(source) for _ in range(source.randrange(1, 4)))
    zone = source.choice(["", "", " tz('America/New_York')"])
    fill = source.choice(_FILLS if " - " not in columns and "stddev" not in columns else ("", " fill(null)"))
    return f"SELECT {columns} FROM {_source(source)}{_where(source)}{_windows(source)}{fill}{_end(source)}{zone}"


def _column(source: random.Random) -> str:
    one = _aggregate(source)
    return source.choice([one, one, f"{one} * 2", f"{one} - {_aggregate(source)}", f"{one} / 4 AS part"])


def _of_following(source: random.Random) -> str:
    name = source.choice((*_TRANSFORMS, "moving_average"))
    more = ", 3" if name == "moving_average" else source.choice(["", ", 10s"]) if "deriv" in name else ""
    if source.random() < 0.4:
        rows = f"{_source(source)}{_where(source)} GROUP BY object_id{_end(source, ordered=False)}"
        return f'SELECT {name}("flow"{more}) FROM {rows}'
    fill = source.choice((" fill(none)", "", " fill(previous)", " fill(0)"))
    inner = source.choice(('mean("flow")', 'max("flow")', 'last("level")', 'sum("flow")'))
    return f"SELECT {name}({inner}{more}) FROM {_source(source)}{_where(source)}{_windows(source)}{fill}{_end(source)}"


def _of_rows(source: random.Random) -> str:
    columns = source.choice(['"flow"', '"flow", "level"', '"level", "object_id"', '"flow" + "level" AS s, "note"'])
    tags = source.choice(["", " GROUP BY object_id", " GROUP BY *"])
    return f"SELECT {columns} FROM {_source(source)}{_where(source)}{tags}{_end(source)}"


def _of_all(source: random.Random) -> str:
    columns = ", ".join(_aggregate(source) for _ in range(source.choice((1, 1, 2, 3))))
    return f"SELECT {columns} FROM {_source(source)}{_where(source)}{source.choice(['', ' GROUP BY object_id'])}"
