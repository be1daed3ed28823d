"""Lists of terminals by tags, by who is connected and when each was last seen; totals; many changed at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from api_rig import Rig

from platform_site import Site, peers
from terrazzo.api.kernel.paging import CountedList
from terrazzo.api.openapi.schemas import Schemas
from terrazzo.api.operations import terminal_changes
from terrazzo.api.operations.table import TABLE
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION
from terrazzo.metadata.repositories import terminal_batches
from terrazzo_broker.hooks import Client, ConnectRequest
from waiting import DEADLINE_S, until

SECOND_US = 1_000_000
AT_US = 1_780_000_000 * SECOND_US  # 2026-05-28 20:26:40 UTC
LIST = "/object/api/v1/terminal/getList"


def connected(uid: str, seen_s: int) -> Client:
    return Client(
        client_id=uid,
        username=uid,
        protocol=5,
        address="10.0.0.1",
        port=1,
        listener="tcp",
        connected_us=AT_US,
        keep_alive_s=0,
        last_packet_us=AT_US + seen_s * SECOND_US,
    )


async def five(rig: Rig) -> None:
    """t1 to t5: t2 and t4 are connected, t3 was, t1 and t5 were never seen."""
    config = await rig.add_config()
    for number, tags in enumerate((["roof"], ["roof", "pump"], [], ["cellar", "pump"], []), 1):
        await rig.add_terminal(f"t{number}", config_id=config, tags=tags)
    clients = {uid: connected(uid, seen_s) for uid, seen_s in (("t2", 20), ("t3", 10), ("t4", 5))}
    for client in clients.values():
        rig.presence.on_connected(client)
    rig.presence.on_disconnected(clients["t3"], "bye")


async def listed(rig: Rig, who: str = "admin", **fields: Any) -> list[str]:
    return [record["uid"] for record in await rig.call("get_terminal_list", who, **fields)]


async def components(rig: Rig, who: str = "admin", **query: str) -> list[str]:
    """As ``listed``, by the components' path."""
    _, answer = await rig.get(LIST, who, **query)
    assert answer["result"]["total_records"] == len(answer["result"]["data"])
    return [record["terminal_id"] for record in answer["result"]["data"]]


async def test_filters_and_orders(rig: Rig) -> None:
    await five(rig)
    await rig.add_terminal("away", "stranger", tags=["roof"])
    for fields, uids in [
        ({"tags": ["pump"]}, "t2 t4"),
        ({"tags": "pump"}, "t2 t4"),
        ({"tags": "pump, roof"}, "t2"),
        ({"tags": ["pump", "cellar"]}, "t4"),
        ({"tags": ["none"]}, ""),
        ({"online": 1}, "t2 t4"),
        ({"online": 0}, "t1 t3 t5"),
        ({"online": 0, "tags": ["roof"]}, "t1"),
        ({"online": 1, "where_and": [["uid", "<>", "t2"]]}, "t4"),
        ({"online": 1, "uids": ["t4", "t5"]}, "t4"),
        ({"seen_after": "2026-05-28 20:26:50"}, "t2 t3"),
        ({"seen_before": "2026-05-28 20:26:50"}, "t1 t3 t4 t5"),
        ({"seen_after": "2026-05-28T20:26:46Z", "seen_before": "2026-05-28T20:26:50Z"}, "t3"),
        ({"order_by": ["last_seen", "desc"]}, "t2 t3 t4 t5 t1"),
        ({"order_by": ["last_seen", "asc"]}, "t1 t5 t4 t3 t2"),
        ({"order_by": ["online", "desc"]}, "t4 t2 t5 t3 t1"),
        ({"order_by": ["online", "asc"], "tags": ["roof"]}, "t1 t2"),
        ({"order_by": ["uid", "desc"], "online": 0}, "t5 t3 t1"),
        ({"order_by": ["tags", "asc"]}, "t4 t2 t1 t3 t5"),
        ({"order_by": ["config_id", "desc"]}, "t5 t4 t3 t2 t1"),
    ]:
        assert " ".join(await listed(rig, **fields)) == uids, fields
    assert set(await listed(rig, "root", order_by=["last_seen", "asc"])) == {"t1", "t2", "t3", "t4", "t5", "away"}
    assert await listed(rig, "stranger", online=0) == ["away"]


