"""Requests of a megabyte, good and bad, hold the loop for some milliseconds at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_rig import Rig

from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.replica.performers import new_kernel
from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from turns_of_loop import longest_turn

IN_MODULE = pytest.mark.asyncio(loop_scope="module")
MOST_S = 0.015  # three times what it may be: the bound is of a machine that does nothing else
LISTS = "[" + ",".join(["[]"] * 320_000) + "]"
TOO_MANY = "more than 30000 values in one field (limits.field_values)"


def request(action: str, **fields: Any) -> str:
    return json.dumps({"action": action, **fields})[:-1]


BODIES = {
    "a list of empty lists": (request("get_terminal_list") + f', "where_in": {LISTS}}}', f"where_in: {TOO_MANY}"),
    "the same as text": (request("get_terminal_list") + f', "where_in": "{LISTS}"}}', f"where_in: {TOO_MANY}"),
    "the same with escapes": (
        request("get_terminal_list") + ', "where_in": "\\u005b' + "[]," * 300_000 + '0]"}',
        f"where_in: {TOO_MANY}",
    ),
    "a field that nobody reads": (request("create_company") + f', "x": {LISTS}}}', "is required"),
    "a field is missing": (request("create_mapping") + f', "script": {LISTS}}}', "is required"),
    "strict": (request("check_mapping", strict=True) + f', "script": {LISTS}}}', f"script: {TOO_MANY}"),
    "strict, and a field that is unknown": (
        request("check_mapping", strict=True, script=[]) + f', "scrip": {LISTS}}}',
        "scrip: unknown field; did you mean script?",
    ),
    "strict, and many that are": (
        request("check_mapping", strict=True, script=[], **{f"field_{n}_{'x' * 90}": 1 for n in range(9_000)}),
        "unknown field",
    ),
    "the action itself": (f'{{"action": {LISTS}', "expected str, got array"),
    "strict itself": (request("ping") + f', "strict": {LISTS}', "expected bool, got array"),
    "a list of keys as text": (
        request("check_mapping", script=[]) + ', "terminal_list": "' + "a," * 400_000 + '"',
        f"terminal_list: {TOO_MANY}",
    ),
    "short, but of numbers that take long to read": (
        request("check_mapping") + f', "script": [{",".join(["1e300"] * 2_700)}]',
        f"script: {TOO_MANY}",
    ),
    "such numbers as text": (request("check_mapping") + f', "script": "[{",".join(["1e300"] * 2_700)}]"', TOO_MANY),
    "tokens": (request("ping") + f', "Authorization": {LISTS}', ""),
}


async def asked(rig: Rig, body: str) -> Answer:
    gateway = new_kernel(rig.services, Traffic(), TABLE).gateway
    return await gateway.answer(body.encode(), Caller("127.0.0.1", rig.tokens["admin"]))


@IN_MODULE
@pytest.mark.parametrize("named", BODIES)
async def test_a_long_request_holds_nobody_up(shared_rig: Rig, named: str) -> None:
    body, info = BODIES[named]
    body += "" if body.endswith("}") else "}"
    assert len(body) < 2**20
    async with longest_turn() as longest:
        answer = await asked(shared_rig, body)
    assert info in json.loads(answer.body)["info"]
    assert longest.cpu_s < MOST_S


@IN_MODULE
async def test_long_texts_have_as_many_commas_as_they_like(shared_rig: Rig) -> None:
    body = request("check_mapping", script=[], payloads=[{"payload": {"a": "x," * 200_000}}])
    assert json.loads((await asked(shared_rig, body + "}")).body)["code"] == 200


@IN_MODULE
@pytest.mark.parametrize("as_text", [False, True])
async def test_a_long_body_of_a_component_holds_nobody_up(shared_rig: Rig, as_text: bool) -> None:
    path = next(each for each in PATHS if each.path == "/object/api/v1/mapping/add")
    components = new_kernel(shared_rig.services, Traffic(), TABLE).components
    fields, body = ([("script", LISTS)], b"") if as_text else ([], f'{{"script": {LISTS}}}'.encode())
    async with longest_turn() as longest:
        answer = await components.answer(path, fields, Caller("127.0.0.1", shared_rig.tokens["admin"]), body=body)
    assert TOO_MANY in answer.body.decode()
    assert longest.cpu_s < MOST_S
