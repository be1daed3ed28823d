"""Metrics of the supervised tasks and of the listeners, for ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.listeners import Listeners
from terrazzo.runtime.supervisor import SupervisedTask
from terrazzo_broker.log_text import visible

_TASK = ["task"]


class TaskCollector(Collector):
    """``terrazzo_task_up``, ``..._restarts_total``, ``..._failures_total`` and ``..._last_error_info``."""

    def __init__(self, tasks: Mapping[str, SupervisedTask]) -> None:
        self._tasks = tasks

    def collect(self) -> Iterable[Metric]:
        """The metrics of all tasks, read when Prometheus scrapes."""
        up = GaugeMetricFamily(
            "terrazzo_task_up", "1 while a long-lived task works, 0 from a failure until it runs again", labels=_TASK
        )
        restarts = CounterMetricFamily(
            "terrazzo_task_restarts_total",
            "Times that a long-lived task was started again after a failure",
            labels=_TASK,
        )
        failures = CounterMetricFamily(
            "terrazzo_task_failures_total", "Times that a long-lived task ended by an error", labels=_TASK
        )
        errors = GaugeMetricFamily(
            "terrazzo_task_last_error_info",
            "1, with the class of the last error of a long-lived task as label",
            labels=[*_TASK, "error"],
        )
        for name, task in self._tasks.items():
            up.add_metric([name], float(not task.is_down))
            restarts.add_metric([name], task.restarts)
            failures.add_metric([name], task.failures)
            if task.last_error:
                errors.add_metric([name, visible(task.last_error)], 1)
        return [up, restarts, failures, errors]


class ListenerCollector(Collector):
    """``terrazzo_listener_failures_total``, with the name of the ``Listeners`` as label."""

    def __init__(self, listeners: Sequence[Listeners[Any]]) -> None:
        self._listeners = listeners

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        family = CounterMetricFamily(
            "terrazzo_listener_failures_total",
            "Calls of those who listen to a part that failed, by what they listen to",
            labels=["listeners"],
        )
        for each in self._listeners:
            family.add_metric([each.name], each.failures)
        return [family]