async def test_who_is_connected_and_says_nothing(rig: Rig) -> None:
    await five(rig)
    for uid, reported_s in (("t2", 10), ("t4", 30), ("t3", 5)):
        rig.presence.trace(uid).last_telemetry_us = AT_US + reported_s * SECOND_US
    assert await listed(rig, silent_since="2026-05-28 20:27:00") == ["t2"]
    assert await listed(rig, silent_since="2026-05-28 20:28:00") == ["t2", "t4"]
    assert await listed(rig, silent_since="2026-05-28 20:28:00", tags=["cellar"]) == ["t4"]
    assert await listed(rig, silent_since="2026-05-28 20:26:41") == []
    assert await listed(rig, "stranger", silent_since="2026-05-28 20:28:00") == []


async def test_who_was_refused_lately(rig: Rig) -> None:
    await five(rig)
    for uid in ("t4", "t2"):
        request = ConnectRequest(client_id=uid, username="wrong", password=b"wrong", address="10.9.9.9")
        await rig.platform.terminals.login.authenticate(request)
    assert await listed(rig, refused_after="2026-01-01 00:00:00") == ["t2", "t4"]
    assert await listed(rig, refused_after="2026-01-01 00:00:00", tags=["roof"]) == ["t2"]
    assert await listed(rig, refused_after="2100-01-01 00:00:00") == []
    assert await listed(rig, order_by=["last_refused", "desc"]) == ["t2", "t4", "t5", "t3", "t1"]
    _, answer = await rig.get(LIST, refused_after="2026-01-01 00:00:00")
    assert answer["result"]["total_records"] == 2
    assert await components(rig, order_by='["last_refused", "desc"]') == ["t2", "t4", "t5", "t3", "t1"]
    assert await components(rig, order_by='["last_refused", "asc"]') == ["t1", "t3", "t5", "t4", "t2"]


async def test_those_of_a_site(rig: Rig) -> None:
    await five(rig)
    for uid, address in (("t2", "10.9.9.9"), ("t3", "2001:db8::7"), ("t4", "2001:db8::8"), ("t5", "::ffff:10.9.9.9")):
        request = ConnectRequest(client_id=uid, username="wrong", password=b"wrong", address=address)
        await rig.platform.terminals.login.authenticate(request)
    refused = {"refused_after": "2026-01-01 00:00:00"}
    assert await listed(rig, site="10.9.9.9", **refused) == ["t2", "t5"]
    assert await listed(rig, site="2001:db8::/64", **refused) == ["t3", "t4"]
    assert await listed(rig, site="2001:db8::/64", tags=["cellar"], **refused) == ["t4"]
    assert await listed(rig, site="10.9.9.9") == [], "no connection came from there"
    assert await listed(rig, "stranger", site="10.9.9.9", **refused) == []
    assert (await rig.ask("get_terminal_list", site=""))["code"] == 10401
    assert await listed(rig, site="10.0.0.1") == ["t2", "t3", "t4"], "connected or not; the others never were"
    assert await listed(rig, site="10.0.0.1", online=0) == ["t3"]
    assert await listed(rig, site="10.0.0.1", order_by=["last_seen", "desc"]) == ["t2", "t3", "t4"]


async def test_pages_and_totals(rig: Rig) -> None:
    await five(rig)
    for fields in ({}, {"order_by": ["last_seen", "desc"]}, {"online": 0}, {"tags": ["pump"]}):
        whole = await listed(rig, **fields)
        pages = [await rig.ask("get_terminal_list", page_size=2, page_index=index, **fields) for index in (1, 2, 3, 4)]
        assert [record["uid"] for page in pages for record in page["result"]] == whole
        assert {page["total_records"] for page in pages} == {len(whole)}, fields
    assert (await rig.ask("get_terminal_config_list"))["total_records"] == 1
    assert (await rig.ask("get_mapping_list"))["total_records"] == 0
    assert "total_records" not in await rig.ask("get_object_list"), "it is in the result"
    assert "total_records" not in await rig.ask("get_terminal_list", page_size=0)


