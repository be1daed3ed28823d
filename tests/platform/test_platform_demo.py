"""``terrazzo serve --demo``: what it prints and what README.md says works as it stands, and names no password."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from pathlib import Path

import pytest

from demo_week import copy_demo
from running import Platform, wait_for
from support import require_program

DEMO_TERMINALS = 11
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    with Platform(tmp_path_factory.mktemp("demo") / "data", fresh=True, arguments=("--demo",)) as running:
        wait_for(lambda: printed_lines(running), "the lines to try", timeout_s=30)
        yield running


def printed_lines(demo: Platform) -> list[str]:
    lines = [line for line in demo.log.read_text().splitlines() if line.startswith("curl ")]
    return lines if len(lines) == 3 else []


def passwords(data: Path) -> dict[str, str]:
    """Name to password, as the file has them."""
    return dict(line.split(" ") for line in (data / "demo-passwords").read_text().splitlines())


def test_passwords_are_random_and_in_a_file_of_the_owner(demo: Platform) -> None:
    found = passwords(demo.data)
    assert len(found) == 3 + DEMO_TERMINALS + 1
    assert len(set(found.values())) == len(found)
    assert all(re.fullmatch("[0-9a-f]{16}", password) for password in found.values())
    assert stat.S_IMODE((demo.data / "demo-passwords").stat().st_mode) == 0o600
    printed = demo.log.read_text()
    assert str(demo.data / "demo-passwords") in printed
    assert not [password for password in found.values() if password in printed]
    with pytest.raises(Exception, match="wrong"):
        demo.login("demo-admin", "demo-password")


def test_the_lines_of_the_readme_work_as_they_stand(demo: Platform) -> None:
    require_program("curl")
    require_program("mosquitto_pub")
    (demo.data.parent / "terrazzo-data").symlink_to(demo.data)
    (demo.data / "admin-password").write_text(demo.environment["TERRAZZO_ADMIN__PASSWORD"])  # it was configured
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)
    (asking,) = (block for block in blocks if "TOKEN=$(curl" in block)
    (publishing,) = (block for block in blocks if block.startswith("mosquitto_pub"))
    script = publishing.replace("1883", str(demo.mqtt)) + asking.replace("31507", str(demo.http))
    wait_for(lambda: '"data":[{' in run(script, demo.data.parent), "a record")
    demo.login("demo-viewer", passwords(demo.data)["demo-viewer"])
    wait_for(lambda: demo.call("get_last_grid", terminal_id="demo-spare", topic=["r"])["data"], "what was published")


def run(script: str, folder: Path) -> str:
    command = ["bash", "-e", "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_folder_with_the_former_passwords_gets_random_ones(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy_demo(tmp_path_factory, tmp_path / "data")
    with Platform(tmp_path / "data", arguments=("--demo",)) as running:
        wait_for(lambda: printed_lines(running), "the lines to try", timeout_s=30)
        running.login()
        running.call("update_user", username="demo-admin", password="demo-password")
        running.call("update_user", username="demo-viewer", password="one of their own")
        running.change_terminal("demo-spare", pin="spare-pin")
        running.change_terminal("demo-chiller-2", pin="its-own-pin")
    (tmp_path / "data" / "demo-passwords").unlink()
    with running.again() as second:
        wait_for(lambda: len(second.log.read_text().split("\ncurl ")) == 7, "the lines to try", timeout_s=30)
        found = passwords(tmp_path / "data")
        with pytest.raises(Exception, match="wrong"):
            second.login("demo-admin", "demo-password")
        second.login("demo-viewer", "one of their own")
        second.login("demo-admin", found["demo-admin"])
        pins = {uid: second.call("get_terminal_item", uid=uid)["pin"] for uid in ("demo-spare", "demo-chiller-2")}
        assert pins == {"demo-spare": found["demo-spare"], "demo-chiller-2": "its-own-pin"}
        wait_for(
            lambda: second.call("get_terminal_status", terminal_id="demo-chiller-2")["online"], "the fleet knows it"
        )


def test_the_three_lines_work_as_printed(demo: Platform, tmp_path: Path) -> None:
    require_program("curl")
    demo.login("demo-viewer", passwords(demo.data)["demo-viewer"])
    wait_for(lambda: demo.call("get_last_grid", terminal_id="demo-chiller-1")["data"], "a first record")
    for line in printed_lines(demo):  # from whatever folder the reader is in
        finished = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
        answer = json.loads(finished.stdout)
        assert answer["code"] == 200, answer
        assert answer["resp"] in line


def test_every_terminal_of_the_fleet_reports(demo: Platform) -> None:
    demo.login("demo-admin", passwords(demo.data)["demo-admin"])
    kept_out = {"demo-spare", "demo-meter-boiler"}  # that of the reader, and one with a wrong pin
    uids = [terminal["uid"] for terminal in demo.call("get_terminal_list") if terminal["uid"] not in kept_out]
    assert len(uids) == DEMO_TERMINALS - 1
    for uid in uids:
        wait_for(lambda: demo.call("get_last_grid", terminal_id=uid, topic=["r"])["data"], f"{uid} reports")  # noqa: B023
        assert demo.call("get_terminal_status", terminal_id=uid)["online"]
    assert demo.call("get_reject_list")["total_records"] == 0


def test_a_second_start_finds_the_demo_as_it_was(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    copy_demo(tmp_path_factory, tmp_path / "data")
    kept = passwords(tmp_path / "data")
    for _ in range(2):
        with Platform(tmp_path / "data", arguments=("--demo",)) as running:
            wait_for(lambda: printed_lines(running), "the lines to try", timeout_s=30)
            assert passwords(tmp_path / "data") == kept
            running.login("demo-admin", kept["demo-admin"])
            assert len(running.call("get_terminal_list")) == DEMO_TERMINALS + 1
            assert len(running.call("get_terminal_config_list")) == 1
