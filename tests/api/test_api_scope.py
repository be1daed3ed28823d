"""Who may do what: every operation and every path, as nobody, as each role, and as another company's administrator.

Nothing has to be added here for an operation or a path whose request can be derived from the table: required fields
are filled from ``FIELDS`` by their names, ``uid`` names the record that the action's name says, and two records are
made by each ``create_`` action there is. A test fails, and says so, where that isn't enough. Then add one line:

- a field that others will use too: to ``FIELDS``;
- what is particular to one operation, or to one path (by its path): to ``SPECIAL``, which may say

  - ``fields``: what to send, beside or instead of the derived fields (``None`` leaves one out). ``"@terminal"`` is the
    uid of the home company's terminal (any entity by its name in actions), ``"@spare.terminal"`` the one to delete,
    ``"@mark"`` the text that marks what is the home company's, ``"@new"`` a new number, ``"@id"`` the record's id;
  - ``code``: the answer to whoever may, where it isn't 200;
  - ``stranger``: the answer to another company's administrator, where it isn't what is expected otherwise: a refusal
    where the request names a record, 200 where it doesn't;
  - ``roles``: the answer to one of the permitted roles, where it isn't ``code``;
  - ``unmarked``: why a ``get_`` operation's answer holds no marked text of the home company's;

- an entity that others refer to when they are created: to ``FIRST``;
- time series and other records that no ``create_`` action makes: to ``fill``. Put ``MARK`` into them;
- a route that is no component path: to ``OPEN_ROUTES`` if it needs no token, otherwise to ``TRIED_ELSEWHERE`` with the
  test that tries it as nobody, as each role and as another company.

What is tried of each: no token is 10402; a role below the permission 10403; the permitted get 200; another company's
records do not exist; refused requests change no row of any table; no answer holds what marks another company's records.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from api_rig import Rig, open_rig
from scope_components import COMPONENTS, FILE_ROUTES, fill_components
from scope_world import MARK, NeedsAnEntry, Special, World, ask_path, ask_socket, build_world, rows_of

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.openapi.document import action_path
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from terrazzo.api.transports.http import GATEWAY_PATH, RETAINER_PATH, build_apps
from terrazzo.config.messenger import MessengerProjectSection, SmsSection
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.messages import MESSAGE
from terrazzo.database.tables.replays import REPLAY
from terrazzo.domain.actor import Role
from terrazzo.ports.store import Record
from terrazzo.times import parse_time

FIELDS: dict[str, Any] = {
    "uid": "@key",
    "terminal_id": "@terminal",
    "client_id": "@terminal",
    "config_id": "@terminal_config",
    "mapping_id": "@mapping",
    "control_id": "@control",
    "customer_id": "@customer",
    "certificate": "@certificate",
    "object_id": "@object",
    "terminal_list": ["@terminal"],
    "object_list": ["@object"],
    "target_code": "T",
    "input_codes": ["SP1"],
    "name": "@mark",
    "description": "@mark",
    "type": "Other",
    "mode": "pwd",
    "username": "user-@new",
    "password": "correct horse battery",
    "pin": "pin-@mark",
    "access": "all",
    "created_by": 1,
    "last_modified_by": 1,
    "is_available": 1,
    "time": "2000-01-01 00:00:00",
    "start_time": "2000-01-01 00:00:00",
    "end_time": "2100-01-01 00:00:00",
    "items": 5,
    "keys": ["T"],
    "kinds": ["grid", "mosaic", "event", "retainer", "terminal", "command"],
    "command": "SP1",
    "value": "@mark",
}
"""What to send, by the name of the field."""

FIRST = ("terminal_config", "terminal", "mapping", "control", "customer", "object")
"""Entities that others refer to."""

_ROWS = {
    "mapping": [
        ["T", "@mark", "T", "STA", "$AdapterID-1.T", "x", ""],
        ["E1", "@mark", "E1", "EVNT", "$AdapterID-1.T", "", "x > 80"],
    ],
    "control": [["SP1", "@mark", "SP1", "OBJ", "$AdapterID-1.SP1", "1"]],
    "retainer": [["T", "@mark", "T", "1", "0"]],
    "statistics": [["T", "last", "T"]],
    "calculate": [["T2", "T"]],
    "dashboard": {"title": "@mark"},
}
_RULE = {"kinds": ["event"], "channel": "sms", "recipients": ["@mark"]}
_RULE |= dict.fromkeys(("codes", "subject", "template", "url", "secret", "terminal_list"))
_IMPORTED: dict[str, dict[str, Any]] = {
    "terminal_configs": {"name": "@mark"},
    "terminals": {
        "uid": "imported-@new",
        "name": "@mark",
        "type": "Other",
        "config_id": "@terminal_config",
        "mode": "pwd",
        "username": "user-@new",
        "pin": "pin-@new",
    },
    "mappings": {"name": "@mark", "script": _ROWS["mapping"]},
    "controls": {"name": "@mark", "script": _ROWS["control"]},
    "customers": {"name": "@mark"},
    "objects": {"name": "@mark", "mapping_id": "@mapping", "terminal_list": ["@terminal"]},
}
_STATISTICS = {"script_uid": "@statistics", "type": None}
_CALCULATE = {"script_uid": "@calculate", "type": None}
_RESULTS = (("get_last", ""), ("get", "_list"), ("recompute", ""))
_STATOS = {
    "project_id": "@statistics",
    "type": None,
    "joint": None,
    "start": "2020-01-01 00:00:00",
    "end": "2020-01-01 01:00:00",
}
_USER = Special(fields={"username": None})
_NOBODY_CONNECTS = "nobody is connected here"
SPECIAL: dict[str, Special] = {
    "ping": Special(unmarked="names no record"),
    "get_former_terminal_list": Special(fields={"uid": None}, unmarked="no terminal was deleted here"),
    "get_terminal_status": Special(unmarked="says nothing but the uid that was asked for"),
    "get_address_refusals": Special(
        fields={"address": "10.0.0.1"}, unmarked="nobody was refused", code=10403, stranger=10403
    ),
    "get_broker_status": Special(unmarked="counters of all companies together"),
    "get_intake": Special(unmarked="counters only"),
    "recall_commands": Special(fields={"uids": ["@command"]}),
    "get_platform_status": Special(unmarked="the machine is of all", code=10403, stranger=10403),
    "get_retained_list": Special(fields={"filter": None}, unmarked="nothing is retained here"),
    "get_client_list": Special(unmarked=_NOBODY_CONNECTS),
    "get_subscription_list": Special(unmarked=_NOBODY_CONNECTS),
    "kick_client": Special(code=10404),
    "get_trace": Special(unmarked="nobody is traced"),
    "stop_trace": Special(unmarked="nobody is traced"),
    "put_out_of_service": Special(fields={"uids": ["@terminal"], "minutes": 5, "reason": "@mark"}),
    "put_into_service": Special(fields={"uids": ["@terminal"]}),
    "update_terminals": Special(fields={"uids": ["@terminal"]}),
    "delete_terminals": Special(fields={"uids": ["@spare.terminal"]}, code=10404),  # deleted before
    "register_terminal": Special(fields={"uid": "registered-@new"}),
    "get_unknown_terminal_list": Special(unmarked="nobody has tried here"),
    "get_login_failure_list": Special(unmarked="nobody has failed to log in"),
    "subscribe": Special(fields={"kinds": ["grid"]}, code=10401, stranger=10401),  # not over HTTP: see tests/live
    "unsubscribe": Special(fields={"subscription": 1}, code=10401, stranger=10401),
    "publish_object_command_plus": Special(
        fields={"publishes": [{"object_id": "@object", "command": "SP1", "value": "1"}]}
    ),
    "check_mapping": Special(
        fields={"script": _ROWS["mapping"], "payloads": None, "terminal_list": None, "config_id": None}, stranger=200
    ),
    "update_variable_definition": Special(fields={"code": "T", "unit": "m", "limits": None, "states": None}),
    "get_presence_list": Special(fields={"end_time": "2000-06-01 00:00:00"}, unmarked="times and states"),
    "search": Special(fields={"text": "@mark", "kinds": None}),
    "update_event_definition": Special(fields={"code": "E1", "severity": None, "clears": None}),
    **dict.fromkeys(("get_mosaic_chart", "get_grid_chart"), Special(unmarked="numbers only")),
    "create_terminal_config": Special(fields={"lua_file": "http://files.example/@mark.bin", "lua_version": "1.0"}),
    "create_campaign": Special(fields={"unit": "LUA"}),
    "get_campaign_terminal_list": Special(fields={"uid": "@campaign"}, unmarked="uids and states of terminals only"),
    **dict.fromkeys(("pause_campaign", "resume_campaign", "abort_campaign"), Special(fields={"uid": "@campaign"})),
    "get_rule_command_list": Special(unmarked="no rule has commanded here"),
    "get_audit_list": Special(fields={"username": None, "start_time": None}),
    **{
        f"{verb}_{name}": Special(fields={"script": rows})
        for name, rows in _ROWS.items()
        for verb in ("create", "update")
    },
    **dict.fromkeys(("update_user", "delete_user", "get_user_item"), _USER),
    "update_customer": Special(fields={"id": "@id"}),
    **{f"import_{name}": Special(fields={"rows": [row], "mode": None}) for name, row in _IMPORTED.items()},
    **dict.fromkeys(("get_event_item", "acknowledge_event", "clear_event"), Special(fields={"id": "@event"})),
    **dict.fromkeys(
        ("acknowledge_events", "clear_events", "comment_events"),
        Special(fields={"ids": ["@number.event"], "comment": "@mark"}),
    ),
    "shelve_events": Special(fields={"ids": ["@number.event"], "until": None}),
    "get_mapped_messages": Special(fields={"topic": None}),
    "get_object_log": Special(fields={"before": None, "kinds": None}),
    "comment_event": Special(fields={"id": "@event", "comment": "@mark"}),
    "replay": Special(fields={"dry_run": 1}),  # the event of `fill` comes of no report
    "get_replay_item": Special(fields={"id": "@replay"}),
    "cancel_replay": Special(fields={"id": "@replay"}),
    "get_retainer_label_item": Special(fields={"id": "@label"}),
    "close_retainer": Special(fields={"code": "T", "template_id": "@retainer"}, code=10404),  # it isn't open
    **{
        f"get_{name}_quantity{by}": Special(unmarked="numbers only")
        for name in ("event", "retainer")
        for by in ("", "_by_day")
    },
    **{f"{verb}_statistics{what}": Special(fields=_STATISTICS) for verb, what in _RESULTS},
    "get_recompute_progress": Special(fields={"script_uid": "@statistics"}, unmarked="numbers only"),
    **{f"{verb}_calculate{what}": Special(fields=_CALCULATE) for verb, what in _RESULTS[:2]},
    **dict.fromkeys(
        ("get_balance_result_list", "get_last_balance_result"), Special(unmarked="numbers, and uids of scripts")
    ),
    **{f"/stats/api/v1/statos/{name}": Special(fields=_STATOS) for name in ("getList", "getItem", "getLastItem")},
    **dict.fromkeys(("create_rule", "update_rule"), Special(fields=_RULE)),
    "/api/send/send-email": Special(
        fields={
            "project_id": 1,
            "email_group": {"EmailSubject": "@mark", "EmailContent": "@mark"},
            "send_user_group": ["a@x.example"],
        },
        code=500,
        stranger=500,
    ),
    "/api/send/send-sms": Special(
        fields={"sms_group": {"msgdata": "@mark"}, "send_user_group": ["+1"]}, code=500, stranger=500
    ),
    "/pusher/api/v1/publish": Special(fields={"project_id": 1}),
    "/api/send/send-app-push": Special(code=500, stranger=500),
    "/api/send/send-wechat": Special(
        fields={"open_ids": ["@mark"], "data_msg": {"first": {"value": "@mark"}}}, code=500, stranger=500
    ),
    "change_password": Special(fields={"old_password": "not it"}, code=10401, stranger=10401),
    "remove_second_factor": Special(fields={"uid": "@user"}, code=10401),  # there is none
    "get_api_key_list": Special(unmarked="one's own keys, of which most users here have none"),
    "delete_api_key": Special(roles=dict.fromkeys(("viewer", "operator"), 10404)),  # it is the administrator's
    "renew_wall_link": Special(fields={"uid": "@dashboard"}),
    "get_handover_list": Special(unmarked="nobody has handed over"),
    "get_handover_item": Special(fields={"id": 99}, code=10404, stranger=10404, unmarked="there is none"),
    "get_wall_link": Special(fields={"uid": "@dashboard"}, unmarked="a link has no name"),
    "end_wall_link": Special(fields={"uid": "@dashboard"}),
    "create_company": Special(code=10403, stranger=10403),
    "update_company": Special(code=10403),
    "delete_company": Special(code=10404),
    **COMPONENTS,
}
"""By the name of the operation, or by the path of a component."""

ANYBODY = {"login", "logout", "request_password_reset", "reset_password"}
ANYBODY |= {"begin_single_sign_on", "finish_single_sign_on", "get_login_options"}
ANYBODY |= {"get_wall", "get_wall_values", "get_wall_chart", "get_wall_picture"}  # with a link's key, see its test
ANYBODY |= {"enrol_second_factor", "confirm_second_factor", "disable_second_factor", "renew_recovery_codes"}
"""Operations that need no token."""

OPEN_ROUTES = {GATEWAY_PATH, RETAINER_PATH, "/healthz", "/readyz", "/readyz/reads", "/metrics"}
OPEN_ROUTES |= {"/openapi.json", "/{path}"}
OPEN_ROUTES |= {
    action_path("{name}")
}  # those of the table alone: test_api_openapi.py; and see test_api_action_paths.py
OPEN_ROUTES |= {"/docs", "/docs/docs.css", "/docs/docs.js", "/docs/schema.js"}
OPEN_ROUTES |= {"/", "/console/{name}", "/console/policy-reports"}  # files that hold nothing of anybody
"""Routes that are no component paths: the gateway, which checks by itself, and what needs no token (and is below)."""

_BULK = ("controls", "customers", "mappings", "objects", "terminal_configs", "terminals")
TRIED_ELSEWHERE = {
    "/firmware/{company_id}/{file}/{name}": "campaigns/test_campaign_download.py",
    **{f"/bulk/{name}": "bulk/test_bulk_http.py" for name in _BULK},
    "/export/mosaic/{object_id}": "api/test_api_export.py",
    "/export/grid/{terminal_id}": "api/test_api_export.py",
    **{f"/influx/{name}": "api/test_api_influxql.py" for name in ("ping", "query", "write")},
    **FILE_ROUTES,
}
"""Routes that stream or take files: route to test file."""

ROLES = {"viewer": Role.VIEWER, "operator": Role.OPERATOR, "admin": Role.ADMIN, "root": Role.ADMIN}
REFUSED = {10401, 10404}  # a key that finds nothing; a reference to something that isn't there


async def fill(rig: Rig, world: World) -> None:
    """Time series, commands, an event and a label of the home company's terminal and object."""
    uid, at = world.main["terminal"], parse_time("2020-01-01 00:00:00")
    reject = msgspec.msgpack.encode({"topic": f"g/{uid}/r", "reason": MARK, "payload": b"not JSON"})
    report = msgspec.json.encode({"T": MARK})
    mosaic = msgspec.msgpack.encode({"T": MARK})
    series = {f"g/{uid}/r": report, f"x/{uid}": reject, f"m/{world.main['object']}": mosaic}
    await rig.services.store.append([Record(name, at, body) for name, body in series.items()])
    await rig.call("publish_terminal_command", terminal_id=uid, command="SP1", value=MARK)
    world.main["command"] = (await rig.call("get_command_list", terminal_id=uid))["data"][0]["uid"]
    for kind in ("statistics", "calculate", "balance"):
        await rig.call(f"start_{kind}", uid=world.main[kind])
    await rig.services.analysis.work()
    await fill_components(rig, world)
    named = {"company_id": 1, "object_id": int(world.main["object"]), "terminal_id": uid}
    named |= dict.fromkeys(("code", "label_en", "label_cn", "value"), MARK)
    event = {**named, "id": 810_001, "extension_key": MARK, "extension_value": MARK, "created": at}
    label = {**named, "id": 820_001, "project_id": 1, "class_id": "r", "opened_at": at, "created": at}
    replay = {"id": 830_001, "company_id": 1, "object_id": int(world.main["object"]), "start_us": at, "dry_run": 1}
    replay |= {"state": "done", "created_by": 1, "username": MARK, "created": at}
    message = {"id": 830_001, "uid": "0" * 32, "company_id": 1, "project_id": 1, "channel": "sms", "state": "sent"}
    message |= {"recipients": f'["{MARK}"]', "pending": "[]", "content": "{}", "created": at, "created_by": 1}
    message |= {"next_us": at, "expires_us": at}
    async with rig.services.entities.terminals._database.writing() as connection:
        await connection.execute(EVENT.insert().values(**event))
        await connection.execute(LABEL.insert().values(**label))
        await connection.execute(MESSAGE.insert().values(**message))
        await connection.execute(REPLAY.insert().values(**replay))
    world.main |= {
        "event": str(event["id"]),
        "label": str(label["id"]),
        "message": str(message["id"]),
        "replay": str(replay["id"]),
    }


