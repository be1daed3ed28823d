"""Objects and what they name, scripts, dashboards, users, companies: each with its five actions and its own rules."""

from __future__ import annotations

import re
from typing import Any

import pytest
from api_rig import PASSWORD, Rig

from terrazzo_broker.hooks import Client

SPACED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
ROW = ["T1", "Temperature", "温度", "STA", "$AdapterID-1.T1", "x", ""]


async def add_mapping(rig: Rig, **fields: Any) -> str:
    created = await rig.call("create_mapping", **({"name": "m", "script": [ROW], **SIGNED} | fields))
    return str(created["uid"])


async def add_object(rig: Rig, *terminals: str, **fields: Any) -> str:
    mapping = fields.pop("mapping_id", None) or await add_mapping(rig)
    values = {"name": "Boiler", "mapping_id": mapping, "terminal_list": list(terminals)}
    created = await rig.call("create_object", **(values | fields))
    assert created["uid"] == str(created["id"])
    return str(created["uid"])


async def test_a_mapping_reads_back_as_json(rig: Rig) -> None:
    addition = [{"title": "General", "data": [["Maker", "ACME"], ["Year", "2020"]]}]
    uid = await add_mapping(rig, script=f'[["{"1" * 3}", "a", "b", "STA", "G1.T", "x", ""]]', addition=addition)
    record = await rig.call("get_mapping_item", uid=uid, actionid="tag-1")
    assert record["script"] == [["111", "a", "b", "STA", "G1.T", "x", ""]]
    assert record["addition"] == addition
    assert (record["action"], record["actionid"]) == ("get_mapping_item", "tag-1")
    assert SPACED.fullmatch(record["created"])
    (listed,) = await rig.call("get_mapping_list", actionid=7)
    assert listed == record | {"action": "get_mapping_list", "actionid": 7}
    await rig.call("update_mapping", uid=uid, name="renamed", script=[ROW], addition="", **SIGNED)
    changed = await rig.call("get_mapping_item", uid=uid)
    assert (changed["name"], changed["script"], changed["addition"]) == ("renamed", [ROW], [])
    for missing in ("name", "script", "created_by", "last_modified_by", "is_available"):
        fields = {"name": "m", "script": [ROW], **SIGNED}
        del fields[missing]
        answer = await rig.ask("create_mapping", **fields)
        assert (answer["code"], answer["info"]) == (10401, f"{missing}: is required")
    assert await rig.call("delete_mapping", uid=uid) == {"uid": uid}


