"""``terrazzo serve --demo``: what it prints works as it stands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from running import Platform, wait_for
from support import require_program

DEMO_TERMINALS = 8


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    with Platform(tmp_path_factory.mktemp("demo") / "data", fresh=True, arguments=("--demo",)) as running:
        wait_for(lambda: printed_lines(running), "the lines to try", timeout_s=30)
        yield running


def printed_lines(demo: Platform) -> list[str]:
    lines = [line for line in demo.log.read_text().splitlines() if line.startswith("curl ")]
    return lines if len(lines) == 3 else []


def test_the_three_lines_work_as_printed(demo: Platform, tmp_path: Path) -> None:
    require_program("curl")
    demo.login("demo-viewer", "demo-password")
    wait_for(lambda: demo.call("get_last_grid", terminal_id="demo-pwd-1")["data"], "a first record")
    for line in printed_lines(demo):  # from whatever folder the reader is in
        finished = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
        answer = json.loads(finished.stdout)
        assert answer["code"] == 200, answer
        assert answer["resp"] in line


def test_every_terminal_of_the_fleet_reports(demo: Platform) -> None:
    demo.login("demo-admin", "demo-password")
    uids = [terminal["uid"] for terminal in demo.call("get_terminal_list") if terminal["uid"] != "demo-spare"]
    assert len(uids) == DEMO_TERMINALS
    for uid in uids:
        wait_for(lambda: demo.call("get_last_grid", terminal_id=uid, topic=["r"])["data"], f"{uid} reports")  # noqa: B023
        assert demo.call("get_terminal_status", terminal_id=uid)["online"]
    assert demo.call("get_reject_list")["total_records"] == 0


def test_a_second_start_finds_the_demo_as_it_was(tmp_path: Path) -> None:
    for _ in range(2):
        with Platform(tmp_path / "data", fresh=True, arguments=("--demo",)) as running:
            wait_for(lambda: printed_lines(running), "the lines to try", timeout_s=30)
            running.login("demo-admin", "demo-password")
            assert len(running.call("get_terminal_list")) == DEMO_TERMINALS + 1
            assert len(running.call("get_terminal_config_list")) == 1
