"""``keys: ["*"]`` is all variables wherever ``keys`` is taken: every action, path and export that declares it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from lasting import open_ports
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.operations.history.export import EXPORTS
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from terrazzo.ports.store import Record
from terrazzo.times import now_us

IN_MODULE = pytest.mark.asyncio(loop_scope="module")
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
VALUES = {"TEMP": 21.5, "LOAD": 73}
HOUR_US = 3_600_000_000
FIELDS = {
    "format": "jsonl",
    "kinds": ["mosaic"],
    "items": 5,
    "time": "2020-01-01 00:00:00",
    "start_time": "2020-01-01 00:00:00",
    "end_time": "2100-01-01 00:00:00",
}
"""What requests need beside whose variables."""


def taking_keys(operations: Any) -> list[Operation]:
    """Those whose request has ``keys`` of variables."""
    structs = [
        each for each in operations if isinstance(each.request, type) and issubclass(each.request, msgspec.Struct)
    ]
    return [each for each in structs if "keys" in each.request.__struct_fields__]


class Stand:
    """An object and a terminal that have two variables, and a wall link that shows both."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.ids: dict[str, Any] = {}
        self.key = ""

    async def fill(self) -> None:
        rows = [[code, code, code, "STA", f"$AdapterID-1.{code}", ""] for code in VALUES]
        mapping = await self.rig.call("create_mapping", name="m", script=rows, **BY)
        await self.rig.add_terminal("t1")
        made = await self.rig.call("create_object", name="o", mapping_id=mapping["uid"], terminal_list=["t1"], **BY)
        self.ids = {"object_id": str(made["id"]), "terminal_id": "t1"}
        began = now_us() - HOUR_US
        records = [
            Record(f"m/{made['id']}", began, msgspec.msgpack.encode(VALUES)),
            Record("g/t1/r", began, json.dumps(VALUES).encode()),
        ]
        await self.rig.services.store.append(records)
        shown = [{"objectId": str(made["id"]), "code": code} for code in VALUES]
        widget = {"type": "vlu", "name": "x", "attribute": {"values": shown}}
        script = {"Dashboard-1": {"name": "P", "data": [widget]}}
        dashboard = await self.rig.call("create_dashboard", name="d", script=script, **BY)
        self.key = (await self.rig.call("renew_wall_link", uid=dashboard["uid"]))["key"]

    def request(self, operation: Operation, keys: list[str]) -> dict[str, Any]:
        given = FIELDS | self.ids | {"keys": keys}
        needed = {each.name for each in msgspec.structs.fields(operation.request) if each.required}
        known = needed | {"keys", "object_id", *({"format"} if operation in EXPORTS else ())}
        taken = set(operation.request.__struct_fields__) & known
        assert needed <= given.keys(), f"{operation.name}: say in FIELDS what it needs"
        return {name: given[name] for name in taken}

    async def ask(self, operation: Operation, keys: list[str]) -> list[Any]:
        """What is answered to who may ask: its lines, of which an export has one for each record."""
        fields, http = self.request(operation, keys), self.rig.http
        token = self.key if operation.permission is None else self.rig.tokens["viewer"]
        headers = {"Authorization": f"Bearer {token}"}
        if not operation.path:
            answer = http.post(f"/apiproxy/api/{operation.name}", json=fields, headers=headers)
        else:
            path = operation.path.format(**fields)
            query = {name: text(each) for name, each in fields.items() if f"{{{name}}}" not in operation.path}
            of_method: Mapping[str, Any] = {"params": query} if operation.method == "GET" else {"json": fields}
            answer = http.request(operation.method, path, headers=headers, **of_method)
        async with answer as response:
            body = await response.read()
            assert response.status == 200, (operation.name, body)
        return [json.loads(line) for line in body.splitlines()]


def text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, list) else str(value)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    async with open_rig(tmp_path_factory.mktemp("every")) as rig:
        made = Stand(rig)
        await made.fill()
        yield made


ASKED = [each for each in (*taking_keys(TABLE), *taking_keys(EXPORTS), *taking_keys(PATHS)) if each.name != "subscribe"]


def test_what_takes_keys_is_found() -> None:
    assert len(ASKED) >= 15
    assert {each.path for each in EXPORTS} <= {each.path for each in ASKED}
    assert {"get_wall_chart", "get_grid_chart", "get_mosaic_list"} <= {each.name for each in ASKED}


@IN_MODULE
@pytest.mark.parametrize("operation", ASKED, ids=[each.path or each.name for each in ASKED])
async def test_a_star_is_all_variables(stand: Stand, operation: Operation) -> None:
    every = await stand.ask(operation, ["*"])
    for code, value in VALUES.items():
        assert code in json.dumps(every), every
        assert str(value) in json.dumps(every), every
    assert await stand.ask(operation, [*VALUES]) == every
    assert await stand.ask(operation, ["TEMP", "*"]) == every
    assert await stand.ask(operation, ["NONE"] if operation.permission is not None else ["TEMP"]) != every


@IN_MODULE
@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_a_star_subscribes_to_all_variables(stand: Stand, kind: str) -> None:
    object_id = stand.ids["object_id"]
    async with open_ports(stand.rig) as ports, ports.connect(kind) as connection:
        for keys in (["*"], ["TEMP", "*"]):
            asked = await connection.ask("subscribe", kinds=["mosaic"], object_id=object_id, keys=keys)
            assert asked["code"] == 200, asked
            data = {"object_id": object_id, "value": VALUES}
            ports.rig.services.live.publish("mosaic", company_id=1, object_id=int(object_id), data=data)
            assert (await connection.receive())["data"]["value"] == VALUES
            await connection.ask("unsubscribe", subscription=asked["result"]["subscription"])


@IN_MODULE
async def test_the_description_says_so_wherever_keys_are_taken(stand: Stand) -> None:
    async with stand.rig.http.get("/openapi.json") as answer:
        found = list(descriptions(await answer.json()))
    assert len(found) >= len(taking_keys(TABLE))
    assert [each for each in found if "`*`" not in each] == []


def descriptions(node: Any) -> Any:
    """Of each property and parameter ``keys`` that names variables."""
    if isinstance(node, list):
        for each in node:
            yield from descriptions(each)
    elif isinstance(node, dict):
        keys = node.get("keys") if "object_id" in node or "terminal_id" in node else None
        if isinstance(keys, dict):
            yield str(keys.get("description"))
        if node.get("name") == "keys" and node.get("in") == "query":
            yield f"{node.get('description')} {node.get('schema', {}).get('description')}"
        for each in node.values():
            yield from descriptions(each)
