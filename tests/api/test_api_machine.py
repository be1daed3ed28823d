"""How the machine is, for who runs it, and what the broker retains, for whose it is."""

from __future__ import annotations

import pytest
from api_rig import Rig

from terrazzo.api.operations.machine import retained as retained_list
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.topics.owners import EVERYBODY


def keep(rig: Rig, owner: str, topic: str, payload: bytes = b"x", **more: object) -> None:
    """Retains a message of a company, or of everybody."""
    message = ApplicationMessage(topic.encode(), payload, retain=True, owner=owner, publisher="pump", **more)  # type: ignore[arg-type]
    assert not rig.platform.parts.terminals.broker.retained.put(topic, message)


async def test_super_users_see_the_machine(rig: Rig) -> None:
    found = await rig.call("get_platform_status", "root")
    assert found["parts"].keys() >= {"mqtt", "ingest", "database", "store"}
    assert not any(found["parts"].values())
    tasks = {each["name"]: each for each in found["tasks"]}
    assert (tasks["analysis"]["state"], tasks["analysis"]["last_error"]) == ("running", "")
    assert found["disk"]["free_bytes"] > 0
    assert (found["backup"], found["bridges"]) == (None, [])
    for name in ("admin", "operator", "viewer", "stranger"):
        assert (await rig.ask("get_platform_status", name))["code"] == 10403


async def test_a_backup_is_told_with_its_failure(rig: Rig) -> None:
    status = rig.platform.parts.backups
    status.ended_us, status.target, status.keys, status.size, status.took_s = 1, "/mnt/backups", "sealed", 5, 1.26
    status.failed_us, status.last_error = 2_000_000, "the target is full"
    found = (await rig.call("get_platform_status", "root"))["backup"]
    assert (found["target"], found["size_bytes"], found["took_s"]) == ("/mnt/backups", 5, 1.3)
    assert found["ended"].startswith("1970-01-01")
    assert (found["failed"][:19], found["last_error"]) == ("1970-01-01 00:00:02", "the target is full")


async def test_a_company_sees_what_is_retained_of_its_own(rig: Rig) -> None:
    keep(rig, "1", "g/mine/r", b"abc", qos=1)
    keep(rig, "1", "p2p/mine", expires_us=4_000_000_000_000_000)
    keep(rig, "2", "g/theirs/r")
    keep(rig, EVERYBODY, "news")
    mine = await rig.call("get_retained_list", "viewer")
    assert [each["topic"] for each in mine["data"]] == ["g/mine/r", "p2p/mine"]
    first, second = mine["data"]
    assert (first["bytes"], first["qos"], first["publisher"], first["permission_company_id"]) == (3, 1, "pump", "1")
    assert (first["expires"], second["expires"][:4]) == (None, "2096")
    assert (await rig.call("get_retained_list", "viewer", filter="g/+/r"))["total_records"] == 1
    assert [each["topic"] for each in (await rig.call("get_retained_list", "stranger"))["data"]] == ["g/theirs/r"]
    everything = await rig.call("get_retained_list", "root")
    assert {(each["topic"], each["permission_company_id"]) for each in everything["data"]} >= {
        ("g/theirs/r", "2"),
        ("news", ""),
    }


@pytest.mark.parametrize("pattern", ["a/#/b", "a+", "x" * 2_000])
async def test_what_is_no_filter_is_refused(rig: Rig, pattern: str) -> None:
    assert (await rig.ask("get_retained_list", "viewer", filter=pattern))["code"] == 10401


async def test_a_list_of_what_is_retained_has_an_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        keep(rig, "1", f"g/{number}/r")
    monkeypatch.setattr(retained_list, "MOST_LISTED", 5)
    assert (await rig.call("get_retained_list", "viewer"))["total_records"] == 5
    monkeypatch.setattr(retained_list, "MOST_LISTED", 500)
    monkeypatch.setattr(retained_list, "MOST_LOOKED_AT", 7)
    assert (await rig.call("get_retained_list", "viewer"))["total_records"] <= 7