async def test_a_total_survives_long_lists(rig: Rig) -> None:
    config = await rig.add_config()
    for number in range(30):
        await rig.add_terminal(f"t{number}", config_id=config)
    answer = await rig.ask("get_terminal_list", page_size=25)
    assert (len(answer["result"]), answer["total_records"]) == (25, 30)


def test_each_list_that_is_a_bare_array_says_its_total_in_the_document() -> None:
    schemas = Schemas(TABLE, ()).components
    answers = {name for name, schema in schemas.items() if "total_records" in schema.get("properties", ())}
    names = {name for name in answers if name.endswith(".answer")}
    bare = (
        "terminal",
        "terminal_config",
        "mapping",
        "event_definition",
        "variable_definition",
        "object_variable",
        "object_dashboard",
        "presence",
    )
    others = ("search", *(f"{step}_events" for step in ("acknowledge", "clear", "comment", "shelve")))
    assert names == {f"get_{entity}_list.answer" for entity in bare} | {f"{each}.answer" for each in others}
    assert CountedList([1], 2) == [1]


async def test_what_makes_no_sense_is_refused(rig: Rig) -> None:
    for fields in (
        {"online": 2},
        {"seen_after": "yesterday"},
        {"order_by": ["seen", "asc"]},
        {"online": 1, "order_by": ["seen", "asc"]},
        {"online": 1, "where_and": [["seen", "=", 1]]},
    ):
        assert (await rig.ask("get_terminal_list", **fields))["code"] == 10401, fields


async def test_records_say_whether_they_are_connected(rig: Rig) -> None:
    await five(rig)
    seen = {"t2": (1, "2026-05-28 20:27:00"), "t3": (0, "2026-05-28 20:26:50"), "t5": (0, "")}
    for uid, presence in seen.items():
        record = await rig.call("get_terminal_item", uid=uid)
        assert (record["online"], record["last_seen"]) == presence
        await rig.call("update_terminal", **record)  # what is read may be written back


async def test_the_components_list_does_the_same(rig: Rig) -> None:
    await five(rig)
    for query, uids in [
        ({"tags": "pump"}, "t2 t4"),
        ({"online": "1"}, "t2 t4"),
        ({"seen_before": "2026-05-28 20:26:50", "online": "0"}, "t1 t3 t5"),
        ({"order_by": '["last_seen", "desc"]'}, "t2 t3 t4 t5 t1"),
        ({"order_by": '["config_id", "desc"]'}, "t5 t4 t3 t2 t1"),
        ({"order_by": '["config_id", "asc"]'}, "t1 t2 t3 t4 t5"),
        ({"where_and": '[["terminal_id", "=", "t4"]]', "online": "1"}, "t4"),
    ]:
        _, answer = await rig.get(LIST, **query)
        assert " ".join(record["terminal_id"] for record in answer["result"]["data"]) == uids, query
        assert answer["result"]["total_records"] == len(uids.split())


async def test_tags_are_kept_in_order_and_each_once(rig: Rig) -> None:
    number = await rig.add_terminal("t1", tags="b, a,b")
    assert (await rig.call("get_terminal_item", uid="t1"))["tags"] == ["a", "b"]
    fields = await rig.call("get_terminal_item", uid="t1")
    await rig.call("update_terminal", **(fields | {"tags": '["c"]'}))
    assert await listed(rig, tags=["a"]) == []
    assert await listed(rig, tags=["c"]) == ["t1"]
    del fields["tags"]
    await rig.call("update_terminal", **fields)
    assert await listed(rig, tags=["c"]) == ["t1"], "what was not given stays"
    rows = [{"uid": "t1", "tags": "d,e"}, {**fields, "uid": "t2", "tags": ["e"]}]
    for row in rows:
        row.pop("id", None)
    await rig.call("import_terminals", rows=rows, mode="upsert")
    assert await listed(rig, tags=["e"]) == ["t1", "t2"]
    assert await listed(rig, tags=["c"]) == []
    for wrong in ([""], ["x" * 33], ["a,b"], [7], ["t"] * 3 + [str(each) for each in range(16)], {"a": 1}, ["a\nb"]):
        assert (await rig.ask("update_terminal", **(fields | {"tags": wrong})))["code"] == 10401, wrong
    await rig.call("delete_terminal", uid="t1")
    assert await listed(rig, tags=["e"]) == ["t2"]
    assert number


