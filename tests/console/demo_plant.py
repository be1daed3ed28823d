"""The demo with its simulated fleet, as a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from running import Platform, wait_for

_READY_S = 100.0  # a week of history is made at the first start, on a machine that has other things to do
_STOP_S = 60.0


class DemoPlant(Platform):
    """``terrazzo serve --demo``; ``login`` makes ``call`` the demo company's admin."""

    def stop(self, *, timeout_s: float = _STOP_S) -> int:
        return super().stop(timeout_s=timeout_s)

    def password(self, name: str) -> str:
        """Of one of the demo's users, or the pin of a terminal."""
        lines = (self.data / "demo-passwords").read_text().splitlines()
        return dict(line.split(" ") for line in lines)[name]


@contextmanager
def demo_plant(data: Path, **environment: str) -> Iterator[DemoPlant]:
    """Started on a new folder or on one of the demo, with all of the fleet connected and heard."""
    with DemoPlant(data, arguments=("--demo",), env=environment) as running:
        wait_for(lambda: (data / "demo-passwords").exists(), "the demo's passwords", timeout_s=_READY_S)
        wait_for(lambda: _is_login(running), "the demo's users", timeout_s=_READY_S)
        running.login("demo-admin", running.password("demo-admin"))
        wait_for(
            lambda: running.call("get_last_grid", terminal_id="demo-chiller-1")["data"], "reports", timeout_s=_READY_S
        )
        yield running


def complete_demo(plant: DemoPlant) -> None:
    """One record of each kind that the demo has none of, so that no page is seen only while it is empty."""
    config = plant.call("get_terminal_config_list")[0]
    chillers = plant.call("get_object_list", where_and=[["name", "like", "Chiller%"]])["data"]
    objects = [str(each["id"]) for each in chillers]
    firmware = {"mcu_file": "http://files.example/gateway-2.4.bin", "mcu_version": "2.4"}
    if not plant.call("get_campaign_list")["data"]:
        plant.call("update_terminal_config", **{**config, **firmware})
        plant.call(
            "create_campaign",
            name="Gateways 2.4 \u7f51\u5173\u5347\u7ea7",
            config_id=config["uid"],
            unit="MCU",
            version="2.4",
            waves=[10, 90],
            failure_percent=20,
        )
    if plant.call("get_rule_list")["data"]:
        return
    plant.call(
        "create_rule",
        name="Alarms to the shift \u62a5\u8b66\u901a\u77e5\u503c\u73ed",
        kinds=["event"],
        channel="webhook",
        url="https://shift.example/alarms",
        secret="no word, but long",
    )
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    plant.call(
        "create_balance",
        name="Cooling \u51b7\u91cf\u5e73\u8861",
        object_list=objects,
        target_code="TEMP_SUPPLY",
        input_codes=["TEMP_RETURN"],
        window=86_400,
        **by,
    )
    plant.call("create_api_key", name="Line dashboard", role="viewer", days=90)
    plant.call("create_claim_key", name="Delivery of May")
    plant.call("write_handover", hours=8, notes="Pump 2 leaks, the spare one runs.")


def _is_login(running: DemoPlant) -> bool:
    answer = running.ask("login", username="demo-admin", password=running.password("demo-admin"))
    return bool(answer["code"] == 200)


def _last_report(running: DemoPlant) -> object:
    return running.call("get_last_grid", terminal_id="demo-chiller-1")["data"]
