"""How long a changed record takes to be in force: from the HTTP request to the end of the terminal's connection.

``python benchmarks/in_force.py [--rounds N] [--terminals N]`` starts Terrazzo with that many terminals registered,
changes one of a connected terminal's fields at a time and prints median, 99th percentile and worst in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from enforcement import CHANGES, UNTHROTTLED, Delay, delay_of_change, delay_of_terminal_list
from running import Platform


def main() -> None:
    """Measures and prints."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder, Platform(Path(folder) / "data", env=UNTHROTTLED) as platform:
        platform.login()
        config = platform.add_config()
        for number in range(arguments.terminals):
            platform.add_terminal(f"bystander-{number}", config)
        print("| change | request to in force, median | p99 | worst | answer to in force, median |")
        print("| --- | --- | --- | --- | --- |")
        for change in CHANGES:
            delays = [delay_of_change(platform, config, f"{change}-{n}", change) for n in range(arguments.rounds)]
            print(_row(change, delays))
        shared = [delay_of_terminal_list(platform, config, f"listed-{n}") for n in range(arguments.rounds)]
        print(_row("terminal_list", shared))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--terminals", type=int, default=100)
    return parser.parse_args()


def _row(change: str, delays: list[Delay]) -> str:
    whole = sorted(delay.after_request_ms for delay in delays)
    p99 = whole[min(len(whole) - 1, int(len(whole) * 0.99))]
    after = statistics.median(delay.after_answer_ms for delay in delays)
    return f"| {change} | {statistics.median(whole):.1f} ms | {p99:.1f} ms | {whole[-1]:.1f} ms | {after:+.1f} ms |"


if __name__ == "__main__":
    main()
