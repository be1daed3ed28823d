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


def _is_login(running: DemoPlant) -> bool:
    answer = running.ask("login", username="demo-admin", password=running.password("demo-admin"))
    return bool(answer["code"] == 200)


def _last_report(running: DemoPlant) -> object:
    return running.call("get_last_grid", terminal_id="demo-chiller-1")["data"]
