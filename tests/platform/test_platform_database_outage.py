"""PostgreSQL that goes away under a running platform: what terminals say meanwhile is told afterwards, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postgresql_server import PostgreSQL
from rules.rule_stand import Receiver, add_rule, config_of, prepare, report
from running import Platform, wait_for


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def values(platform: Platform) -> list[str]:
    """Of all events, the oldest first."""
    return [event["value"] for event in reversed(platform.call("get_event_list")["data"])]


def told(receiver: Receiver) -> list[Any]:
    """The events and labels that webhooks told of, each as often as it was told."""
    return sorted(item["value"] for hook in receiver.hooks for item in hook["items"])


def test_nothing_is_lost_or_doubled(tmp_path: Path, receiver: Receiver, own_postgresql: PostgreSQL) -> None:
    env = {"TERRAZZO_DATABASE__URL": own_postgresql.database()}
    with Platform(tmp_path / "data", env=env, arguments=config_of(receiver, tmp_path)) as platform:
        prepare(platform.login())
        add_rule(platform, kinds=["event", "opened"], window_s=0, **receiver.hook)
        report(platform, {"t": 90})
        wait_for(lambda: told(receiver) == ["90"], "the first event is told")

        own_postgresql.stop("immediate")
        report(platform, {"t": 70}, {"t": 91, "run": 1})
        wait_for(lambda: "database" in platform.unready_parts(), "the platform says that its database is away")
        refused = platform.ask("get_event_list")
        assert (refused["code"], refused["info"].partition(":")[0]) == (500, "database")
        own_postgresql.start()
        wait_for(lambda: told(receiver) == ["1", "90", "91"], "what happened meanwhile is told")
        assert values(platform) == ["90", "91"]
        assert platform.unready_parts() == []

        own_postgresql.stop("immediate")
        report(platform, {"t": 70, "run": 0}, {"t": 92})
        platform.kill()
        own_postgresql.start()
        with platform.again() as again:
            again.login()
            wait_for(lambda: told(receiver) == ["1", "90", "91", "92"], "the next start tells the rest")
            assert values(again) == ["90", "91", "92"]
            assert again.call("get_open_retainer_list")["data"] == []
            report(again, {"t": 70}, {"t": 93})
            wait_for(lambda: told(receiver)[-1] == "93", "it goes on")
            assert again.call("publish_terminal_command", terminal_id="m1", command="SP", value="1") is not None
            assert again.stop() == 0
    assert receiver.faults == []
