"""Ways in which somebody might get what isn't theirs: fields they may not set, references, conditions, other roles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_rig import PASSWORD, Rig, config_fields, terminal_fields

from terrazzo.api.operations.table import TABLE
from terrazzo.database.field import FieldKind
from terrazzo.metadata.definitions.components import COMPONENTS
from terrazzo.metadata.definitions.registry import ENTITIES

SECRET = "theirs-1234"


async def user(rig: Rig, name: str) -> dict[str, Any]:
    return dict(await rig.call("get_user_item", "root", uid=name))


async def test_nobody_makes_a_super_user_but_a_super_user(rig: Rig) -> None:
    made = {"username": "bo", "password": PASSWORD, "role": "viewer"}
    assert (await rig.ask("create_user", **made, is_super=1))["code"] == 10403
    await rig.call("create_user", **made)
    for target in ("bo", "admin-user", "admin"):
        assert (await rig.ask("update_user", uid=target, is_super=1))["code"] == 10403, target
    assert (await user(rig, "bo"))["is_super"] == 0
    await rig.call("update_user", "root", uid="bo", is_super=1)
    assert (await user(rig, "bo"))["is_super"] == 1


@pytest.mark.parametrize(
    "change", [{"password": "taken over now"}, {"role": "viewer"}, {"is_active": 0}, {"email": "x"}]
)
async def test_an_administrator_does_not_touch_a_super_user(rig: Rig, change: dict[str, Any]) -> None:
    before = await user(rig, "admin")
    assert (await rig.ask("update_user", uid="admin", **change))["code"] == 10403
    assert (await rig.ask("delete_user", uid="admin"))["code"] == 10403
    assert await user(rig, "admin") == before
    await rig.call("login", "nobody", username="admin", password=PASSWORD)


@pytest.mark.parametrize("who", ["viewer", "operator"])
async def test_nobody_raises_their_own_role(rig: Rig, who: str) -> None:
    for fields in ({"role": "admin"}, {"is_super": 1}, {"password": "a new password"}):
        assert (await rig.ask("update_user", who, uid=f"{who}-user", **fields))["code"] == 10403
    assert (await user(rig, f"{who}-user"))["role"] == who


async def test_nobody_makes_a_user_or_a_record_in_another_company(rig: Rig) -> None:
    theirs = await rig.add_config("stranger")
    new = {"username": "bo", "password": PASSWORD}
    config = config_fields()
    for company in (1, "1"):
        assert (await rig.ask("create_user", "stranger", **new, permission_company_id=company))["code"] == 10403
        assert (await rig.ask("create_terminal_config", "stranger", **config, permission_company_id=company))[
            "code"
        ] == 10403
        moved = config | {"uid": theirs, "permission_company_id": company, "id": 1, "created": "2000-01-01 00:00:00"}
        await rig.ask("update_terminal_config", "stranger", **moved)
        assert (await rig.ask("get_terminal_config_item", uid=theirs))["code"] == 10404, "it stays theirs"
        await rig.call("get_terminal_config_item", "stranger", uid=theirs)
    await rig.ask("update_user", "stranger", uid="stranger-user", permission_company_id=1)
    assert (await user(rig, "stranger-user"))["permission_company_id"] == "2"


async def test_who_made_a_record_stays(rig: Rig) -> None:
    config = await rig.add_config(created_by=7)
    await rig.call("update_terminal_config", **(config_fields() | {"uid": config, "created_by": 99}))
    assert (await rig.call("get_terminal_config_item", uid=config))["created_by"] == 7


async def test_references_lead_to_records_of_the_same_company_only(rig: Rig) -> None:
    script = [["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]]
    signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    config = await rig.add_config()
    await rig.add_terminal("mine", config_id=config)
    mapping = await rig.call("create_mapping", name="m", script=script, **signed)
    control = await rig.call("create_control", name="c", script=[["SP1", "a", "b", "OBJ", "$AdapterID-1.SP1", "1"]])
    customer = await rig.call("create_customer", name="c")
    object_ = await rig.call("create_object", name="o", mapping_id=mapping["uid"], terminal_list=["mine"])
    await rig.add_terminal("theirs", "stranger")
    own_mapping = await rig.call("create_mapping", "stranger", name="m", script=script, **signed)
    good = {"name": "o", "mapping_id": own_mapping["uid"], "terminal_list": ["theirs"]}
    own = await rig.call("create_object", "stranger", **good)
    for name, made in [("mapping_id", mapping), ("control_id", control), ("customer_id", customer)]:
        for key in (made["uid"], made["id"]):
            for action, more in (("create_object", {}), ("update_object", {"uid": own["uid"]})):
                answer = await rig.ask(action, "stranger", **(good | {name: key} | more))
                assert (answer["code"], answer["info"].split(":")[0]) == (10401, name)
    for name, keys in [("terminal_list", ["theirs", "mine"]), ("object_list", [object_["uid"]])]:
        for action, more in (("create_object", {}), ("update_object", {"uid": own["uid"]})):
            answer = await rig.ask(action, "stranger", **(good | {name: keys} | more))
            assert (answer["code"], answer["info"].split(":")[0]) == (10401, name)
    rows = [["T", "T", "T", "1", "0"]]
    for name in ("retainer", "statistics", "balance"):
        more = {"target_code": "T", "input_codes": ["U"]} if name == "balance" else {"script": rows}
        more = {"script": [["T", "avg", "T"]]} if name == "statistics" else more
        answer = await rig.ask(f"create_{name}", "stranger", name="s", object_list=[object_["uid"]], **more)
        assert (answer["code"], answer["info"].split(":")[0]) == (10401, "object_list")
    answer = await rig.ask("create_terminal", "stranger", **terminal_fields("new", config))
    assert (answer["code"], answer["info"].split(":")[0]) == (10401, "config_id")


LISTS = {
    "company": "get_company_list",
    "user": "get_user_list",
    "configuration": "get_terminal_config_list",
    "terminal": "get_terminal_list",
    "mapping": "get_mapping_list",
    "control": "get_control_list",
    "customer": "get_customer_list",
    "object": "get_object_list",
    "retainer": "get_retainer_list",
    "statistics": "get_statistics_script_list",
    "calculate": "get_calculate_script_list",
    "balance": "get_balance_list",
    "dashboard": "get_dashboard_list",
    "project": "get_project_list",
    "campaign": "get_campaign_list",
    "rule": "get_rule_list",
    "api_key": "get_api_key_list",
    "claim_key": "get_claim_key_list",
    "terminal_authority": "get_terminal_authority_list",
}


NO_LIST = {entity.name for entity in COMPONENTS}  # no action lists them


def test_every_entity_is_probed() -> None:
    assert set(LISTS) | NO_LIST == {entity.name for entity in ENTITIES}
    assert all(TABLE.find(action) for action in LISTS.values())


LISTED = [entity for entity in ENTITIES if entity.name in LISTS]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("entity", LISTED, ids=lambda entity: entity.name)
async def test_conditions_and_orders_do_not_reach_secrets(shared_rig: Rig, entity: Any) -> None:
    hidden = [field.name for field in entity.fields.values() if field.kind is FieldKind.SECRET or field.internal]
    hidden += ["password", "password_hash", "token_epoch", "rowid", "id; --", 'id" --', "company.name", "*", ""]
    for name in hidden:
        for fields in (
            {"where_and": [[name, "like", "p%"]]},
            {"where_or": [[name, "=", "x"], ["id", ">", 0]]},
            {"where_in": [[name, "a,b"]]},
            {"order_by": [name, "asc"]},
        ):
            answer = await shared_rig.ask(LISTS[entity.name], **fields)
            assert (answer["code"], answer["result"]) == (10401, {}), (name, fields)


async def test_conditions_do_not_reach_other_companies(rig: Rig) -> None:
    config = await rig.add_config(name="MINE")
    await rig.add_terminal("mine", config_id=config, name="MINE")
    for fields in (
        {"where_or": [["uid", "=", "mine"], ["id", ">", 0]]},
        {"where_and": [["permission_company_id", "=", 1]]},
        {"where_and": [["config_id", "=", config]]},
        {"where_in": [["uid", "mine"]]},
        {"where_and": [["uid", "like", "%"]], "where_or": [["id", "<>", 0]]},
        {"uids": ["mine"]},
    ):
        assert await rig.call("get_terminal_list", "stranger", **fields) == [], fields


@pytest.mark.parametrize("who", ["viewer", "operator"])
async def test_secrets_are_shown_to_administrators_only(rig: Rig, who: str) -> None:
    await rig.add_terminal("t1", pin=SECRET)
    customer = await rig.call("create_customer", name="c", secret=SECRET)
    for action, fields in [
        ("get_terminal_item", {"uid": "t1"}),
        ("get_terminal_list", {}),
        ("get_customer_item", {"uid": customer["uid"]}),
        ("get_customer_list", {}),
    ]:
        assert SECRET in json.dumps(await rig.call(action, "admin", **fields)), action
        assert SECRET not in json.dumps(await rig.call(action, who, **fields)), action


async def test_no_answer_shows_a_hash_or_an_epoch(rig: Rig) -> None:
    for action, fields in [
        ("get_user_item", {"uid": "viewer-user"}),
        ("get_user_list", {}),
        ("login", {"username": "viewer-user", "password": PASSWORD}),
    ]:
        answer = json.dumps(await rig.call(action, "root", **fields))
        for name in ("password", "argon2", "epoch"):
            assert name not in answer, action


async def test_journals_and_the_broker_show_the_own_company(rig: Rig) -> None:
    await rig.add_terminal("mine")
    await rig.call("publish_terminal_command", terminal_id="mine", command="SP1", value="1")
    for action in ("get_command_list", "get_client_list", "get_subscription_list"):
        assert (await rig.call(action, "stranger"))["total_records"] == 0
        assert (await rig.ask(action, "stranger", terminal_id="mine"))["code"] == 10404
    assert (await rig.ask("kick_client", "stranger", client_id="mine"))["code"] == 10404
    refused = await rig.ask("publish_terminal_command", "stranger", terminal_id="mine", command="SP1", value="2")
    assert refused["code"] == 10404
    assert (await rig.call("get_command_list"))["total_records"] == 1
