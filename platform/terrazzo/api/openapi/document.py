"""The OpenAPI 3.1 document, made from the table of operations and the component paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import msgspec

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.prefixes import PREFIXES
from terrazzo.api.openapi.brokers import SECURITY_SCHEMES, describe_brokers
from terrazzo.api.openapi.files import describe_files, file_operations, parameters
from terrazzo.api.openapi.schemas import GATEWAY_FAILURE, Schema, Schemas, readable_by_generators, reference
from terrazzo.api.openapi.uploads import describe_uploads
from terrazzo.api.operations.files import DOWNLOAD, UPLOAD
from terrazzo.api.operations.labels import CLOSE_RETAINER, GET_OPEN_RETAINER_LIST
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS

GATEWAY_PATH = "/apiproxy/api"
RETAINER_PATH = PREFIXES["retainer_base"]
"""The same gateway at the address that section 1 documents retainers' labels against, unless configured otherwise."""
JSON = "application/json"


def action_path(action: str) -> str:
    """The address of one action alone, which is the gateway's request without ``action``."""
    return f"{GATEWAY_PATH}/{action}"


_SECURITY: list[Schema] = [{"token": []}]

_DESCRIPTION = """An MQTT-centric device platform. One address serves all actions: the field `action` of the body says
which. Each action has an address of its own too, `/apiproxy/api/<action>`, for clients that are generated. Component
paths serve the same operations with query strings.

**Tokens.** `login` gives one. Send it as `Authorization: Bearer <token>`. An API key goes wherever a token goes.

**WebSocket.** The gateway's path also upgrades to a WebSocket, here and on the port `websocket.port`: one request a
message, one answer a message. A connection is authenticated by the upgrade's header or by a request with a
field `Authorization`, such as `{"action": "ping", "Authorization": "Bearer <token>"}`. `subscribe` works there.

**TCP.** Where `tcp.enabled` is set: one JSON request a line, one answer a line, authentication as over WebSocket.

**Codes.** An answer with HTTP status 200 reached an operation; `code` says what became of it: 200 success, 10401 a bad
parameter, 10402 no valid token, 10403 not permitted, 10404 no such record, 500 anything else. Components answer 500 for
a bad parameter and a missing record."""