class Prepared(NamedTuple):
    """A data folder, closed, with what is in it."""

    folder: Path
    world: World
    tokens: Mapping[str, str]


def open_on(folder: Path, tokens: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Rig]:
    """With a messenger project for rules to name; nothing that it sends gets anywhere."""
    provider = SmsSection(url="http://127.0.0.1:9/", body="{}")
    project = MessengerProjectSection(id=1, name="alarms", sms=provider)
    return open_rig(folder, messenger={"project": (project,)}, tokens=tokens)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("world")

    async def prepare() -> Prepared:
        async with open_on(folder) as rig:
            built = await build_world(rig, fields=FIELDS, special=SPECIAL, first=FIRST)
            await fill(rig, built)
            return Prepared(folder, built, rig.tokens)

    return asyncio.run(prepare())


@pytest.fixture
async def rig(tmp_path: Path, prepared: Prepared) -> AsyncIterator[Rig]:
    """On a copy of the prepared folder."""
    folder = tmp_path / "data"
    shutil.copytree(prepared.folder, folder)
    async with open_on(folder, prepared.tokens) as opened:
        yield opened


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared.world


def guarded() -> list[Operation]:
    """Every operation that needs a role: what reads first, deletions last."""
    order = {"get": 0, "delete": 2}
    found = [operation for operation in TABLE if operation.permission is not None]
    return sorted(found, key=lambda operation: order.get(operation.name.partition("_")[0], 1))


