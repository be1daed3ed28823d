"""``make cluster``: what it starts serves, says where it is, and is gone with Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from running import wait_for
from support import require_program
from terrazzo.client import Client

PROGRAM = Path(__file__).parents[1] / "local_cluster.py"


@pytest.mark.timeout(600)
def test_a_local_cluster_serves_its_fleet_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    require_program("postgres")
    said = tmp_path / "said"
    with said.open("wb") as output:
        program = subprocess.Popen(
            [sys.executable, str(PROGRAM), "--free-ports", "--terminals", "4"], stdout=output, stderr=output
        )
    try:
        wait_for(lambda: "Ctrl-C" in said.read_text() or program.poll() is not None, "it is ready", timeout_s=400)
        text = said.read_text()
        assert program.poll() is None, text
        leader = re.search(r"(http://127\.0\.0\.1:\d+)/  leads", text)
        login = re.search(r"login +admin, (\S+)", text)
        folder = re.search(r"logs +(\S+)/\*\.log", text)
        assert leader is not None, text
        assert login is not None, text
        assert folder is not None, text
        assert text.count("mqtt://") == 2
        with Client(leader[1], username="admin", password=login[1]) as client:

            def connected() -> int:
                uids = [each["uid"] for each in client.call("get_terminal_list")]
                return sum(client.call("get_terminal_status", terminal_id=uid)["online"] for uid in uids)

            wait_for(lambda: connected() == 4, "the fleet is connected to the fronts", timeout_s=120)
        command = re.search(r"^  (\S+ cluster status --config \S+)$", text, re.M)
        assert command is not None, text
        shown = subprocess.run([*command[1].split(), "--json"], capture_output=True, text=True, timeout=120, check=True)
        assert [each["state"] for each in json.loads(shown.stdout)["fronts"]] == ["serves", "serves"]
        killed = next(pid for pid in children(program.pid) if "f1.toml" in Path(f"/proc/{pid}/cmdline").read_text())
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: "f1 has ended with -9, and is started again." in said.read_text(), "it is kept", timeout_s=60)
        begun = children(program.pid)
        assert len(begun) == 3 + 2 + 2 + 2, "servers of the log, nodes, fronts, fleets"
        program.send_signal(signal.SIGINT)
        assert program.wait(300) == 0
        assert "All have ended." in said.read_text()
        assert not Path(folder[1]).exists()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in begun), "no process is left")
    finally:
        if program.poll() is None:
            program.send_signal(signal.SIGTERM)
            program.wait(300)


def children(pid: int) -> list[int]:
    """The processes that one has begun, as long as it is there."""
    task = Path(f"/proc/{pid}/task")
    return [int(each) for thread in os.listdir(task) for each in (task / thread / "children").read_text().split()]
