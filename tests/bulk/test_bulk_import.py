"""Imports: all or none, errors by row and column, references by uid, id or name, and what changes because of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from running import PASSWORD, Platform
from terrazzo.client import ActionError, Client

Row = dict[str, Any]
NEEDED = ("name", "config_id", "mode", "username", "pin")


def terminal(uid: str, **fields: Any) -> Row:
    return {
        "uid": uid,
        "name": f"Terminal {uid}",
        "type": "Adapter-II",
        "config_id": "Standard",
        "mode": "pwd",
        "username": f"u-{uid}",
        "pin": f"p-{uid}",
        **fields,
    }


def starting(start: str) -> Any:
    class Start(str):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, str) and other.startswith(start)

        __hash__ = str.__hash__

    return Start(start)


@pytest.fixture
def refused(chief: Client, config_uid: str) -> Callable[..., list[tuple[int, str, str]]]:
    """Imports rows that have errors, dry and not, by the action and as a file; what is wrong."""

    def try_it(rows: list[Row] | str, *, entity: str = "terminals", mode: str = "create") -> list[tuple[int, str, str]]:
        before = list(chief.terminals())
        report = chief.call(f"import_{entity}", rows=rows, dry_run=1, mode=mode)
        with pytest.raises(ActionError) as error:
            chief.call(f"import_{entity}", rows=rows, mode=mode)
        with pytest.raises(ActionError) as of_file:
            chief.import_records(entity, rows if isinstance(rows, str) else json.dumps(rows), mode=mode)
        assert error.value.code == of_file.value.code == 10401
        assert error.value.info == of_file.value.info
        found = error.value.result
        assert (found["created"], found["updated"], found["errors"]) == (0, 0, report["errors"])
        assert found["failed"] == len({issue["row"] for issue in found["errors"]})
        assert list(chief.terminals()) == before, "all or nothing"
        first = found["errors"][0]
        place = f"row {first['row']}" + (f", column {first['column']}" if first["column"] else "")
        assert error.value.info.startswith(f"{place}: {first['reason']}")
        return [(issue["row"], issue["column"], issue["reason"]) for issue in found["errors"]]

    return try_it


def test_rows_become_records(chief: Client, config_uid: str) -> None:
    rows = [terminal("r1", keep_alive=60, is_route=True), terminal("r2", mode="auto", description="Ä")]
    report = chief.call("import_terminals", rows=rows, dry_run=1)
    assert (report["total"], report["created"], report["errors"]) == (2, 2, [])
    with pytest.raises(ActionError):
        chief.terminal("r1")
    assert chief.call("import_terminals", rows=rows)["created"] == 2
    record = chief.terminal("r1")
    assert (record["config_id"], record["keep_alive"], record["is_route"]) == (config_uid, 60, 1)
    assert (record["access"], record["is_available"], record["pin"]) == ("all", 1, "p-r1")
    assert chief.terminal("r2")["description"] == "Ä"


def test_csv_as_an_action_and_as_a_file(chief: Client, config_uid: str) -> None:
    head = "uid;name;type;config_id;mode;username;pin;keep_alive;dixie\n"
    rows = [f"c{n};Terminal {n};Adapter-II;{config_uid};pwd;u;1234;{n};1\n" for n in range(4)]
    assert chief.call("import_terminals", rows=head + "".join(rows[:2]))["created"] == 2
    assert chief.import_records("terminals", head + "".join(rows[2:]))["created"] == 2
    assert [chief.terminal(f"c{n}")["keep_alive"] for n in range(4)] == [0, 1, 2, 3]
    assert chief.terminal("c3")["pin"] == "1234"


def test_each_error_has_its_row_and_column(refused: Any) -> None:
    assert refused(
        [
            terminal("e1"),
            terminal("e2", mode="never", keep_alive=70_000),
            terminal("e/3"),
            terminal("e1", name=""),
            terminal("e4", config_id="nowhere", pin="x" * 17, colour="red"),
            terminal("e5", keep_alive="soon", topic="pub:?"),
            {"name": "no uid"},
        ]
    ) == [
        (2, "mode", "expected one of pwd, auto, cert, got 'never'"),
        (2, "keep_alive", "expected 0..65535, got 70000"),
        (3, "uid", "contains '/', which has a meaning in topics"),
        (4, "uid", "e1 is in row 1 already"),
        (5, "colour", starting("no such column; there are access, config_id")),
        (5, "pin", "at most 16 characters, got 17"),
        (5, "config_id", "no configuration 'nowhere' by uid, id or name"),
        (6, "topic", starting("pub")),
        (6, "keep_alive", "expected an integer, got text"),
        (7, "uid", "is required and can't be empty"),
        (7, "type", "is required and can't be empty"),
        (7, "config_id", "is required and can't be empty"),
        (7, "mode", "is required and can't be empty"),
        (7, "username", "is required and can't be empty"),
        (7, "pin", "is required and can't be empty"),
    ]


def test_a_header_is_judged_once(refused: Any) -> None:
    rows = "".join(f"h{n},x,x\n" for n in range(50))
    assert refused("uid,nam,type\n" + rows) == [
        (1, "nam", starting("no such column; there are access")),
        *((1, name, "is required, and there is no such column") for name in NEEDED),
    ]


def test_taken_is_taken_whoever_has_it(chief: Client, stranger: Client, refused: Any) -> None:
    chief.call("import_terminals", rows=[terminal("taken")])
    assert refused([terminal("free"), terminal("taken")]) == [(2, "uid", "taken is taken")]
    theirs = {"name": "Standard", "created_by": 1, "last_modified_by": 1, "is_available": 1}
    stranger.call("create_terminal_config", **theirs)
    for mode in ("create", "upsert"):
        with pytest.raises(ActionError, match="row 1, column uid: taken is taken"):
            stranger.call("import_terminals", rows=[terminal("taken")], mode=mode)


def test_another_companys_records_can_not_be_named(chief: Client, stranger: Client, config_uid: str) -> None:
    number = chief.call("get_terminal_config_item", uid=config_uid)["id"]
    for key in (config_uid, number, str(number)):
        with pytest.raises(ActionError, match="column config_id: no configuration"):
            stranger.call("import_terminals", rows=[terminal("theirs", config_id=key)])
    with pytest.raises(ActionError, match="column permission_company_id: another company's"):
        stranger.call("import_terminals", rows=[terminal("theirs", permission_company_id="1")])


def test_a_super_user_names_the_company(platform: Platform, stranger: Client) -> None:
    rows = [{"name": "Given", "permission_company_id": "Other Works"}]
    assert platform.call("import_terminal_configs", rows=rows)["created"] == 1
    assert "Given" in [record["name"] for record in stranger.pages("get_terminal_config_list")]


def test_a_name_that_two_have_is_no_reference(chief: Client, refused: Any) -> None:
    chief.call("import_terminal_configs", rows=[{"name": "Twice"}, {"name": "Twice"}])
    assert refused([terminal("n1", config_id="Twice")]) == [
        (1, "config_id", "several configuration records are named 'Twice'; give the uid")
    ]


def test_upsert_changes_what_is_given_and_leaves_the_rest(chief: Client, config_uid: str) -> None:
    chief.call("import_terminals", rows=[terminal(f"s{n}", maker="Works", keep_alive=30) for n in range(3)])
    text = "uid,name,keep_alive\ns0,New name,\ns1,,90\ns2,Terminal s2,30\n"
    dry = chief.call("import_terminals", rows=text, mode="upsert", dry_run=1)
    assert (dry["created"], dry["updated"], dry["unchanged"]) == (0, 2, 1)
    assert chief.call("import_terminals", rows=text, mode="upsert") == {**dry, "dry_run": False}
    records = [chief.terminal(f"s{n}") for n in range(3)]
    assert [record["name"] for record in records] == ["New name", "Terminal s1", "Terminal s2"]
    assert [record["keep_alive"] for record in records] == [30, 90, 30]
    assert {(record["maker"], record["pin"][:2], record["config_id"]) for record in records} == {
        ("Works", "p-", config_uid)
    }
    mixed = chief.call("import_terminals", rows=[terminal("s3"), {"uid": "s0", "name": "Again"}], mode="upsert")
    assert (mixed["created"], mixed["updated"]) == (1, 1)


def test_a_masked_secret_is_not_taken_for_one(refused: Any, chief: Client) -> None:
    assert refused([terminal("m1", pin="******")])[0][:2] == (1, "pin")
    chief.call("import_terminals", rows=[terminal("m2")])
    chief.call("import_terminals", rows=[{"uid": "m2", "pin": "******", "maker": "Other"}], mode="upsert")
    assert (chief.terminal("m2")["pin"], chief.terminal("m2")["maker"]) == (terminal("m2")["pin"], "Other")


def test_surplus_cells_are_an_error(refused: Any) -> None:
    assert refused("uid,name\nx,y,z\n", entity="mappings")[0] == (
        1,
        "script",
        "is required, and there is no such column",
    )
    assert refused("name,script\nx,[],z\n", entity="mappings") == [(2, "", "1 more cells than the header has columns")]


def test_what_is_no_file_is_refused(chief: Client) -> None:
    for rows, reason in (
        ("", "no header row"),
        ("uid,name,type,config_id,mode,username,pin\n", "no rows"),
        ([], "no rows"),
        ("[1]", "not a JSON array"),
    ):
        with pytest.raises(ActionError, match=reason) as error:
            chief.call("import_terminals", rows=rows)
        assert error.value.code == 10401


def test_objects_with_their_lists(chief: Client, config_uid: str) -> None:
    chief.call("import_terminals", rows=[terminal("o1"), terminal("o2")])
    script = [["T", "Temperature", "温度", "STA", "$AdapterID-1.T", "x", ""]]
    chief.call("import_mappings", rows=[{"name": "Plain", "script": script, "uid": "plain-map"}])
    rows = [{"name": f"Object {n}", "mapping_id": "Plain", "terminal_list": ["o2", "o1"]} for n in range(2)]
    assert chief.call("import_objects", rows=rows)["created"] == 2
    found = [record for record in chief.pages("get_object_list") if record["name"].startswith("Object ")]
    assert [record["terminal_list"] for record in found] == [["o2", "o1"]] * 2
    assert {record["mapping_id"] for record in found} == {"plain-map"}
    with pytest.raises(ActionError, match="row 1, column terminal_list: no terminal 'o9'"):
        chief.call("import_objects", rows=[{"name": "X", "mapping_id": "Plain", "terminal_list": "o1,o9"}])
    with pytest.raises(ActionError, match="row 1, column terminal_list: nested too deeply"):
        chief.call("import_objects", rows=[{"name": "X", "mapping_id": "Plain", "terminal_list": "[" * 5_000}])


def test_objects_of_a_file_may_name_each_other(chief: Client) -> None:
    last = max((record["id"] for record in chief.pages("get_object_list")), default=0)
    parent, child = str(last + 10), str(last + 11)
    rows = [{"uid": parent, "name": "Parent", "object_list": [child]}, {"uid": child, "name": "Child"}]
    assert chief.call("import_objects", rows=rows)["created"] == 2
    assert chief.call("get_object_item", uid=parent)["object_list"] == [child]
    for used in (parent, "1"):
        with pytest.raises(ActionError, match="column uid"):
            chief.call("import_objects", rows=[{"uid": used, "name": "Again"}])
    with pytest.raises(ActionError, match="ahead of the last one"):
        chief.call("import_objects", rows=[{"uid": "99999999999", "name": "Far"}])
    chief.call("import_objects", rows=[{"name": "Next"}])
    assert max(record["id"] for record in chief.pages("get_object_list")) == last + 12


def test_every_record_has_its_line_in_the_audit_log(chief: Client, config_uid: str) -> None:
    chief.call("import_terminals", rows=[terminal("a1"), terminal("a2")])
    chief.call("import_terminals", rows=[{"uid": "a1", "name": "Other"}, terminal("a2")], mode="upsert")
    log = [entry for entry in chief.pages("get_audit_list") if entry["uid"] in ("a1", "a2")]
    assert [(entry["action"], entry["uid"], entry["username"]) for entry in reversed(log)] == [
        ("create", "a1", "chief"),
        ("create", "a2", "chief"),
        ("update", "a1", "chief"),
    ]
    assert "p-a1" not in str(log)


def test_only_administrators_import(platform: Platform) -> None:
    for name in ("worker", "reader"):
        with Client(platform.url, username=name, password=PASSWORD) as client:
            for attempt in (
                lambda client=client: client.call("import_terminals", rows=[]),
                lambda client=client: client.import_records("terminals", b"uid\n"),
            ):
                with pytest.raises(ActionError) as error:
                    attempt()
                assert error.value.code == 10403