_REFUSALS = {
    "404": "Nothing is at this path, or there is no such action",
    "405": "Not a method of this path",
    "413": "Longer than `limits.body_bytes`",
    "415": "Not `application/json` in UTF-8",
    "429": "Throttled; `Retry-After` says for how long",
    "503": "The store or the database can't work now",
}
_RETRY_AFTER: Schema = {"Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 0}}}


class Example(msgspec.Struct, frozen=True):
    """A request of an action and its answer, as they were sent and received."""

    request: dict[str, Any]
    answer: dict[str, Any] = {}


@cache
def load_examples() -> Mapping[str, Example]:
    """An example for each action, in the order in which they can be run."""
    text = files("terrazzo.api.openapi").joinpath("examples.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Example])


def build_document(
    *,
    operations: Iterable[Operation] = TABLE,
    paths: Iterable[Operation] = PATHS,
    prefixes: Mapping[str, str] | None = None,
    has_brokers: bool = False,
) -> Schema:
    """The document; ``prefixes`` are the configured ones (``grid_base`` -> ``/grid``).

    ``has_brokers``: other brokers may ask who may log in.
    """
    operations, paths = tuple(operations), tuple(paths)
    schemas = Schemas(operations, (*paths, UPLOAD), others=(*file_operations(), DOWNLOAD))
    of_labels = [operation for operation in operations if operation in (GET_OPEN_RETAINER_LIST, CLOSE_RETAINER)]
    prefixes = prefixes or {}
    document: Schema = {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {"title": "Terrazzo", "version": version("terrazzo"), "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": "gateway"}, {"name": "actions"}, {"name": "components"}, {"name": "operators"}],
        "paths": {
            GATEWAY_PATH: {"post": _gateway(operations, _GATEWAY)},
            prefixes.get("retainer_base", RETAINER_PATH): {"post": _gateway(of_labels, _RETAINER)},
            **{action_path(each.name): {"post": _action(each, schemas)} for each in operations},
            **_component_paths(paths, prefixes, schemas),
            **describe_uploads(schemas, prefixes, _SECURITY, _refused("404", "405", "413", "503")),
            **describe_files(schemas, _SECURITY, _refused("404", "405", "413", "503")),
            **_OPERATOR_PATHS,
            **(describe_brokers(_refused("405", "413")) if has_brokers else {}),
        },
        "components": {
            "schemas": schemas.components,
            "responses": {f"refused_{status}": _refusal(status) for status in _REFUSALS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                **(SECURITY_SCHEMES if has_brokers else {}),
            },
        },
        "x-actions": [_listed(operation) for operation in operations],
    }
    return readable_by_generators(document)


_GATEWAY = {
    "operationId": "gateway",
    "summary": "All actions; the field action says which",
    "description": "`login` and `logout` need no role. `x-actions` lists what each action asks for and gives.",
}
_RETAINER = {
    "operationId": "retainer",
    "summary": "The labels that retainers keep open; the field action says what to do",
    "description": "The same gateway at an address of its own: every action works here too.",
}


def _gateway(operations: Iterable[Operation], texts: Schema) -> Schema:
    names = [operation.name for operation in operations]
    examples = {name: example for name, example in load_examples().items() if name in names}
    request = {
        "oneOf": [reference(f"{name}.request") for name in names],
        "discriminator": {"propertyName": "action", "mapping": _mapping(operations)},
    }
    answer = {"oneOf": [*(reference(f"{name}.answer") for name in names), reference(GATEWAY_FAILURE)]}
    return {
        **texts,
        "tags": ["gateway"],
        "security": [*_SECURITY, {}],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": request,
                    "examples": {name: {"value": each.request} for name, each in examples.items()},
                }
            },
        },
        "responses": {
            "200": {
                "description": "Reached an operation, or could not be read; `code` says what became of it",
                "content": {
                    JSON: {
                        "schema": answer,
                        "examples": {name: {"value": each.answer} for name, each in examples.items()},
                    }
                },
            },
            **_refused("404", "405", "413", "415", "429", "503"),
        },
    }


def _action(operation: Operation, schemas: Schemas) -> Schema:
    """An action at an address of its own, named after it; without a body where no field is required."""
    fields = reference(f"{operation.name}.fields")
    example = load_examples().get(operation.name)
    sent = {} if example is None else {name: each for name, each in example.request.items() if name != "action"}
    answer = {"oneOf": [reference(f"{operation.name}.answer"), reference(GATEWAY_FAILURE)]}
    return {
        "operationId": operation.name,
        "tags": ["actions"],
        "summary": operation.summary,
        "description": permission_text(operation),
        "security": [] if operation.permission is None else _SECURITY,
        "requestBody": {
            "required": bool(schemas.resolve(fields)["required"]),
            "content": {
                JSON: {
                    "schema": fields,
                    **({} if example is None else {"example": sent}),
                }
            },
        },
        "responses": {
            "200": {
                "description": "Reached the action, or could not be read; `code` says what became of it",
                "content": {JSON: {"schema": answer, **({} if example is None else {"example": example.answer})}},
            },
            **_refused("405", "413", "415", "429", "503"),
        },
    }


def _mapping(operations: Iterable[Operation]) -> dict[str, str]:
    return {
        name: reference(f"{operation.name}.request")["$ref"]
        for operation in operations
        for name in (operation.name, *operation.aliases)
    }


def _component_paths(paths: Iterable[Operation], prefixes: Mapping[str, str], schemas: Schemas) -> Schema:
    found: Schema = {}
    for path in paths:
        at = path.address(prefixes)
        found.setdefault(at, {})[path.method.lower()] = _component(at, path, schemas)
    return found


