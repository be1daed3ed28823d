"""The broker's long-lived tasks are the supervisor's when it is handed in."""

from __future__ import annotations

import pytest

from terrazzo.embedded.broker_tasks import BrokerTasks
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_broker import Broker, BrokerSettings
from terrazzo_broker.standalone import OpenHooks
from terrazzo_broker.tasks import OnFailure as BrokerOnFailure
from waiting import until


def test_the_policies_have_the_same_values():
    assert {each.value for each in BrokerOnFailure} <= {each.value for each in OnFailure}


async def test_a_fault_in_the_sweep_is_known_to_the_supervisor(monkeypatch: pytest.MonkeyPatch):
    supervisor = Supervisor(on_stop=lambda: None)
    broker = Broker(BrokerSettings(), OpenHooks(anonymous=True), tasks=BrokerTasks(supervisor))
    swept: list[int] = []

    def faulty(now_us: int) -> None:
        swept.append(now_us)
        if len(swept) == 1:
            raise RuntimeError("planted")

    monkeypatch.setattr(broker.core.storage, "on_sweep", faulty)
    await broker.listen_tcp("127.0.0.1", 0)
    await until(lambda: supervisor.degraded() == {"broker sweep": "RuntimeError"})
    await until(lambda: len(swept) > 1)
    await broker.close(1.0)