async def test_many_are_changed_at_once(rig: Rig) -> None:
    await five(rig)
    other = await rig.add_config(name="other")
    done = await rig.call("update_terminals", uids=["t1", "t2", "t2", "t3"], is_available=0)
    assert done == {"batch": done["batch"], "changed": 3, "unchanged": 0, "found": 3}
    assert [each["is_available"] for each in await rig.call("get_terminal_list")] == [0, 0, 0, 1, 1]
    known = rig.services.registry.terminal("t2")
    assert known is not None
    assert not known.is_admitted
    enabled = await rig.call("update_terminals", uids=["t2", "t3", "t4"], is_available=1)
    assert (enabled["changed"], enabled["unchanged"], enabled["found"]) == (2, 1, 3)
    assert [each["is_available"] for each in await rig.call("get_terminal_list")] == [0, 1, 1, 1, 1]
    known = rig.services.registry.terminal("t2")
    assert known is not None
    assert known.is_admitted
    again = await rig.call("update_terminals", uids=["t1", "t5"], is_available=0, config_id=other, tags=["new"])
    assert (again["changed"], again["unchanged"]) == (2, 0)
    assert await listed(rig, tags=["new"]) == ["t1", "t5"]
    assert await listed(rig, where_and=[["config_id", "=", other]]) == ["t1", "t5"]
    assert (await rig.call("update_terminals", uids=["t1"], tags=["new"]))["unchanged"] == 1
    for batch, uids in (
        (done["batch"], ["t1", "t2", "t3"]),
        (enabled["batch"], ["t2", "t3"]),
        (again["batch"], ["t1", "t5"]),
    ):
        told = (await rig.call("get_audit_list", batch=batch))["data"]
        assert sorted(each["uid"] for each in told) == uids
        assert {(each["action"], each["username"]) for each in told} == {("update", "admin-user")}
    assert told[0]["after"] == {"is_available": 0, "config_id": other, "tags": ["new"]}
    single = [each for each in (await rig.call("get_audit_list"))["data"] if each["action"] == "create"]
    assert {each["batch"] for each in single} == {None}


async def test_what_a_filter_finds_is_changed_after_a_dry_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_batches, "_PIECE", 2)
    await five(rig)
    await rig.add_terminal("away", "stranger")
    asked = {"filter": {"online": 0, "where_and": [["uid", "<>", "t5"]]}, "tags": ["seen"]}
    tried = await rig.call("update_terminals", **asked, dry_run=1)
    assert tried == {"batch": "", "changed": 0, "unchanged": 0, "found": 2}
    assert await listed(rig, tags=["seen"]) == []
    done = await rig.call("update_terminals", **asked, expected=2)
    assert (done["changed"], done["unchanged"], done["found"]) == (2, 0, 2)
    assert await listed(rig, tags=["seen"]) == ["t1", "t3"]
    done = await rig.call("update_terminals", filter={}, is_available=0, expected=5)  # of the own company, three pieces
    assert (done["changed"], done["found"]) == (5, 5)
    told = (await rig.call("get_audit_list", batch=done["batch"]))["data"]
    assert sorted(each["uid"] for each in told) == ["t1", "t2", "t3", "t4", "t5"]
    assert [each["is_available"] for each in await rig.call("get_terminal_list", "stranger")] == [1]
    assert (await rig.call("delete_terminals", filter={"tags": "seen"}, dry_run=1))["found"] == 2
    done = await rig.call("delete_terminals", filter={"tags": "seen"}, expected=2)
    assert (done["changed"], await listed(rig)) == (2, ["t2", "t4", "t5"])


async def test_no_more_than_so_many_are_changed_by_a_filter(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_changes, "MOST_FOUND", 4)
    await five(rig)
    answer = await rig.ask("delete_terminals", filter={}, dry_run=1)
    assert (answer["code"], answer["info"]) == (
        10401,
        "filter: finds 5 terminals, at most 4 are changed at once",
    )