Trial = tuple[str, Operation, Operation | None, Special]


def trials() -> Iterator[Trial]:
    """Every operation over the gateway, then every path; deletions last."""
    for operation in guarded():
        yield operation.name, operation, None, SPECIAL.get(operation.name, Special())
    for path in sorted(PATHS, key=lambda path: "/delete" in path.path):
        yield path.path, path, path, SPECIAL.get(path.path) or SPECIAL.get(path.name) or Special()


def possible(world: World) -> list[Trial]:
    """The trials whose requests are known; another test complains of the others."""
    return [trial for trial in trials() if why_not(world, trial) is None]


def why_not(world: World, trial: Trial) -> str | None:
    try:
        world.request(trial[1], trial[3])
    except NeedsAnEntry as error:
        return str(error)
    return None


async def ask(rig: Rig, who: str, trial: Trial, request: dict[str, Any]) -> dict[str, Any]:
    _, operation, path, _ = trial
    if operation.connection:
        return await ask_socket(rig, who, operation.name, request)
    if path is None:
        return await rig.ask(operation.name, who, **request)
    return await ask_path(rig, path, who, request)


def same_code(wanted: int, path: Operation | None) -> int:
    """The component interfaces know one code for what the gateway tells apart."""
    return 500 if path is not None and wanted in REFUSED else wanted


