"""A failure in any long-lived task is seen by operators, and answered as its policy promises."""

from __future__ import annotations

import logging
import time

import pytest
from planted_platform import PlantedPlatform

from running import wait_for
from terrazzo.ports.tasks import OnFailure

NAMES = {
    "analysis",
    "audit retention",
    "campaigns",
    "changes",
    "command expiry",
    "command journal",
    "effects",
    "ingest writer",
    "live frames",
    "live sweep",
    "object flags",
    "offline data",
    "replays",
    "retention",
    "rules",
    "terminal activations",
    *(f"messenger {project}.{number}" for project in ("1", "webhooks") for number in (1, 2, 3, 4)),
}
SERVE_READINESS = {"ingest writer", "effects"}
SEEN_WITHIN_S = 1.0


def test_each_long_lived_task_is_known(platform: PlantedPlatform) -> None:
    assert set(platform.supervisor.tasks) >= NAMES
    status, answer = platform.ready()
    assert (status, answer.get("degraded", {})) == (200, {})
    policies = {name: task.on_failure for name, task in platform.supervisor.tasks.items()}
    assert {name for name in NAMES if policies[name] is OnFailure.REPORT} == SERVE_READINESS


def test_a_failure_of_each_is_seen_and_it_runs_again(
    platform: PlantedPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    for name in sorted(platform.supervisor.tasks):
        before = platform.metrics()
        caplog.clear()
        began_s = time.monotonic()
        with platform.failing(name):
            figures, (status, answer) = platform.metrics(), platform.ready()
            took_s = time.monotonic() - began_s
        assert took_s < SEEN_WITHIN_S, name
        assert figures["terrazzo_task_failures_total", name] > before["terrazzo_task_failures_total", name]
        assert figures["terrazzo_task_last_error_info", f"{name} Planted"] == 1
        assert answer["degraded"][name] == "Planted"
        record = next(each for each in caplog.records if f"task {name} failed" in each.getMessage())
        assert record.levelno == logging.ERROR
        if platform.supervisor.tasks[name].on_failure is OnFailure.REPORT:
            assert (status, answer["ready"]) == (503, False)
            assert name in answer["parts"]["tasks"]["reason"]
        else:
            assert (status, answer["ready"]) == (200, True)
        wait_for(lambda name=name: platform.metrics()["terrazzo_task_up", name] == 1, f"{name} runs again")
        after = platform.metrics()
        assert after["terrazzo_task_restarts_total", name] > before["terrazzo_task_restarts_total", name]
        assert platform.ready()[0] == 200
    assert not platform.platform.failed.is_set()