async def test_a_failure_between_pieces_says_what_was_done(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_batches, "_PIECE", 2)
    await five(rig)
    mapping = await rig.call("create_mapping", name="m", script=[], created_by=1, last_modified_by=1, is_available=1)
    await rig.call("create_object", name="o", mapping_id=mapping["uid"], terminal_list=["t4"])
    answer = await rig.ask("delete_terminals", filter={}, expected=5)
    assert answer["code"] == 500
    assert answer["info"].startswith("1 of the terminals are listed by objects: t4 by")
    assert "; 2 were changed before, in the batch " in answer["info"]
    assert await listed(rig) == ["t3", "t4", "t5"]


async def test_lists_by_what_terminals_report_of_their_configuration(rig: Rig) -> None:
    await five(rig)
    company = rig.services.tokens.verify(rig.tokens["admin"]).company_id
    states = {"t1": ("confirmed", 1), "t2": ("differs", 1), "t3": ("sent", None), "t4": ("pending", 1)}
    rows = []
    for uid, (state, reported_us) in states.items():
        terminal = rig.services.registry.terminal(uid)
        assert terminal is not None
        rows.append(
            {"terminal_id": terminal.id, "company_id": company, "version": "v", "state": state, "since_us": 1}
            | {"reported_us": reported_us, "difference": "[]"}
        )
    async with rig.platform.metadata.database.writing() as connection:
        await connection.execute(TERMINAL_CONFIGURATION.insert(), rows)
    for configuration, uids in (("agrees", "t1"), ("differs", "t2 t4"), ("unreported", "t3")):
        assert " ".join(await listed(rig, configuration=configuration)) == uids
        assert " ".join(await listed(rig, "root", configuration=configuration)) == uids
        assert await listed(rig, "stranger", configuration=configuration) == []
        assert " ".join(await components(rig, configuration=configuration)) == uids
        assert await components(rig, "stranger", configuration=configuration) == []
        found = await rig.call("update_terminals", filter={"configuration": configuration}, tags=["x"], dry_run=1)
        assert found["found"] == len(uids.split())
    assert await listed(rig, configuration="differs", online=1) == ["t2", "t4"]
    assert await listed(rig, configuration="agrees", online=0) == ["t1"]
    assert (await rig.ask("get_terminal_list", configuration="wrong"))["code"] == 10401


async def test_a_report_that_differs_is_told_with_both_values_and_found(rig: Rig) -> None:
    config = await rig.add_config(config_script={"limits": {"high": 80}, "interval": 30}, deliver=1)
    for uid in ("t1", "t2"):
        await rig.add_terminal(uid, config_id=config)
    async with peers(Site(rig.platform, rig.addresses)) as make:
        peer = make("t1")
        assert await peer.connect(password="p-t1") == 0
        assert await peer.subscribe("p2p/t1") == 1
        (message,) = await peer.received(1)
        version = json.loads(message.payload)["Version"]

        async def told(high: int, state: str) -> dict[str, Any]:
            """What is said of a terminal once its report has come to a state."""
            report = {"Version": version, "limits": {"high": high}, "interval": 30}
            assert await peer.publish("g/t1/p", json.dumps(report).encode()) == 0
            status = rig.platform.messaging.configurations.status
            await until(lambda: (found := status("t1")) is not None and found.state.value == state, state)
            return dict((await rig.call("get_terminal_status", "viewer", terminal_id="t1"))["configuration"])

        shown = await told(70, "differs")
        assert (shown["state"], shown["version"]) == ("differs", version)
        assert shown["difference"] == [{"key": "limits.high", "wanted": 80, "reported": 70}]
        assert shown["reported"]
        assert await eventually(rig, configuration="differs") == ["t1"]
        assert await listed(rig, configuration="unreported") == ["t2"]
        assert await listed(rig, "stranger", configuration="differs") == []
        shown = await told(80, "confirmed")
        assert (shown["state"], shown["difference"]) == ("confirmed", [])
        assert await eventually(rig, configuration="agrees") == ["t1"]
        assert await listed(rig, configuration="differs") == []


async def eventually(rig: Rig, **fields: Any) -> list[str]:
    """The list, once something is in it: what is known of configurations is written a little later."""
    async with asyncio.timeout(DEADLINE_S):
        while not (found := await listed(rig, **fields)):  # noqa: ASYNC110 - it is asked for
            await asyncio.sleep(0.05)
    return found


