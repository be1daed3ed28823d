"""The OpenAPI document: valid, complete, served fast and to everybody."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from api_rig import Rig
from jsonschema import Draft202012Validator

from openapi_check import problems
from terrazzo.api.openapi.document import GATEWAY_PATH, action_path, build_document, load_examples
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from terrazzo.api.transports.http import build_apps


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(msgspec.json.encode(build_document()))


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document["components"]})


def test_it_is_valid_by_the_meta_schema(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert problems(document) == []


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda it: it.pop("info"), "info"),
        (lambda it: it["components"]["schemas"].update(wrong={"type": "nothing"}), "wrong"),
        (lambda it: it["paths"]["/readyz"]["get"].update(operationId="healthz"), "stands twice"),
        (lambda it: it["paths"].update({"/a/{b}": it["paths"]["/readyz"]}), "not those of the path"),
        (
            lambda it: it["components"]["schemas"].update(gone={"$ref": "#/components/schemas/none"}),
            "refers to nothing",
        ),
    ],
    ids=["member", "schema", "name", "parameters", "reference"],
)
def test_what_is_wrong_would_be_found(document: dict[str, Any], spoil: Callable[[Any], object], found: str) -> None:
    spoiled = copy.deepcopy(document)
    spoil(spoiled)
    assert any(found in each for each in problems(spoiled))


def test_every_action_has_a_request_and_an_answer(document: dict[str, Any]) -> None:
    gateway = document["paths"][GATEWAY_PATH]["post"]
    request = gateway["requestBody"]["content"]["application/json"]["schema"]
    answers = gateway["responses"]["200"]["content"]["application/json"]["schema"]["oneOf"]
    assert request["discriminator"]["propertyName"] == "action"
    schemas = document["components"]["schemas"]
    for operation in TABLE:
        at = {"$ref": f"#/components/schemas/{operation.name}.request"}
        assert at in request["oneOf"]
        assert {"$ref": f"#/components/schemas/{operation.name}.answer"} in answers
        described = schemas[f"{operation.name}.request"]
        assert described["properties"].keys() == {
            "action",
            "actionid",
            "strict",
            *operation.request.__struct_encode_fields__,
        }
        for name in (operation.name, *operation.aliases):
            assert request["discriminator"]["mapping"][name] == at["$ref"]
            assert name in described["properties"]["action"]["enum"]
    assert [each["name"] for each in document["x-actions"]] == [operation.name for operation in TABLE]


def test_every_component_path_is_there_with_its_parameters(document: dict[str, Any]) -> None:
    for path in PATHS:
        described = document["paths"][path.path][path.method.lower()]
        fields = msgspec.structs.fields(path.request)
        if path.method == "GET":
            given = {parameter["name"]: parameter["required"] for parameter in described["parameters"]}
        else:
            body = described["requestBody"]["content"]["application/json"]["schema"]
            given = {name: name in body["required"] for name in body["properties"]}
        assert given == {field.encode_name: field.required for field in fields}, path.path


def test_every_action_has_an_address_of_its_own_named_after_it(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for operation in TABLE:
        described = document["paths"][action_path(operation.name)]["post"]
        assert described["operationId"] == operation.name
        body = described["requestBody"]["content"]["application/json"]
        assert body["schema"] == {"$ref": f"#/components/schemas/{operation.name}.fields"}
        asked, fields = schemas[f"{operation.name}.request"], schemas[f"{operation.name}.fields"]
        assert asked["properties"].keys() - fields["properties"].keys() == {"action"}
        assert set(asked["required"]) - set(fields["required"]) == {"action"}
        if "example" in body:
            errors = [error.message for error in validator(document, body["schema"]).iter_errors(body["example"])]
            assert errors == [], operation.name
    names = [of["operationId"] for methods in document["paths"].values() for of in methods.values()]
    assert len(names) == len(set(names))


async def test_every_route_is_described(rig: Rig, document: dict[str, Any]) -> None:
    routes = {resource.canonical for resource in build_apps(rig.services).http.router.resources()}
    besides = {path for path in routes if path == "/docs" or path.startswith("/docs/")} | {"/{path}"}
    besides |= {"/", "/console/{name}", "/console/policy-reports"}  # what browsers load and report, not clients
    of_names = action_path("{name}")  # one route, which knows names
    assert of_names in routes
    known = {path for path in map(action_path, [*(each.name for each in TABLE), "none"]) if await is_there(rig, path)}
    assert known | (routes - besides - {of_names}) == document["paths"].keys()


async def is_there(rig: Rig, path: str) -> bool:
    """Whether a path takes some method."""
    async with rig.http.get(path) as response:
        assert response.status in (404, 405), path
        return response.status == 405


def test_only_one_request_schema_fits(document: dict[str, Any]) -> None:
    """Which makes ``oneOf`` say what the field ``action`` decides."""
    gateway = document["paths"][GATEWAY_PATH]["post"]["requestBody"]["content"]["application/json"]["schema"]
    check = validator(document, gateway)
    assert check.is_valid({"action": "ping", "actionid": 7})
    assert not check.is_valid({"action": "no_such_action"})
    assert not check.is_valid({"action": "get_terminal_item"})
    assert not check.is_valid({"actionid": "1"})


def test_examples_fit_their_schemas(document: dict[str, Any]) -> None:
    for name, example in load_examples().items():
        for kind in ("request", "answer"):
            schema = document["components"]["schemas"][f"{name}.{kind}"]
            errors = [error.message for error in validator(document, schema).iter_errors(getattr(example, kind))]
            assert errors == [], (name, kind)


def test_every_field_of_a_request_is_explained(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        if name.endswith(".request"):
            unexplained = [field for field, of in schema["properties"].items() if not of.get("description")]
            assert unexplained == [], f"{name}: add them to terrazzo.api.openapi.field_texts"


async def test_it_is_served_without_a_token_and_only_once(rig: Rig, document: dict[str, Any]) -> None:
    async with rig.http.get("/openapi.json") as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        assert await response.json() == document
        etag = response.headers["ETag"]
    for sent in (etag, f'"other", {etag}', f"W/{etag}", "*"):
        async with rig.http.get("/openapi.json", headers={"If-None-Match": sent}) as response:
            assert (response.status, await response.read()) == (304, b"")
            assert response.headers["ETag"] == etag
    async with rig.http.get("/openapi.json", headers={"If-None-Match": '"other"'}) as response:
        assert response.status == 200
    async with rig.http.get("/openapi.json", headers={"Accept-Encoding": "identity"}) as response:
        assert "Content-Encoding" not in response.headers
        assert json.loads(await response.read()) == document


def test_it_names_the_configured_prefixes(document: dict[str, Any]) -> None:
    moved = build_document(prefixes={"grid_base": "/elsewhere"})
    assert "/elsewhere/api/v1/grid/getLastItem" in moved["paths"]
    assert "/grid/api/v1/grid/getLastItem" not in moved["paths"]


async def test_gateway_answers_fit_the_document(rig: Rig, document: dict[str, Any]) -> None:
    schema = document["paths"][GATEWAY_PATH]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    check = validator(document, schema)
    await rig.add_terminal("t1")
    for action, fields in [
        ("ping", {}),
        ("get_terminal_item", {"uid": "t1"}),
        ("get_terminal_item", {"uid": "none"}),
        ("get_terminal_list", {"page_size": 0}),
        ("get_last_grid", {"terminal_id": "t1"}),
    ]:
        answer = await rig.ask(action, **fields)
        assert [error.message for error in check.iter_errors(answer)] == [], answer


def test_no_schema_is_named_after_a_file() -> None:
    """Two Structs of one name would be told apart by their modules, and a moved file would change the document."""
    names = build_document()["components"]["schemas"]
    assert [name for name in names if name.startswith("terrazzo")] == []
