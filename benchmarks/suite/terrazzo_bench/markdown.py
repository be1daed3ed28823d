"""A report as the page ``docs/benchmarks.md``, and a comparison as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from terrazzo_bench.comparison import Difference
from terrazzo_bench.goals import Goal, judge
from terrazzo_bench.report import PeerSeen, Report
from terrazzo_bench.result import OURS, Series, Spread, times_better

_HOW = """\
Made by the command below on one machine, in one run: load, servers and subscribers share its cores over loopback, and
each peer was measured in turn with Terrazzo. So compare the rows of one table with each other, and repeat them on your
own machine: `terrazzo bench`. What each benchmark does, and older figures with their history, stands in
[benchmarks/README.md](../benchmarks/README.md).
"""
_COLUMNS = """\
Figures are medians; the quartiles of the runs stand beside them. *Times better* is the ratio to the peer in the same
run, its median and quartiles: above 1 is in Terrazzo's favour, whether more or less is good.
"""


def page(report: Report) -> str:
    """The whole page."""
    lines = ["# Benchmarks", "", *_HOW.splitlines(), ""]
    lines += ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in _about(report)), ""]
    lines += ["## Figures", "", *_COLUMNS.splitlines(), "", *_figures(report.series), ""]
    if goals := list(_goals(report.series)):
        lines += ["## Goals", "", "| figure | goal | found | |", "| --- | ---: | ---: | --- |", *goals, ""]
    lines += ["## Peers", "", "| program | version | released or packed | |", "| --- | --- | --- | --- |"]
    lines += [*(_peer(peer, report.made) for peer in report.peers), ""]
    if report.failed:
        lines += ["## Without figures", "", *(f"- {name}: {_cell(why)}" for name, why in report.failed.items()), ""]
    return "\n".join(lines).rstrip() + "\n"


def differences(found: Iterable[Difference]) -> str:
    """What differs by more than the spread, and how many figures do not."""
    told = list(found)
    rows = [each for each in told if each.verdict.name != "SAME"]
    lines = ["| figure | of | before | now | ratio | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    lines += [
        f"| {each.name}, {each.unit} | {each.peer} | {_number(each.before)} | {_number(each.now)} | {each.ratio:.2f} "
        f"| {each.verdict.value} |"
        for each in rows
    ]
    return "\n".join(
        [*(lines if rows else []), f"{len(told) - len(rows)} of {len(told)} figures are within the spread"]
    )


def _about(report: Report) -> Iterator[tuple[str, str]]:
    yield "made", f"{report.made}, in {report.took_s / 60:.1f} minutes"
    yield "command", f"`{report.command}`"
    yield "runs", str(report.runs) + (", the short form: too short to be compared" if report.is_short else "")
    yield "Terrazzo", report.commit
    yield from report.machine.items()


def _figures(series: Sequence[Series]) -> Iterator[str]:
    yield "| figure | unit | of | median | quartiles | times better |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    ours = {(each.name, each.unit): each for each in series if each.peer == OURS}
    for each in series:
        mine = ours.get((each.name, each.unit))
        ratio = times_better(mine, each) if mine is not None and each.peer != OURS else None
        spread = each.spread
        name = each.versions or each.peer
        cells = [_number(spread.median), f"{_number(spread.low)} to {_number(spread.high)}", _ratio(ratio)]
        yield f"| {each.name} | {each.unit} | {name} | " + " | ".join(cells) + " |"


def _ratio(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.median:.2f} ({spread.low:.2f} to {spread.high:.2f})"


def _goals(series: Sequence[Series]) -> Iterator[str]:
    for judged in judge(series):
        goal, found = judged.goal, judged.found
        verdict = "met" if judged.is_met else "**missed**"
        yield f"| {goal.name} | {_bound(goal)} | {_number(found)} | {verdict} |"


def _bound(goal: Goal) -> str:
    return f"{_number(goal.bound)} times {goal.against}" if goal.against else f"{_number(goal.bound)} {goal.unit}"


def _peer(peer: PeerSeen, made: str) -> str:
    if peer.missing:
        return f"| {peer.name} | not installed | | `{peer.missing}` |"
    return f"| {peer.name} | {peer.version} | {peer.released or 'not known'} | {_age(peer.released, made)} |"


def _age(released: str, made: str) -> str:
    """Whole years, or months of the first two."""
    if not released:
        return ""
    months = [12 * int(day[:4]) + int(day[5:7]) for day in (released, made)]
    old = months[1] - months[0]
    return f"{old // 12} years old" if old >= 24 else f"{old} months old"


def _number(value: float) -> str:
    """Three digits at least, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:500]