async def test_many_are_deleted_at_once(rig: Rig) -> None:
    await five(rig)
    done = await rig.call("delete_terminals", uids=["t1", "t5"])
    assert done == {"batch": done["batch"], "changed": 2, "unchanged": 0, "found": 2}
    assert await listed(rig) == ["t2", "t3", "t4"]
    assert rig.services.registry.terminal("t1") is None
    told = (await rig.call("get_audit_list", batch=done["batch"]))["data"]
    assert sorted((each["action"], each["uid"]) for each in told) == [("delete", "t1"), ("delete", "t5")]
    former = await rig.call("get_former_terminal_list")
    assert sorted(each["uid"] for each in former["data"]) == ["t1", "t5"]
    await rig.call("delete_terminals", uids=["t2", "t3", "t4"])
    assert await listed(rig) == []


async def test_all_or_none(rig: Rig) -> None:
    await five(rig)
    await rig.add_terminal("away", "stranger")
    mapping = await rig.call("create_mapping", name="m", script=[], created_by=1, last_modified_by=1, is_available=1)
    fields = {"name": "o", "mapping_id": mapping["uid"], "terminal_list": ["t4"]}
    made = await rig.call("create_object", **fields)
    for action, more, code, info in [
        ("update_terminals", {"uids": ["t1", "away"], "is_available": 0}, 10404, "uids: no record 'away'"),
        ("update_terminals", {"uids": ["t1", "t9"], "is_available": 0}, 10404, "uids: no record 't9'"),
        ("update_terminals", {"uids": ["t1"], "config_id": "none"}, 10401, "config_id: no configuration 'none'"),
        ("update_terminals", {"uids": ["t1"]}, 10401, "uids: nothing to change"),
        ("update_terminals", {"uids": []}, 10401, "uids: "),
        ("update_terminals", {"uids": ["t1"], "pin": "x"}, 10401, "uids: nothing to change"),
        ("update_terminals", {"is_available": 0}, 10401, "uids: names no terminal"),
        ("update_terminals", {"uids": ["t1"], "filter": {}, "is_available": 0}, 10401, "uids: give either"),
        ("update_terminals", {"filter": {}, "is_available": 0}, 10401, "expected: is required with a filter"),
        ("update_terminals", {"filter": {}, "is_available": 0, "expected": 4}, 500, "filter: finds 5 terminals by now"),
        ("update_terminals", {"filter": {"online": 7}, "is_available": 0}, 10401, "filter"),
        ("delete_terminals", {"filter": {}, "expected": 5}, 500, "1 of the terminals are listed by objects: t4 by"),
        ("delete_terminals", {"filter": {"where_and": [["nothing", "=", 1]]}, "expected": 1}, 10401, "where_and"),
        ("delete_terminals", {"uids": ["t1", "away"]}, 10404, "uids: no record 'away'"),
        ("delete_terminals", {"uids": ["t1", "t4"]}, 500, "1 of the terminals are listed by objects: t4 by"),
        ("delete_terminals", {"uids": [f"t{number}" for number in range(1_001)]}, 10401, "uids: 1001 entries"),
    ]:
        answer = await rig.ask(action, **more)
        assert (answer["code"], answer["info"][: len(info)]) == (code, info), answer
    assert await listed(rig) == ["t1", "t2", "t3", "t4", "t5"]
    assert {each["is_available"] for each in await rig.call("get_terminal_list")} == {1}
    await rig.call("delete_object", uid=made["uid"])


@pytest.mark.parametrize("who", ["viewer", "operator"])
async def test_changes_are_for_administrators(rig: Rig, who: str) -> None:
    for action in ("update_terminals", "delete_terminals"):
        assert (await rig.ask(action, who, uids=["t1"]))["code"] == 10403


async def test_a_super_user_changes_terminals_of_several_companies(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("away", "stranger")
    assert (await rig.call("update_terminals", "root", uids=["t1", "away"], is_available=0))["changed"] == 2
    config = (await rig.call("get_terminal_item", uid="t1"))["config_id"]
    refused = await rig.ask("update_terminals", "root", uids=["t1", "away"], config_id=config)
    assert refused["code"] == 10401, "it is the configuration of one company"