def _component(at: str, path: Operation, schemas: Schemas) -> Schema:
    return {
        "operationId": f"{path.method.lower()}{at.replace('/', '_')}",
        "tags": ["components"],
        "summary": path.summary,
        "description": permission_text(path),
        "security": [] if path.permission is None else _SECURITY,
        **(_in_query if path.method == "GET" else _in_body)(schemas.fields(path.request)),
        "responses": {
            "200": {
                "description": "Reached the operation; `code` says what became of it",
                "content": {JSON: {"schema": schemas.component_answer(path)}},
            },
            **_refused("405", "503", *(() if path.method == "GET" else ("413", "415"))),
        },
    }


def _in_query(fields: Schema) -> Schema:
    return {"parameters": list(parameters(fields))}


def _in_body(fields: Schema) -> Schema:
    """A query string and forms carry the same fields as text."""
    schema = {"type": "object", "properties": fields["properties"], "required": fields.get("required", [])}
    note = (
        "Also accepted as a form (`application/x-www-form-urlencoded`, `multipart/form-data`) and in the query string."
    )
    required = bool(schema["required"])
    return {"requestBody": {"required": required, "description": note, "content": {JSON: {"schema": schema}}}}


def _refused(*statuses: str) -> Schema:
    return {status: {"$ref": f"#/components/responses/refused_{status}"} for status in statuses}


def _refusal(status: str) -> Schema:
    headers = {"headers": _RETRY_AFTER} if status == "429" else {}
    return {"description": _REFUSALS[status], **headers, "content": {JSON: {"schema": reference(GATEWAY_FAILURE)}}}


def _listed(operation: Operation) -> Schema:
    """What a page about the actions needs to know of one."""
    example = load_examples().get(operation.name)
    return {
        "name": operation.name,
        "aliases": list(operation.aliases),
        "summary": operation.summary,
        "role": None if operation.permission is None else operation.permission.name.lower(),
        "request": reference(f"{operation.name}.request"),
        "answer": reference(f"{operation.name}.answer"),
        **({"example": msgspec.structs.asdict(example)} if example else {}),
    }


def permission_text(operation: Operation) -> str:
    """Which role an operation needs, as a sentence."""
    if operation.permission is None:
        return "Needs no role."
    return f"Role: {operation.permission.name.lower()}."


def _plain_get(name: str, summary: str, media_type: str, schema: Schema, *more: tuple[str, str]) -> Schema:
    content = {media_type: {"schema": schema}}
    answers = {status: {"description": text, "content": content} for status, text in (("200", summary), *more)}
    return {
        "get": {
            "operationId": name,
            "tags": ["operators"],
            "summary": summary,
            "security": [],
            "responses": {**answers, **_refused("405")},
        }
    }


def _parts() -> Iterator[tuple[str, Schema]]:
    part = {"type": "object", "properties": {"ready": {"type": "boolean"}, "reason": {"type": "string"}}}
    yield "ready", {"type": "boolean"}
    yield "parts", {"type": "object", "additionalProperties": part}
    yield "degraded", {"type": "object", "additionalProperties": {"type": "string"}}


_READINESS: Schema = {"type": "object", "properties": dict(_parts()), "required": ["ready", "parts"]}
_HEALTH: Schema = {"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}
_OPERATOR_PATHS: Schema = {
    "/healthz": _plain_get("healthz", "The process lives", JSON, _HEALTH),
    "/readyz": _plain_get("readyz", "Every part accepts work", JSON, _READINESS, ("503", "A part doesn't accept work")),
    "/readyz/reads": _plain_get(
        "readyz_reads", "Every part answers reads", JSON, _READINESS, ("503", "A part doesn't answer reads")
    ),
    "/metrics": _plain_get(
        "metrics", "Prometheus text", "text/plain", {"type": "string"}, ("401", "metrics.token is set, and not given")
    ),
    "/openapi.json": _plain_get("openapi", "This document", JSON, {"type": "object"}),
}
