"""A platform on InfluxDB: all eight types of statistics, a calculation and a balance, against what it exports."""

from __future__ import annotations

import json
import math
import random
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from analysis_stand import History, at, plainly, starts
from test_analysis_platform import report

from influx_server import InfluxServer
from running import Platform, wait_for
from terrazzo.times import now_us

SCRIPT = [
    ["AVG", "avg", "A"],
    ["SUM", "sum", "A"],
    ["MIN", "min", "A"],
    ["MAX", "max", "A"],
    ["N", "count", "A"],
    ["DELTA", "delta", "A"],
    ["FIRST", "first", "A"],
    ["LAST", "last", "A"],
    ["ON", "duration(RUN==1)", "RUN"],
]
MAPPING = [[code, "", "", "STA", f"$AdapterID-1.{code}", ""] for code in ("A", "RUN", "X", "T")]
FIRST_US = at("2025-11-30 20:00:00")
SECOND_US = 1_000_000


def iso(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / SECOND_US, UTC).isoformat()


def bodies() -> list[dict[str, object]]:
    """Of a year that is over, of two of its months and several days; of this year; and of the last minutes."""
    pick = random.Random(5)
    times = [FIRST_US + n * 3_100 * SECOND_US for n in range(40)]
    times += [at("2026-02-03 04:05:06") + n * 600 * SECOND_US for n in range(30)]
    now = now_us() // SECOND_US * SECOND_US
    times += [now - n * 20 * SECOND_US for n in range(6, 0, -1)]
    found: list[dict[str, object]] = []
    for number, time_us in enumerate(times):
        a = pick.choice([number, number / 4, -number, None, True, "text"]) if number % 40 else 1
        found.append({"A": a, "RUN": pick.randrange(2), "Time": iso(time_us)})
    for time_us in (times[39], times[69], times[-1]):  # what is held for months makes a result for each of their hours
        found.append({"RUN": None, "Time": iso(time_us + SECOND_US)})
    found += [
        {"X": n % 7, "T": 1 + 3 * (n % 7), "Time": iso(at("2026-03-01 10:00:00") + n * 60_000_000)} for n in range(30)
    ]
    return sorted(found, key=lambda body: str(body["Time"]))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, influxd: InfluxServer) -> Iterator[Platform]:
    folder: Path = tmp_path_factory.mktemp("analysis-influxdb")
    settings = {"KIND": "influxdb", "URL": influxd.url, "DATABASE": folder.name}
    with Platform(
        folder / "data", env={f"TERRAZZO_STORE__{name}": value for name, value in settings.items()}
    ) as running:
        running.login().add_terminal("s1", running.add_config())
        by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        mapping = running.call("create_mapping", name="m", script=MAPPING, **by)["uid"]
        made = running.call("create_object", name="o", mapping_id=mapping, terminal_list=["s1"])
        report(running, *bodies())
        one = {"object_list": [made["uid"]]}
        of = {
            "statistics": {"script": SCRIPT, **one},
            "calculate": {"script": [["TWICE", "SUM * 2"], ["RANGE", "MAX - MIN"]]},
            "balance": {"target_code": "T", "input_codes": ["X"], "window": 3600, **one},
        }
        for kind, fields in of.items():
            uid = running.call(f"create_{kind}", name=kind, **fields)["uid"]
            running.call(f"start_{kind}", uid=uid)
        yield running


