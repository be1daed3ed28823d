"""``terrazzo bench``: what is computed of the runs, the goals, the comparison and the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from terrazzo_bench.comparison import Verdict, compare, verdict_of
from terrazzo_bench.goals import judge
from terrazzo_bench.markdown import differences, page
from terrazzo_bench.report import NoReport, PeerSeen, Report, load_report
from terrazzo_bench.result import OURS, Better, Result, Series, series_of, spread_of, times_better


def series(
    *values: float, name: str = "a", better: Better = Better.HIGHER, peer: str = OURS, unit: str = "x"
) -> Series:
    return Series(name=name, unit=unit, better=better, peer=peer, versions="", values=values)


def report(*found: Series, **failed: str) -> Report:
    peers = [PeerSeen("Mosquitto", "2.0.11", "2021-06-08"), PeerSeen("InfluxDB", missing="apt install influxdb")]
    made = Report("2026-11-24 08:00 UTC", {"cores": "2"}, "0.1.0 abc", "terrazzo bench", 3, False)
    made.peers, made.series, made.failed = peers, list(found), failed
    return made


def test_the_spread_is_median_quartiles_and_extremes() -> None:
    spread = spread_of([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (spread.least, spread.low, spread.median, spread.high, spread.most) == (1, 2, 3, 4, 5)
    assert spread_of([7.0]).low == spread_of([7.0]).high == 7
    with pytest.raises(ValueError, match="no value"):
        spread_of([])


def test_runs_become_series_by_figure_unit_and_peer() -> None:
    runs = [[Result("a", "x", n, Better.LOWER), Result("a", "x", 10 * n, Better.LOWER, "Other")] for n in (1.0, 2.0)]
    assert [(each.peer, each.values) for each in series_of(runs)] == [(OURS, (1.0, 2.0)), ("Other", (10.0, 20.0))]


def test_times_better_is_above_one_in_our_favour_whichever_way_is_good() -> None:
    more = times_better(series(20.0, 30.0), series(10.0, 10.0, peer="p"))
    less = times_better(series(10.0, 10.0, better=Better.LOWER), series(20.0, 30.0, better=Better.LOWER, peer="p"))
    assert more is not None
    assert (more.least, more.median, more.most) == (2, 2.5, 3)
    assert less == more
    assert times_better(series(1.0), series(0.0, peer="p")) is None


@pytest.mark.parametrize(
    ("before", "now", "better", "verdict"),
    [
        ((10, 11, 12), (13, 14, 15), Better.HIGHER, Verdict.BETTER),
        ((10, 11, 12), (13, 14, 15), Better.LOWER, Verdict.WORSE),
        ((10, 11, 12), (7, 8, 9), Better.HIGHER, Verdict.WORSE),
        ((10, 11, 12), (7, 8, 9), Better.LOWER, Verdict.BETTER),
        ((10, 11, 14), (12, 13, 15), Better.HIGHER, Verdict.SAME),  # the new median was seen before
        ((10, 11, 12), (10.5, 14, 15), Better.HIGHER, Verdict.SAME),  # the old one is seen now
        ((10, 11), (1, 2, 3), Better.HIGHER, Verdict.UNKNOWN),
        ((10, 11, 12), (1, 2), Better.HIGHER, Verdict.UNKNOWN),
    ],
)
def test_a_figure_differs_where_neither_median_lies_among_the_others_runs(
    before: tuple[float, ...], now: tuple[float, ...], better: Better, verdict: Verdict
) -> None:
    assert verdict_of(series(*before, better=better), series(*now, better=better)) is verdict


def test_only_ours_make_a_regression_and_so_does_a_figure_that_is_gone() -> None:
    before = report(series(10, 11, 12), series(10, 11, 12, peer="Other"), series(1, 1, 1, name="gone"))
    now = report(series(10, 11, 12), series(1, 2, 3, peer="Other"))
    found = list(compare(before, now))
    assert [(each.verdict, each.is_regression) for each in found] == [
        (Verdict.SAME, False),
        (Verdict.WORSE, False),
        (Verdict.GONE, True),
    ]
    assert [each.name for each in compare(before, now, measured=frozenset({"a"}))] == ["a", "a"]
    text = differences(found)
    assert "| a, x | Other | 11.0 | 2.00 | 0.18 | worse |" in text
    assert "1 of 3 figures are within the spread" in text


def test_goals_are_bounds_and_ratios() -> None:
    name = "ingest with mapping"
    stack = series(10_000.0, name=name, unit="msg/s", peer="Mosquitto + paho + InfluxDB")
    for rate, verdicts in ((170_000.0, [True, True]), (120_000.0, [False, True]), (90_000.0, [False, False])):
        assert [each.is_met for each in judge([series(rate, name=name, unit="msg/s"), stack])] == verdicts
    cost = series(7.0, name=name, unit="us CPU/msg", better=Better.LOWER)
    assert [each.is_met for each in judge([cost])] == [False]
    assert judge([stack]) == []


def test_the_page_names_the_machine_the_ratios_the_ages_and_what_is_missing() -> None:
    ours, theirs = series(20, 20, 20, name="rate"), series(10, 10, 10, name="rate", peer="Mosquitto")
    text = page(report(ours, theirs, commands="Failed: a | b\nc"))
    for line in (
        "| cores | 2 |",
        "| command | `terrazzo bench` |",
        "| Terrazzo | 0.1.0 abc |",
        "| rate | x | Terrazzo | 20.0 | 20.0 to 20.0 |  |",
        "| rate | x | Mosquitto | 10.0 | 10.0 to 10.0 | 2.00 (2.00 to 2.00) |",
        "| Mosquitto | 2.0.11 | 2021-06-08 | 5 years old |",
        "| InfluxDB | not installed | | `apt install influxdb` |",
        "- commands: Failed: a / b c",
    ):
        assert f"\n{line}\n" in text


def test_a_report_comes_back_from_json_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    written = report(series(1, 2, 3), commands="why")
    path.write_text(written.to_json())
    assert load_report(path) == written
    good = json.loads(written.to_json())
    for bad in ("", "[]", "{}", json.dumps({**good, "format": 2}), json.dumps({**good, "series": [{"name": "a"}]})):
        path.write_text(bad)
        with pytest.raises(NoReport):
            load_report(path)
    with pytest.raises(NoReport):
        load_report(tmp_path / "none")
