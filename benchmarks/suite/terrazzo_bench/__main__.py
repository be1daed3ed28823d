"""``terrazzo bench``: the benchmarks, in one go."""

from __future__ import annotations

import argparse
import resource
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from terrazzo_bench.comparison import FEWEST, compare
from terrazzo_bench.machine import build, machine
from terrazzo_bench.markdown import differences, page
from terrazzo_bench.measures.benchmark import Benchmark
from terrazzo_bench.programs import missing
from terrazzo_bench.report import NoReport, Report, load_report
from terrazzo_bench.runner import BENCHMARKS, estimate_s, run_all

_RUNS = 5
_DESCRIPTORS = 65_536
_EXITS = """\
exit status: 0, all went well; 1, a figure of Terrazzo is worse than in --compare's FILE by more than the spread, or a
benchmark has no figures; 2, wrong arguments or a file that is no report; 130, interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, shows, writes; the exit status."""
    options = _options(arguments)
    chosen = [each for each in BENCHMARKS if not options.only or each.name in options.only]
    runs = options.runs or (1 if options.short else _RUNS)
    seconds = estimate_s(chosen, runs, is_short=options.short)
    if options.list:
        _show_list(chosen, runs, is_short=options.short)
        return 0
    try:
        before = load_report(options.compare) if options.compare else None
    except NoReport as error:
        sys.stderr.write(f"terrazzo bench: {error}\n")
        return 2
    sys.stderr.write(f"{len(chosen)} benchmarks, {runs} runs each: about {seconds / 60:.1f} minutes\n")
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    given = shlex.join(["terrazzo", "bench", *(sys.argv[1:] if arguments is None else arguments)])
    report = Report(made, machine(), build(), given, runs, options.short)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where whoever started it had it ignore them
        signal.signal(number, _interrupt)
    _allow_descriptors()
    try:
        run_all(chosen, report)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: everything that was started has been ended\n")
        return 130
    return _finish(report, before, chosen, options)


def _finish(report: Report, before: Report | None, chosen: Sequence[Benchmark], options: argparse.Namespace) -> int:
    sys.stdout.write(page(report))
    if options.write:
        options.write.write_text(page(report), encoding="utf-8")
    if options.json:
        options.json.write_text(report.to_json(), encoding="utf-8")
    is_worse = False
    if before is not None:
        everything = len(chosen) == len(BENCHMARKS)
        found = list(compare(before, report, measured=None if everything else frozenset(s.name for s in report.series)))
        sys.stdout.write(f"\n## Beside {options.compare}, of {before.made}\n\n{differences(found)}\n")
        is_worse = any(each.is_regression for each in found)
    return 1 if is_worse or report.failed else 0


def _show_list(chosen: Sequence[Benchmark], runs: int, *, is_short: bool) -> None:
    for each in chosen:
        lacks = ", ".join(f"{peer.name} ({peer.missing})" for peer in missing(each.peers))
        beside = f"; beside {', '.join(each.peers)}" if each.peers else ""
        print(f"{each.name:12} {each.seconds(runs, is_short=is_short):4.0f} s  {each.says}{beside}")
        if lacks:
            print(f"{'':20} not installed: {lacks}")
    print(f"{runs} runs each, about {estimate_s(chosen, runs, is_short=is_short) / 60:.1f} minutes in all")


def _allow_descriptors() -> None:
    """For this process and what it starts: thousands of connections need them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="terrazzo bench",
        description="Measures Terrazzo on this machine, beside the programs that are installed.",
        epilog=_EXITS,
    )
    names = [each.name for each in BENCHMARKS]
    parser.add_argument("--list", action="store_true", help="what would be measured, and how long it takes")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"some of {', '.join(names)}")
    parser.add_argument("--runs", type=_count, help=f"of each benchmark ({_RUNS}; a comparison wants {FEWEST})")
    parser.add_argument("--short", action="store_true", help="one short run of each, to see that all of them work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the figures, for --compare")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="says what differs by more than the spread")
    parser.add_argument("--write", type=Path, metavar="FILE", help="writes the page, in Markdown")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 100:
        raise argparse.ArgumentTypeError("1 to 100")
    return count


if __name__ == "__main__":
    raise SystemExit(main())