def none_of(wrong: list[Any]) -> None:
    """Fails with all of them, a line each."""
    assert not wrong, "see the docstring of this file:\n" + "\n".join(map(str, wrong))


async def test_every_operation_and_path_can_be_tried(world: World) -> None:
    missing = [reason for trial in trials() if (reason := why_not(world, trial)) is not None]
    none_of(missing)
    names = {operation.name for operation in TABLE} | {path.path for path in PATHS}
    assert set(SPECIAL) <= names, "entries of what is no more"


def test_only_these_operations_and_routes_need_no_token(rig: Rig) -> None:
    assert {operation.name for operation in TABLE if operation.permission is None} == ANYBODY
    paths = {path.path for path in PATHS}
    routes = {resource.canonical for resource in build_apps(rig.services).http.router.resources()}
    below = {route for route in routes if route.startswith("/docs/")}
    assert routes - below <= paths | OPEN_ROUTES | set(TRIED_ELSEWHERE)
    assert all((Path(__file__).parents[1] / file).is_file() for file in TRIED_ELSEWHERE.values())


@pytest.mark.parametrize("who", ["viewer", "operator", "admin", "root"])
async def test_each_role_may_what_the_table_says(rig: Rig, world: World, who: str) -> None:
    before, wrong, allowed = await rows_of(rig), [], []
    for trial in possible(world):
        name, operation, _, special = trial
        permission = operation.permission
        assert permission is not None
        if ROLES[who] >= permission:
            allowed.append(trial)
            continue
        answer = await ask(rig, who, trial, world.request(operation, special))
        info = f"needs the role {permission.name.lower()}, {who}-user is {who}"
        if (answer["code"], answer["result"], answer["info"]) != (10403, {}, info):
            wrong.append((name, answer))
    none_of(wrong)
    assert await rows_of(rig) == before, "a refused request has changed something"
    for trial in allowed:
        name, operation, path, special = trial
        answer = await ask(rig, who, trial, world.request(operation, special))
        code = special.roles.get(who, special.code)
        may_be = {same_code(code, path), *([200] if who == "root" else [])}
        shows = MARK in str(answer.get("result")) or special.unmarked or not name.startswith("get_")
        if answer["code"] not in may_be or (code == 200 and not shows):
            wrong.append((name, answer))
    none_of(wrong)