def history(platform: Platform) -> History:
    """All records, as anybody may export them."""
    address = f"{platform.url}/export/mosaic/1?format=jsonl"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {platform.token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        rows = [json.loads(line) for line in answer]
    return [(round(datetime.fromisoformat(row["time"]).timestamp() * SECOND_US), row["value"]) for row in rows]


def computed(found: History, start_us: int, end_us: int) -> dict[str, Any]:
    return {name: plainly(fn, code, found, start_us, end_us) for name, fn, code in SCRIPT}


def matches(data: str, wanted: Any) -> bool:
    """Whether a result's text says a value."""
    if wanted is None or isinstance(wanted, bool | str):
        return data == ("" if wanted is None else wanted if isinstance(wanted, str) else str(wanted).lower())
    return data not in ("", "true", "false", "text") and math.isclose(float(data), wanted, rel_tol=1e-9, abs_tol=1e-9)


def listed(platform: Platform, action: str, uid: str, kind: int) -> dict[tuple[str, str], str]:
    """All results of a type, by beginning and variable."""
    rows, page = [], {"total_records": 1}
    while len(rows) < page["total_records"]:
        page = platform.call(action, script_uid=uid, type=kind, page_index=len(rows) // 1000 + 1, page_size=1000)
        rows += page["data"]
        assert page["data"] or not page["total_records"]
    return {(row["start_time"], row["var_name"]): row["data"] for row in rows}


def finished(platform: Platform, kind: int) -> dict[tuple[str, str], Any]:
    """What a type has to have."""
    found, wanted = history(platform), {}
    for start_us, end_us in starts(kind, FIRST_US, now_us() - 10 * SECOND_US, UTC):
        values = computed(found, start_us, end_us)
        if values["N"] or values["ON"]:
            start = iso(start_us)
            wanted |= {(start, name): value for name, value in values.items()}
    return wanted


def differences(got: dict[Any, str], wanted: dict[Any, Any]) -> dict[Any, Any]:
    """What is, and what should be."""
    keys = got.keys() | wanted.keys()
    return {
        key: (got.get(key), wanted.get(key, "nothing"))
        for key in sorted(keys)
        if key not in got or key not in wanted or not matches(got[key], wanted[key])
    }


def in_the_end(find: Callable[[], dict[Any, Any]]) -> None:
    """Waits until there are no differences; shows those that stay."""
    try:
        wait_for(lambda: not find(), "as the records say")
    except AssertionError:
        assert find() == {}


def of_finished(platform: Platform, kind: int) -> dict[Any, Any]:
    return differences(listed(platform, "get_statistics_list", "1", kind), finished(platform, kind))


def of_running(platform: Platform, kind: int) -> dict[Any, Any]:
    now = datetime.now(UTC)
    begin = {
        5: now.replace(hour=0, minute=0, second=0, microsecond=0),
        6: now.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
        7: now.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
        8: datetime.fromtimestamp(0, UTC),
    }[kind]
    wanted = computed(history(platform), round(begin.timestamp() * SECOND_US), now_us())
    rows = platform.call("get_last_statistics", script_uid="1", type=kind)["data"]
    got = {row["var_name"]: row["data"] for row in rows}
    return differences(got, wanted)


def all_are_right(platform: Platform) -> None:
    for kind in (1, 2, 3, 4):
        in_the_end(partial(of_finished, platform, kind))
    for kind in (5, 6, 7, 8):
        in_the_end(partial(of_running, platform, kind))


def test_statistics_of_all_types_are_those_of_the_records(platform: Platform) -> None:
    assert len(history(platform)) >= 76 + 30
    all_are_right(platform)
    assert len({start for start, _ in finished(platform, 3)}) == 3
    assert finished(platform, 4), "a year is over"


def test_late_records_have_them_computed_again(platform: Platform) -> None:
    before = listed(platform, "get_statistics_list", "1", 4)
    late = [{"A": 10_000 + n, "RUN": 1, "Time": iso(FIRST_US + n * 7_000 * SECOND_US + 1)} for n in range(5)]
    report(platform, *late, {"RUN": None, "Time": iso(FIRST_US + 36_000 * SECOND_US)})
    all_are_right(platform)
    assert listed(platform, "get_statistics_list", "1", 4) != before


def test_calculations_follow(platform: Platform) -> None:
    def missing(kind: int) -> dict[Any, Any]:
        sums = {key: value for key, value in finished(platform, kind).items() if key[1] == "SUM"}
        got = listed(platform, "get_calculate_list", "1", kind)
        twices = {(start, "SUM"): data for (start, name), data in got.items() if name == "TWICE"}
        return differences(twices, {key: twice(value) for key, value in sums.items()})

    for kind in (1, 2, 3, 4):
        in_the_end(partial(missing, kind))
    total = computed(history(platform), 0, now_us())
    rows = platform.call("get_last_calculate", script_uid="1", type=8)["data"]
    got = {row["var_name"]: row["data"] for row in rows}
    assert matches(got["TWICE"], twice(total["SUM"]))
    assert matches(got["RANGE"], total["MAX"] - total["MIN"])


def twice(value: Any) -> Any:
    return None if value is None else 2 * value


def test_a_balance_is_fitted(platform: Platform) -> None:
    found: list[Any] = []

    def fitted() -> bool:
        found[:] = platform.call("get_balance_result_list")["data"]
        return bool(found)

    wait_for(fitted, "a balance")
    [value] = [each["value"] if isinstance(each["value"], dict) else json.loads(each["value"]) for each in found]
    parameters = json.loads(value["parameters"])
    assert parameters["points"] == 30
    assert parameters["coefficients"]["X"] == pytest.approx(3)
    assert parameters["intercept"] == pytest.approx(1)
    assert float(value["correlation"]) == pytest.approx(1)
