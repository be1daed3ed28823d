"""A failure in any long-lived task is seen by operators, and answered as its policy promises."""

from __future__ import annotations

import logging

import pytest
from planted_platform import PlantedPlatform

from running import wait_for
from support import free_port
from terrazzo.cli.checks import Level, check_tasks
from terrazzo.config.sections import load_config
from terrazzo.ports.tasks import OnFailure

NAMES = {
    "analysis",
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
SEEN_WITHIN_S = 1.0  # nothing is asked twice: it is there at the first look


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
        with platform.failing(name):
            figures, (status, answer) = platform.metrics(), platform.ready()
            failed_s = platform.supervisor.tasks[name].failed_s
        assert failed_s is not None
        assert failed_s - platform.supervisor.raised_s[name] < SEEN_WITHIN_S, name
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
        wait_for(lambda name=name: platform.supervisor.tasks[name].is_running, f"{name} runs again")
        after = platform.metrics()
        assert after["terrazzo_task_up", name] == 1
        assert after["terrazzo_task_restarts_total", name] > before["terrazzo_task_restarts_total", name]
        assert platform.ready()[0] == 200
    assert not platform.platform.failed.is_set()


def test_doctor_shows_the_tasks_of_a_platform_that_runs(platform: PlantedPlatform) -> None:
    config = platform.platform.config
    with platform.failing("rules"):
        findings = list(check_tasks(config))
    assert any(each.level is Level.WARN and each.found.endswith("by Planted; it is down") for each in findings)
    wait_for(lambda: not any(each.is_down for each in platform.supervisor.tasks.values()), "all run, again")
    *failed, last = check_tasks(config)
    assert any(each.found.startswith("rules failed ") and each.found.endswith("it runs again") for each in failed)
    count = len(platform.supervisor.tasks)
    assert (last.level, last.found) == (Level.OK, f"{count} of {count} long-lived tasks are up")


def test_doctor_says_nothing_of_tasks_where_none_run() -> None:
    config = load_config(None, {"TERRAZZO_HTTP__PORT": str(free_port())})
    assert list(check_tasks(config)) == []


def test_failures_of_listeners_are_counted_by_what_they_hear_of(platform: PlantedPlatform) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    platform.platform.messaging.ingest.records.listen(broken)
    metric = ("terrazzo_listener_failures_total", "committed records")
    before = platform.metrics()[metric]
    platform.report({"n": 1})
    wait_for(lambda: platform.metrics()[metric] > before, "it is counted")
