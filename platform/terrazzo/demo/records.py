"""The demo's records: company, users, terminals, objects and what belongs to them, made where they don't exist yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from terrazzo.crypto.passwords import verify_password
from terrazzo.database.port import Conditions, Repository, Row
from terrazzo.demo.dashboard import CATEGORY, DASHBOARD, dashboard_script
from terrazzo.demo.passwords import DemoPasswords
from terrazzo.demo.scripts import CONTROLS, MAPPINGS, RETAINERS, events_of, variables_of
from terrazzo.demo.site import COMPANY, CUSTOMER, OBJECTS, SPARE, TERMINALS, USERS, DemoObject, DemoTerminal
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.metadata.entities import Entities

FORMER_PASSWORD = "demo-password"  # of all users, in folders of before there was a file: is replaced
_PLACE = {"province": "Jiangsu 江苏", "city": "Suzhou 苏州"}
_SOUTH_WEST = (31.2962, 120.5811)  # of the plant, degrees of latitude and longitude (WGS 84)
_ROW, _STEP_DEGREES = 4, 0.0016  # objects beside each other, some 150 m apart


async def prepare_demo(entities: Entities, passwords: DemoPasswords, websocket: str) -> dict[str, str]:
    """Creates what does not exist yet; the terminals' pins, by uid.

    Users and terminals that have the passwords which once stood in the source get those of ``passwords``; what
    somebody has set since stays. ``websocket``: the address that the dashboard names.
    """
    company = await ensure(entities.companies, SYSTEM, {"name": COMPANY, "description": "Made by --demo"})
    actor = Actor(user_id=1, username="demo", company_id=company["id"], role=Role.ADMIN)
    pins = await _terminals(entities, actor, passwords)
    objects = await _objects(entities, actor)
    await _users(entities, actor, passwords)
    script = dashboard_script(objects, websocket)
    values = {"name": DASHBOARD, "category": CATEGORY, "script": script, "template": {}}
    dashboard = await ensure(entities.dashboards, actor, values)
    place = {"object_id": objects[OBJECTS[0].name], "dashboard_id": dashboard["id"], "category": CATEGORY}
    await ensure(entities.object_dashboards, actor, place, keys=("object_id", "dashboard_id"))
    return pins


async def ensure(
    repository: Repository, actor: Actor, values: dict[str, Any], *, keys: Sequence[str] = ("name",)
) -> Row:
    """The record that has these values in ``keys``, made where there is none."""
    same: list[Any] = [(key, "=", values[key]) for key in keys]
    found = await repository.page(actor, page_size=1, conditions=Conditions(all_of=same))
    return found.rows[0] if found.rows else await repository.create(actor, values)


async def _terminals(entities: Entities, actor: Actor, passwords: DemoPasswords) -> dict[str, str]:
    files = {"lua_file": "http://127.0.0.1/demo.lua", "lua_version": "1.1", "mcu_version": "2.0"}
    config = await ensure(entities.configurations, actor, {"name": "Demo configuration", **files})
    pins = {}
    for terminal in (*TERMINALS, DemoTerminal(uid=SPARE, name="A terminal for you 备用终端")):
        pin = passwords.of(terminal.uid)
        row = await ensure(entities.terminals, actor, _terminal_record(terminal, config["uid"], pin), keys=("uid",))
        if row["pin"] == f"{terminal.uid.removeprefix('demo-')}-pin":
            row = await entities.terminals.update(actor, terminal.uid, {"pin": pin})
        pins[terminal.uid] = row["pin"]
    return pins


def _terminal_record(terminal: DemoTerminal, config_uid: str, pin: str) -> dict[str, Any]:
    names = {"uid": terminal.uid, "name": terminal.name, "type": terminal.type}
    credentials = {"username": terminal.uid, "pin": pin}
    return {**names, **credentials, "config_id": config_uid, "mode": "pwd", **terminal.record}


async def _objects(entities: Entities, actor: Actor) -> dict[str, int]:
    """The objects, with what they are made of, and the labels that are kept of them; ids by name."""
    customer = await ensure(
        entities.customers, actor, {"name": CUSTOMER, "city": "Suzhou 苏州", "contact": "Lin Wei 林薇"}
    )
    mappings, controls = {}, {}
    for kind, (name, rows) in MAPPINGS.items():
        said = {"events": events_of(rows), "variables": variables_of(kind, rows)}
        mapping = await ensure(entities.mappings, actor, {"name": name, "script": rows, **said})
        mappings[kind] = mapping["id"]
        name, rows = CONTROLS[kind]
        controls[kind] = (await ensure(entities.controls, actor, {"name": name, "script": rows}))["id"]
    ids = {}
    for number, each in enumerate(OBJECTS, 1):
        values = _object_record(each, number)
        values |= {"mapping_id": mappings[each.kind], "control_id": controls[each.kind], "customer_id": customer["id"]}
        ids[each.name] = (await ensure(entities.objects, actor, values))["id"]
        group = await ensure(entities.groups, actor, {"name": each.group})
        member = {"group_id": group["id"], "object_id": ids[each.name]}
        await ensure(entities.group_maps, actor, member, keys=("group_id", "object_id"))
    for kind, (name, rows) in RETAINERS.items():
        of_kind = objects_of(kind, ids)
        retainer = await ensure(entities.retainers, actor, {"name": name, "object_list": of_kind, "script": rows})
        if is_untouched(retainer):
            await entities.retainers.set_active(actor, retainer["id"], True)
    return ids


def objects_of(kind: str, ids: dict[str, int]) -> list[str]:
    """The ids of all objects of a kind, as scripts name them."""
    return [str(ids[each.name]) for each in OBJECTS if each.kind == kind]


def is_untouched(script: Row) -> bool:
    """Whether nobody has started, stopped or changed a script since it was made."""
    return not script["is_active"] and script["last_modified"] == script["created"]


def _gis(number: int) -> str:
    north, east = divmod(number, _ROW)
    return f"{_SOUTH_WEST[0] + north * _STEP_DEGREES:.4f},{_SOUTH_WEST[1] + east * _STEP_DEGREES:.4f}"


def _object_record(each: DemoObject, number: int) -> dict[str, Any]:
    names = {"name": each.name, "description": each.description, "model": each.model}
    return {
        **names,
        **_PLACE,
        "gis": _gis(number),
        "terminal_list": list(each.terminals),
        "serial_no": f"BH-{2020 + number % 5}-{number:04d}",
    }


async def _users(entities: Entities, actor: Actor, passwords: DemoPasswords) -> None:
    for username, role in USERS.items():
        values = {"username": username, "password": passwords.of(username), "role": role}
        await ensure(entities.users, actor, values, keys=("username",))
        stored = await entities.users.by_name(username)
        if stored is not None and await verify_password(stored["password_hash"], FORMER_PASSWORD):
            await entities.users.update(actor, username, {"password": passwords.of(username)})