@pytest.mark.parametrize("token", [None, "", "forged"])
async def test_nobody_may_anything(rig: Rig, world: World, token: str | None) -> None:
    """Who isn't known learns nothing, not even about fields."""
    before, wrong = await rows_of(rig), []
    if token is not None:
        rig.tokens["nobody"] = token  # type: ignore[index]
    for trial in possible(world):
        request = world.request(trial[1], trial[3])
        answers = [await ask(rig, "nobody", trial, request), await ask(rig, "nobody", trial, {})]
        if any((answer["code"], answer["result"]) != (10402, {}) for answer in answers):
            wrong.append((trial[0], answers))
        if any(world.leaks(str(answer), {}) for answer in answers):
            wrong.append((trial[0], answers))
    none_of(wrong)
    assert await rows_of(rig) == before


async def test_another_company_sees_and_changes_nothing(rig: Rig, world: World) -> None:
    before, wrong, theirs = await rows_of(rig), [], world.as_stranger()
    for trial in possible(world):
        name, operation, path, special = trial
        request = theirs.request(operation, special)
        answer = await ask(rig, "stranger", trial, request)
        expected = REFUSED if world.keys_in(request) else {200}
        expected = {special.stranger} if special.stranger else expected
        if answer["code"] not in {same_code(code, path) for code in expected}:
            wrong.append((name, answer))
        if leaks := world.leaks(str(answer), request):
            wrong.append((name, leaks, answer))
    none_of(wrong)
    after = await rows_of(rig)
    for table, rows in before.items():
        assert rows <= after[table], f"{table}: a record of the home company has changed"
        for row in map(msgspec.json.decode, after[table] - rows):
            owner = row.get("permission_company_id", row.get("company_id"))
            assert owner in (None, 2), f"{table}: a record was made in the home company"


async def test_a_super_user_sees_every_company(rig: Rig, world: World) -> None:
    await rig.add_terminal("theirs", "stranger")
    for uid in (world.main["terminal"], "theirs"):
        await rig.call("get_terminal_status", "root", terminal_id=uid)
        assert uid in str(await rig.call("get_terminal_list", "root"))
    assert (await rig.call("get_reject_list", "root"))["total_records"] == 1


async def test_a_number_finds_no_other_companys_record(rig: Rig) -> None:
    mine = await rig.add_terminal("t1")
    for key in (mine, str(mine)):
        assert (await rig.ask("get_last_grid", "stranger", terminal_id=key))["code"] == 10404
        assert (await rig.ask("get_terminal_item", "stranger", uid=key))["code"] == 10404