async def test_an_object_from_creation_to_deletion(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    mapping = await add_mapping(rig)
    control = (await rig.call("create_control", name="c", script=[["Open", "o", "开", "OBJ", "$AdapterID-1.T1", "1"]]))[
        "uid"
    ]
    customer = (await rig.call("create_customer", name="ACME"))["uid"]
    part = await add_object(rig, name="part", mapping_id=mapping)
    given = {
        "name": "Boiler", "description": "in the cellar", "image": "/b.png", "province": "BE", "city": "Berlin",
        "mapping_id": mapping, "control_id": control, "customer_id": customer, "terminal_list": ["t2", "t1"],
        "object_list": [part], "model": "M1", "serial_no": "S1", "gis": "52.5,13.4", "secret": "follow me",
        "control": "C1", "addition": [{"title": "t", "data": [["a", "b"]]}], "template": {"a": 1}, "script": {},
        "reference": "R1",
    }  # fmt: skip
    uid = str((await rig.call("create_object", **given))["uid"])
    record = await rig.call("get_object_item", uid=uid)
    assert {name: record[name] for name in given} == given
    assert (record["is_online"], record["is_boot"], record["is_retainer"]) == (0, 0, 0)
    for key in ({"uid": int(uid)}, {"id": int(uid)}, {"id": uid}, {"object_id": uid}):
        assert await rig.call("get_object_item", **key) == record
    assert (await rig.ask("get_object_item"))["info"] == "uid: is required"

    page = await rig.call("get_object_list", where_in=["id", [uid]])
    assert page == {"data": [record], "page_index": 1, "page_size": 20, "total_pages": 1, "total_records": 1}
    await rig.call("update_object", uid=uid, name="renamed", control_id="", customer_id="", objectlist="[]")
    changed = await rig.call("get_object_item", uid=uid)
    assert (changed["name"], changed["control_id"], changed["customer_id"]) == ("renamed", None, None)
    assert changed["object_list"] == []
    assert changed["terminal_list"] == ["t2", "t1"], "what was not given stays"
    await rig.call("update_object", **record)
    assert (await rig.call("get_object_item", uid=uid))["customer_id"] == customer

    used = await rig.ask("delete_object", uid=part)
    assert used["code"] == 500
    assert used["info"] == f"object {part} is in use by object {uid}"
    assert (await rig.ask("delete_customer", uid=customer))["code"] == 500
    assert await rig.call("delete_object", uid=uid) == {"uid": uid}
    assert (await rig.ask("get_object_item", uid=uid))["code"] == 10404


async def test_an_object_that_makes_no_sense_is_refused(rig: Rig) -> None:
    mapping = await add_mapping(rig)
    fields = {"name": "o", "mapping_id": mapping, "terminal_list": []}
    for wrong, info in [
        ({"name": None}, "name: expected str, got null"),
        ({"mapping_id": "none"}, "mapping_id: no mapping 'none'"),
        ({"control_id": "none"}, "control_id: no control 'none'"),
        ({"customer_id": "none"}, "customer_id: no customer 'none'"),
        ({"terminal_list": ["none"]}, "terminal_list: no terminal 'none'"),
        ({"terminal_list": {"a": 1}}, "terminal_list: expected an array, got object"),
        ({"object_list": "77"}, "object_list: no object '77'"),
        ({"object_list": ["x"]}, "object_list: no object 'x'"),
        ({"secret": "x" * 17}, "secret: expected str of length <= 16"),
    ]:
        answer = await rig.ask("create_object", **(fields | wrong))
        assert answer["code"] == 10401, answer
        assert answer["info"].startswith(info)
    for missing in fields:
        answer = await rig.ask("create_object", **{name: fields[name] for name in fields if name != missing})
        assert (answer["code"], answer["info"]) == (10401, f"{missing}: is required")


async def test_an_object_is_online_with_any_of_its_terminals(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    uid = await add_object(rig, "t1", "t2")
    client = Client(
        client_id="t2", username="u", protocol=5, address="192.0.2.7", port=1, listener="tcp",
        connected_us=1, keep_alive_s=60, last_packet_us=1, messages_in=0,
    )  # fmt: skip
    rig.presence.on_connected(client)
    assert (await rig.call("get_object_item", uid=uid))["is_online"] == 1
    rig.presence.on_disconnected(client, "gone")
    assert (await rig.call("get_object_item", uid=uid))["is_online"] == 0


async def test_secrets_of_objects_and_customers_are_for_admins(rig: Rig) -> None:
    uid = await add_object(rig, secret="follow me")
    customer = (await rig.call("create_customer", name="ACME", secret="code"))["uid"]
    for action, key, secret in (("get_object", uid, "follow me"), ("get_customer", customer, "code")):
        for who, shown in (("admin", secret), ("root", secret), ("operator", "******"), ("viewer", "******")):
            assert (await rig.call(f"{action}_item", who, uid=key))["secret"] == shown
            assert (await rig.call(f"{action}_list", who))["data"][0]["secret"] == shown
        refused = await rig.ask(f"{action}_list", "viewer", where_and=[["secret", "like", "%"]])
        assert refused["code"] == 10401


async def test_a_customer_answers_with_its_record(rig: Rig) -> None:
    given = {
        "name": "ACME", "description": "d", "email": "a@b.c", "contact": "Ann", "mobile": "1", "phone": "2",
        "province": "BE", "city": "Berlin", "address": "Street 1", "secret": "s", "responsible": "Bob",
        "responsible_phone": "3", "reference": "R",
    }  # fmt: skip
    created = await rig.call("create_customer", **given)
    key = {"id": created["id"], "uid": created["uid"]}
    record = await rig.call("get_customer_item", uid=created["uid"])
    assert {name: record[name] for name in given} == given
    assert set(record) == {*given, "id", "uid", "permission_company_id", "created", "last_modified", "is_available"}
    assert (await rig.call("get_customer_list"))["data"] == [record]
    changed = await rig.call("update_customer", **key, name="renamed", city="")
    assert changed == record | {"name": "renamed", "city": "", "last_modified": changed["last_modified"]}
    for missing in ("id", "uid", "name"):
        fields = key | {"name": "x"}
        del fields[missing]
        assert (await rig.ask("update_customer", **fields))["info"] == f"{missing}: is required"
    other = await rig.ask("update_customer", id=999, uid=created["uid"], name="x")
    assert (other["code"], other["info"]) == (10401, f"id: is {created['id']} for good")
    assert await rig.call("delete_customer", uid=created["uid"]) == changed
    assert (await rig.ask("get_customer_item", uid=created["uid"]))["code"] == 10404


async def test_a_retainer_script_is_started_and_stopped(rig: Rig) -> None:
    uids = [await add_object(rig), await add_object(rig)]
    script = [["RUN", "Running", "运行", "1", "0"], ["ALARM", "Alarm", "报警", "2", ""]]
    created = await rig.call("create_retainer", name="r", description="d", objectlist=f"[{uids[0]}]", script=script)
    uid = created["uid"]
    record = await rig.call("get_retainer_item", uid=uid)
    assert (record["objectlist"], record["object_list"], record["script"]) == ([uids[0]], [uids[0]], script)
    assert (record["is_active"], record["is_available"]) == (0, 1)
    assert ISO.fullmatch(record["created"])
    assert ISO.fullmatch(record["last_modified"])
    for action, is_active in (("start", 1), ("start", 1), ("stop", 0), ("stop", 0), ("start", 1)):
        answer = await rig.ask(f"{action}_retainer", uid=uid)
        assert (answer["code"], answer["result"]) == (200, {})
        assert (await rig.call("get_retainer_item", uid=uid))["is_active"] == is_active
    fields = {"uid": uid, "name": "renamed", "object_list": uids, "script": script, "is_active": 0}
    assert await rig.call("update_retainer", **fields) == {}
    changed = (await rig.call("get_retainer_list"))["data"][0]
    assert (changed["name"], changed["objectlist"], changed["description"]) == ("renamed", uids, "d")
    assert changed["is_active"] == 1, "only start and stop change it"
    for missing in ("uid", "name", "object_list", "script"):
        partial = {name: value for name, value in fields.items() if name != missing}
        assert (await rig.ask("update_retainer", **partial))["info"] == f"{missing}: is required"
    assert "in use by retainer" in (await rig.ask("delete_object", uid=uids[0]))["info"]
    assert await rig.call("delete_retainer", uid=uid) == {}
    await rig.call("delete_object", uid=uids[0])


RETAINER = {"name": "r", "object_list": [], "script": []}
STATISTICS = {"name": "s", "object_list": [], "script": []}
BALANCE = {"name": "b", "object_list": [], "target_code": "P", "input_codes": ["A"]}


CALCULATE = {"name": "c"}
REFUSALS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "create_retainer": [
        (RETAINER | {"script": [["A"] * 4]}, "script: row 1: expected an array of 5 elements, got 4"),
        (RETAINER | {"script": [["A", "", "", 1, ""]]}, "script: row 1, column 4: expected text"),
        (RETAINER | {"script": [["A"] * 5] * 2}, "script: row 2, column 1: 'A' is the name of row 1"),
        (RETAINER | {"script": [["A", "", "", "", ""]]}, "script: row 1, column 4: expected an open value"),
        (RETAINER | {"object_list": ["5"]}, "object_list: no object '5'"),
        ({"name": "r", "script": []}, "object_list: is required"),
    ],
    "create_statistics": [
        (STATISTICS | {"script": [["a", "mean", "P"]]}, "script: row 1, column 2: expected one of avg"),
        (STATISTICS | {"script": [["a", "avg", ""]]}, "script: row 1, column 3: expected a code"),
        (STATISTICS | {"script": [["a", "duration(RUN)", ""]]}, "script: row 1, column 2: "),
    ],
    "create_calculate": [(CALCULATE | {"script": [["a", " "]]}, "script: row 1, column 2: expected an expression")],
    "create_balance": [
        (BALANCE | {"target_code": ""}, "target_code: expected str of length >= 1"),
        (BALANCE | {"input_codes": []}, "input_codes: expected an array of codes"),
        (BALANCE | {"input_codes": "A,A"}, "input_codes: element 2: 'A' is listed twice"),
        (BALANCE | {"window": 0}, "window: expected int >= 1"),
    ],
    "create_dashboard": [({"name": "d", "script": []}, "script: expected a JSON object, got an array")],
}


async def test_scripts_that_make_no_sense_are_refused(rig: Rig) -> None:
    for action, refusals in REFUSALS.items():
        for fields, info in refusals:
            answer = await rig.ask(action, **fields)
            assert answer["code"] == 10401, answer
            assert answer["info"].startswith(info)


SCRIPTS: dict[str, dict[str, Any]] = {
    "statistics": {"script": [["mean", "avg", "P"], ["on", "duration(RUN==1)", ""]], "object_list": []},
    "calculate": {"script": [["ratio", "mean / on"]]},
    "balance": {"object_list": [], "target_code": "P", "input_codes": ["A", "B"], "window": 3600},
    "dashboard": {"script": {"Dashboard-1": {"col": 2, "data": []}}, "category": "pro"},
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_other_scripts_from_creation_to_deletion(rig: Rig, name: str) -> None:
    uid = (await rig.call(f"create_{name}", name="n", **SCRIPTS[name]))["uid"]
    record = await rig.call(f"get_{name}_item", uid=uid)
    assert {field: record[field] for field in SCRIPTS[name]} == SCRIPTS[name]
    listing = f"get_{name}_script_list" if name in ("statistics", "calculate") else f"get_{name}_list"
    assert (await rig.call(listing))["data"] == [record]
    if name != "dashboard":
        for action, is_active in (("start", 1), ("stop", 0)):
            assert await rig.call(f"{action}_{name}", id=record["id"]) == {"uid": uid}
            assert (await rig.call(f"get_{name}_item", uid=uid))["is_active"] == is_active
    updated = await rig.call(f"update_{name}", id=record["id"], name="renamed")
    renamed = await rig.call(f"get_{name}_item", id=record["id"])
    assert renamed["name"] == "renamed"
    assert updated == {"uid": uid} | ({"version": renamed["version"]} if name == "dashboard" else {})
    assert await rig.call(f"delete_{name}", uid=uid) == {"uid": uid}
    for action in (f"get_{name}_item", f"delete_{name}"):
        assert (await rig.ask(action, uid=uid))["code"] == 10404


async def test_the_documents_misspellings_are_understood(rig: Rig) -> None:
    made = await rig.call("create_control", name="c", script=[], is_availabel=0)
    assert (await rig.call("get_control_item", uid=made["uid"]))["is_available"] == 0
    await rig.call("update_control", uid=made["uid"], is_availabel=0, is_available=1)
    assert (await rig.call("get_control_item", uid=made["uid"]))["is_available"] == 1, "the right one counts"
    wrong = await rig.ask("create_control", name="c", script=[], is_availabel=2)
    assert (wrong["code"], wrong["info"]) == (10401, "is_available: expected int <= 1")


async def test_a_user_from_creation_to_deletion(rig: Rig) -> None:
    given = {
        "username": "ann", "role": "operator", "head_image": "/a.png", "description": "d", "mobile": "1",
        "email": "a@b.c", "is_active": 1,
    }  # fmt: skip
    created = await rig.call("create_user", password=PASSWORD, **given)
    assert created == {"id": created["id"], "uid": "ann"}
    record = await rig.call("get_user_item", uid="ann")
    assert {name: record[name] for name in given} == given
    assert not {"password", "password_hash", "token_epoch"} & set(record)
    for key in ({"id": created["id"]}, {"username": "ann"}, {"uid": created["id"]}):
        assert await rig.call("get_user_item", **key) == record
    token = (await rig.call("login", "nobody", username="ann", password=PASSWORD))["token"]
    _, alive = await rig.post(b'{"action": "ping"}', token=token)
    assert alive["code"] == 200
    assert await rig.call("update_user", uid="ann", password="another password") == {"uid": "ann"}
    _, ended = await rig.post(b'{"action": "ping"}', token=token)
    assert ended["code"] == 10402, "a changed password ends the tokens"
    await rig.call("login", "nobody", username="ann", password="another password")
    await rig.call("update_user", **record)
    assert await rig.call("delete_user", uid="ann") == {"uid": "ann"}
    assert (await rig.ask("get_user_item", uid="ann"))["code"] == 10404
    for fields, info in [
        ({"password": "short"}, "password: expected str of length >= 8"),
        ({"role": "owner"}, "role: expected one of viewer, operator, admin, got 'owner'"),
        ({"username": " x"}, "username: starts or ends with a blank"),
    ]:
        answer = await rig.ask("create_user", **({"username": "x", "password": PASSWORD} | fields))
        assert (answer["code"], answer["info"]) == (10401, info)
    assert (await rig.ask("create_user", username="x"))["info"] == "password: is required"


async def test_an_admin_manages_users_of_their_company_and_no_others(rig: Rig) -> None:
    names = [row["username"] for row in (await rig.call("get_user_list"))["data"]]
    assert "stranger-user" not in names
    for action in ("get_user_item", "delete_user"):
        assert (await rig.ask(action, uid="stranger-user"))["code"] == 10404
    fields = {"username": "x", "password": PASSWORD}
    assert (await rig.ask("create_user", **fields, is_super=1))["code"] == 10403
    assert (await rig.ask("create_user", **fields, permission_company_id=2))["code"] == 10403
    for change in ({"password": "taken over"}, {"is_super": 0}, {"is_active": 0}):
        assert (await rig.ask("update_user", uid="admin", **change))["code"] == 10403, "a super user's record"
    assert (await rig.ask("update_user", uid="admin-user", is_super=1))["code"] == 10403
    assert (await rig.ask("delete_user", uid="admin"))["code"] == 10403
    for who in ("viewer", "operator"):
        assert (await rig.ask("get_user_list", who))["code"] == 10403


async def test_nobody_deletes_themselves_nor_the_last_super_user(rig: Rig) -> None:
    own = await rig.ask("delete_user", uid="admin-user")
    assert (own["code"], own["info"]) == (500, "user admin-user: nobody deletes themselves")
    assert (await rig.ask("delete_user", "root", uid="admin"))["code"] == 500
    assert (await rig.ask("update_user", "root", uid="admin", is_active=0))["code"] == 500
    await rig.call("create_user", "root", username="deputy", password=PASSWORD, is_super=1)
    assert (await rig.call("get_user_item", "root", uid="deputy"))["is_super"] == 1
    assert (await rig.ask("delete_user", "root", uid="admin"))["info"] == "user admin: nobody deletes themselves"
    await rig.call("update_user", "root", uid="admin", is_super=0)


async def test_only_a_super_user_manages_companies(rig: Rig) -> None:
    own = (await rig.call("get_company_list"))["data"]
    assert [company["name"] for company in own] == ["default"]
    everyone = await rig.call("get_company_list", "root", order_by=["name", "DESC"])
    assert [company["name"] for company in everyone["data"]] == ["other", "default"]
    for action, fields in (
        ("create_company", {"name": "third"}),
        ("update_company", {"uid": own[0]["uid"], "name": "renamed"}),
        ("delete_company", {"uid": own[0]["uid"]}),
    ):
        assert (await rig.ask(action, **fields))["code"] == 10403
    uid = (await rig.call("create_company", "root", name="third"))["uid"]
    await rig.call("create_user", "root", username="boss", password=PASSWORD, permission_company_id=uid, role="admin")
    assert "user boss" in (await rig.ask("delete_company", "root", uid=uid))["info"]
    await rig.call("delete_user", "root", uid="boss")
    assert await rig.call("delete_company", "root", uid=uid) == {"uid": uid}
