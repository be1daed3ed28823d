"""Claim keys: made, listed and deleted by administrators; the key itself is said once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from api_rig import Rig

from terrazzo.database.entity import METADATA
from terrazzo_broker.hooks import Accept, ConnectRequest, Refuse


async def claim(rig: Rig, uid: str, key: str) -> Accept | Refuse:
    request = ConnectRequest(
        client_id=uid, username="claim", password=key.encode(), address="10.1.1.1", listener="tls", clean_start=True
    )
    verdict = await rig.platform.terminals.login.authenticate(request)
    assert isinstance(verdict, Accept | Refuse)
    return verdict


async def listed(rig: Rig, who: str = "admin") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rig.call("get_claim_key_list", who))["data"]
    return found


async def test_a_key_is_shown_once_and_kept_as_a_hash(rig: Rig) -> None:
    config = await rig.add_config()
    given = {"name": "Hall 2", "uses": 20, "prefix": "pump-", "expires": "2100-01-01 00:00:00", "config_id": config}
    given |= {"type": "Adapter-X", "mode": "auto", "access": "pub", "topic": "pub:r"}
    made = await rig.call("create_claim_key", **given)
    key = made.pop("key")
    assert key.startswith("ck-")
    assert len(key) == 35
    [record] = await listed(rig)
    assert {**record, **given, **made, "used": 0, "is_available": 1} == record
    assert "key_hash" not in record
    told = await rig.call("get_audit_list", entity="claim_key")
    assert [each["action"] for each in told["data"]] == ["create"]
    async with rig.services.entities.terminals._database.reading() as connection:  # type: ignore[attr-defined]
        for table in METADATA.sorted_tables:
            assert key not in str((await connection.execute(sa.select(table))).all()), table.name
    assert isinstance(await claim(rig, "pump-1", key), Accept)
    assert isinstance(await claim(rig, "fan-1", key), Refuse)


async def test_defaults(rig: Rig) -> None:
    await rig.call("create_claim_key", name="k")
    [record] = await listed(rig)
    [configuration] = await rig.call("get_terminal_config_list")
    assert (configuration["name"], configuration["uid"]) == ("default", record["config_id"])
    shown = {name: record[name] for name in ("uses", "used", "expires", "prefix", "type", "mode", "access", "topic")}
    assert shown == {
        "uses": 1,
        "used": 0,
        "expires": "",
        "prefix": "",
        "type": "Other",
        "mode": "pwd",
        "access": "all",
        "topic": "all",
    }


async def test_a_deleted_key_opens_nothing(rig: Rig) -> None:
    made = await rig.call("create_claim_key", name="k")
    assert isinstance(await claim(rig, "t1", made["key"]), Accept)
    assert await rig.call("delete_claim_key", uid=made["uid"]) == {"uid": made["uid"]}
    refused = await claim(rig, "t1", made["key"])
    assert isinstance(refused, Refuse)
    assert refused.message == "wrong or missing credentials"
    assert await listed(rig) == []


async def test_keys_are_for_administrators_of_the_company(rig: Rig) -> None:
    made = await rig.call("create_claim_key", name="k")
    assert await listed(rig, "stranger") == []
    assert (await rig.ask("delete_claim_key", "stranger", uid=made["uid"]))["code"] == 10404
    other = rig.services.tokens.verify(rig.tokens["stranger"]).company_id
    assert (await rig.ask("create_claim_key", name="k", permission_company_id=other))["code"] == 10403
    theirs = await rig.call("create_claim_key", "root", name="theirs", permission_company_id=other)
    assert [each["uid"] for each in await listed(rig, "stranger")] == [theirs["uid"]]
    for action in ("create_claim_key", "get_claim_key_list", "delete_claim_key"):
        assert (await rig.ask(action, "operator", name="k", uid="k"))["code"] == 10403


async def test_what_makes_no_sense_is_refused(rig: Rig) -> None:
    for wrong in (
        {"name": ""},
        {"uses": 0},
        {"expires": "soon"},
        {"mode": "token"},
        {"access": "none"},
        {"topic": "pub:x"},
        {"config_id": "none"},
        {"prefix": "x" * 65},
    ):
        assert (await rig.ask("create_claim_key", **({"name": "k"} | wrong)))["code"] == 10401, wrong
    assert await listed(rig) == []


async def test_who_claims_is_in_the_list_of_unknown_terminals(rig: Rig) -> None:
    made = await rig.call("create_claim_key", name="k", prefix="pump-")
    await claim(rig, "fan-1", made["key"])
    [seen] = (await rig.call("get_unknown_terminal_list"))["data"]
    assert (seen["uid"], seen["address"], seen["count"]) == ("fan-1", "10.1.1.1", 1)
    assert seen["permission_company_id"] == "1"
    said = "the claim key is right, and does not let this terminal in: the claim key is for other uids"
    assert (seen["reason"], seen["text"]) == ("claim_refused", said)
    assert "prefix of the key" in seen["advice"]
    assert (await rig.call("get_unknown_terminal_list", "stranger"))["data"] == []
    await rig.call("register_terminal", uid="fan-1")
    assert (await rig.call("get_unknown_terminal_list"))["data"] == []
