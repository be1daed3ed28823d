"""Each attack of a company from inside, beside another company that works: that one gets all that is its due.

How long it waits is the benchmark's to say: seconds are the machine's. What is bounded here is the processor time of
the loop in one go, memory, and that nothing is lost or refused.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from length import IS_LONG

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from attacks.table import ATTACKS  # noqa: E402
from bystanders import Waits  # noqa: E402
from neighbours import Row  # noqa: E402

NUMBERS = range(1, 28)


def run(script: str, *arguments: str) -> str:
    """What a benchmark prints; it has found nothing wrong."""
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-4_000:]
    return ended.stdout


def run_one(number: int, figures: Path) -> dict:
    """A second of an attack on a platform of its own; the row of it."""
    arguments = ["--loaded", "--seconds", "1", "--settle", "0", "--only", str(number), "--json", str(figures)]
    assert f"\n| {number} |" in run("neighbours.py", *arguments), "its line of the table"
    (row,) = json.loads(figures.read_text())
    return row


@pytest.mark.timeout(600)
def test_all_attacks_in_turn_beside_somebody_who_works() -> None:
    printed = run("neighbours_brief.py")
    assert [int(number) for number in re.findall(r"^ ?(\d+) .* MB  ", printed, re.MULTILINE)] == [*range(1, 26), 27, 26]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", NUMBERS if IS_LONG else [16])
def test_an_attack_beside_somebody_who_works(number: int, tmp_path: Path) -> None:
    row = run_one(number, tmp_path / "figures.json")
    waits = row["waits"]
    assert waits["reports"] == waits["frames"] > 100, "all reports were acknowledged and told"
    assert len(waits["puback"]) == waits["reports"]
    assert waits["page"]
    assert waits["statistics_s"]
    assert waits["balance_s"]
    assert bool(waits["login"]) is ATTACKS[number].is_of_logins
    assert (0 < row["end_s"] < float("inf")) is ATTACKS[number].ends
    assert (0 < row["start_s"] < float("inf")) is ATTACKS[number].lasts


WITHIN = Row(
    number=1,
    name="an attack",
    waits=Waits(puback=[1.0], ping=[1.0], page=[1.0], statistics_s=[1.0], balance_s=[0.0], reports=1, frames=1),
    memory_before=100.0,
    memory_most=120.0,
    memory_later=110.0,
    waited_s=0.0,
    loop_cpu_ms=10.0,
    loop_delay_ms=10.0,
    end_s=1.0,
    start_s=2.0,
    is_alive=True,
    is_settled=True,
    unready=[],
    attack={"rounds": 1},
    held=[],
)


@pytest.mark.parametrize(
    ("changed", "waits", "beyond"),
    [
        ({}, {"puback": [101.0]}, "PUBACK p99"),
        ({}, {"ping": [*[1.0] * 999, 501.0]}, "ping maximum"),
        ({}, {"login": [501.0]}, "login maximum"),
        ({}, {"statistics_s": []}, "statistics"),
        ({}, {"balance_s": [11.0]}, "balance"),
        ({}, {"frames": 0}, "frames"),
        ({}, {"commands": 1}, "commands"),
        ({}, {"failed": {"ping: 503": 1}}, "requests or reports failed"),
        ({"end_s": 11.0}, {}, "end"),
        ({"start_s": 11.0}, {}, "start"),
        ({"memory_most": 401.0}, {}, "memory"),
        ({"memory_later": 151.0}, {}, "memory kept"),
        ({"is_alive": False}, {}, "ended"),
        ({"unready": ["store"]}, {}, "not ready"),
        ({"attack": {}}, {}, "nothing was done"),
    ],
)
def test_what_is_beyond_its_bound_is_named(changed: dict, waits: dict, beyond: str) -> None:
    assert WITHIN.beyond() == []
    assert replace(WITHIN, waits=replace(WITHIN.waits, **waits), **changed).beyond() == [beyond]


def test_beside_others_the_loops_processor_time_counts_and_not_how_long_anybody_waits() -> None:
    slow = replace(WITHIN, waits=replace(WITHIN.waits, puback=[900.0], ping=[900.0]))
    assert slow.beyond(is_loaded=True) == []
    assert replace(slow, loop_cpu_ms=101.0).beyond(is_loaded=True) == ["the loop's processor time"]


def test_a_row_beyond_its_bound_is_named_at_the_end_and_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import neighbours

    rows = {1: WITHIN, 3: replace(WITHIN, number=3, memory_most=500.0), 7: replace(WITHIN, number=7, is_alive=False)}
    monkeypatch.setattr(neighbours, "measure", lambda attack, *_, **__: rows[attack.number])
    monkeypatch.setattr(sys, "argv", ["neighbours.py", "--only", "1,3,7"])
    with pytest.raises(SystemExit) as ended:
        neighbours.main()
    assert str(ended.value) == "beyond their bounds: 3 (memory); 7 (ended)"
    monkeypatch.setattr(sys, "argv", ["neighbours.py", "--only", "1"])
    neighbours.main()
    assert "| 1 | an attack |" in capsys.readouterr().out


def test_there_is_a_test_of_each() -> None:
    assert sorted(ATTACKS) == list(NUMBERS)
