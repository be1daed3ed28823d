"""A campaign over 200 simulated terminals, a tenth of which fail, with power cuts; and one that is aborted halfway."""

from __future__ import annotations

import urllib.request
from collections import Counter
from pathlib import Path

from campaign_stand import add_firmware, add_terminals, create, item, reaches, terminals, upload

from running import Platform, wait_for
from terrazzo_simulators.faults import FaultPlan, Faults
from terrazzo_simulators.pytest_plugin import FleetFactory

COUNT = 200
FAULTS = Faults(upgrade_defect=0.1, upgrade_power_cut=0.15)
SEED = 11


def test_two_hundred_terminals(tmp_path: Path, terrazzo_fleet: FleetFactory) -> None:
    with Platform(tmp_path / "data") as platform:
        platform.login()
        config = add_firmware(platform)
        uids = [f"f-{number:03}" for number in range(COUNT)]
        specs = add_terminals(platform, config, uids)
        broken = {uid for uid in uids if FaultPlan(FAULTS, seed=SEED, uid=uid).is_defective}
        assert 10 <= len(broken) <= 30
        habits = {"download_bytes": 16_384, "upgrade_s": 0.1, "reboot_s": 0.1}
        fleet = terrazzo_fleet(
            "127.0.0.1", platform.mqtt, terminals=specs, faults=FAULTS, seed=SEED, timeout_s=40, **habits
        )
        uid = create(platform, config, waves=[5, 45, 50], failure_percent=30, failure_minimum=5, retries=6)
        platform.call("start_campaign", uid=uid)
        record = reaches(platform, uid, "done", timeout_s=60)
        found = terminals(platform, uid)
        assert {name for name, each in found.items() if each["state"] == "failed"} == broken
        assert record["progress"] == Counter(done=COUNT - len(broken), failed=len(broken)) | dict.fromkeys(
            ("pending", "sent", "downloading"), 0
        )
        assert all(found[name]["attempts"] == 7 for name in broken)
        assert fleet.statistics.power_cuts > 10
        assert fleet.statistics.resumed > 10
        assert Counter(each["wave"] for each in found.values()) == {1: 10, 2: 90, 3: 100}
        aborted = _abort_halfway(platform, config)
        with urllib.request.urlopen(f"{platform.url}/metrics", timeout=5) as answer:
            metrics = answer.read().decode()
        assert "terrazzo_campaigns_running 0.0" in metrics
        assert 'terrazzo_campaign_terminals_total{state="done"}' in metrics
        assert aborted > 0


def _abort_halfway(platform: Platform, config: str) -> int:
    """The next version, in single waves: aborted after the first ones; how many had it by then."""
    file = upload(platform, "lua-3.1.0.bin")
    platform.call("update_terminal_config", uid=config, name="next", lua_file=file, lua_version="3.1.0", **_authors())
    uid = create(platform, config, waves=[5] * 20, failure_percent=100, retries=0)
    platform.call("start_campaign", uid=uid)
    wait_for(lambda: item(platform, uid)["wave"] >= 2 or item(platform, uid)["progress"]["failed"], "a second wave")
    platform.call("abort_campaign", uid=uid)
    wait_for(
        lambda: not any(item(platform, uid)["progress"][state] for state in ("sent", "downloading")), "nobody under way"
    )
    progress = item(platform, uid)["progress"]
    assert progress["pending"] >= COUNT // 2
    return progress["done"] + progress["failed"]


def _authors() -> dict[str, int]:
    return {"created_by": 1, "last_modified_by": 1, "is_available": 1}
