"""docs/simulators.md names each option, point, alarm and setting."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from terrazzo_simulators.equipment import MACHINES, machine_of
from terrazzo_simulators.options import make_parser

TEXT = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text("utf-8")
NAMED = set(re.findall(r"`([^`\s]+)`", TEXT))


def options() -> set[str]:
    (commands,) = [action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return {text for action in commands.choices["run"]._actions for text in action.option_strings} - {"-h", "--help"}


def flat(points: dict[str, Any]) -> set[str]:
    return {
        f"{name}.{inner}" if inner else name
        for name, value in points.items()
        for inner in (value if isinstance(value, dict) else [""])
    }


def test_each_option_is_documented_and_no_other() -> None:
    assert {name for name in NAMED if name.startswith("--")} == options()


@pytest.mark.parametrize("terminal_type", sorted(MACHINES))
def test_each_point_setting_and_alarm_is_documented(terminal_type: str) -> None:
    machine = machine_of(terminal_type, seed=1, uid="x")
    machine.advance(0)
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{terminal_type}`")]
    named = set(re.findall(r"`([^`\s]+)`", row))
    assert named == {terminal_type} | flat(machine.points()) | set(machine.settings) | set(machine.alarms)
