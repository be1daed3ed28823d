"""The OpenAPI document's paths of files: exports of time series, imports and exports of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from terrazzo.api.kernel.envelope import SUCCESS
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.openapi.influx import describe_influx
from terrazzo.api.openapi.schemas import GATEWAY_FAILURE, Schema, Schemas, envelope_of, reference, without_null
from terrazzo.api.operations.bulk import BULK
from terrazzo.api.operations.history.export import EXPORTS
from terrazzo.bulk.report import Report
from terrazzo.campaigns.download_links import FIRMWARE_PATH

_JSON = "application/json"
_JSON_LINES = "application/x-ndjson"
_UPLOADS = ("text/csv", _JSON, _JSON_LINES)


def file_operations() -> list[Operation]:
    """The rows of all paths that give a file or take one."""
    return [*EXPORTS, *(path for each in BULK for path in (each.upload(), each.export()))]


def describe_files(schemas: Schemas, security: list[Schema], refused: dict[str, Any]) -> Schema:
    """The document's paths of files, by address and method."""
    found: Schema = {}
    for path in file_operations():
        gives, method = path.media_types, path.method.lower()
        body: Schema = {} if gives else {"requestBody": _upload()}
        found.setdefault(path.path, {})[method] = {
            "operationId": f"{method}_{path.name}",
            "tags": ["components"],
            "summary": path.summary,
            "security": security,
            "parameters": list(parameters(schemas.fields(path.request), path.path)),
            **body,
            "responses": {"200": _file(gives) if gives else _report(path, schemas), **refused},
        }
    return found | {FIRMWARE_PATH: {"get": _firmware()}} | describe_influx(security)


def _firmware() -> Schema:
    """What terminals fetch: the address itself is the permission."""
    signed = [("terminal", "query"), ("expires", "query"), ("signature", "query")]
    signed += [("company_id", "path"), ("file", "path"), ("name", "path")]
    content = {"application/octet-stream": {"schema": {"type": "string"}}}
    refusal = {"description": "An envelope", "content": {_JSON: {"schema": reference(GATEWAY_FAILURE)}}}
    return {
        "operationId": "get_firmware",
        "tags": ["components"],
        "summary": "A stored file under an address that an AXUpgrade named; with ranges",
        "security": [],
        "parameters": [
            {"name": name, "in": where, "required": True, "schema": {"type": "string"}} for name, where in signed
        ],
        "responses": {
            "200": {"description": "The file", "content": content},
            "206": {"description": "The part of it that Range names", "content": content},
            "304": {"description": "If-None-Match names it as it is"},
            "403": {**refusal, "description": "The signature is wrong, or the address has expired"},
            "404": {**refusal, "description": "The file has been deleted"},
            "416": {"description": "The range lies behind its end"},
        },
    }


def parameters(fields: Schema, at: str = "") -> Iterator[Schema]:
    """Those that the path ``at`` names stand in it, the others in the query string."""
    required = fields.get("required", ())
    for name, schema in fields["properties"].items():
        where = "path" if f"{{{name}}}" in at else "query"
        yield {"name": name, "in": where, "required": name in required, "schema": without_null(schema)}


def _file(gives: tuple[str, ...]) -> Schema:
    content: Schema = {media_type: {"schema": {"type": "string"}} for media_type in gives}
    said = {"oneOf": [reference(GATEWAY_FAILURE), {"type": "array"}]} if _JSON in gives else reference(GATEWAY_FAILURE)
    return {
        "description": "The file; or an envelope whose `code` says why there is none",
        "content": {**content, _JSON: {"schema": said}},
    }


def _report(operation: Operation, schemas: Schemas) -> Schema:
    success = envelope_of("gateway", {"const": SUCCESS}, {"const": operation.name}, schemas.result(Report))
    answer = {"oneOf": [success, reference(GATEWAY_FAILURE)]}
    lines = {"type": "string", "description": "lines of progress, the answer as the last one"}
    return {
        "description": "What was imported, or why nothing was",
        "content": {_JSON: {"schema": answer}, _JSON_LINES: {"schema": lines}},
    }


def _upload() -> Schema:
    form = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
    return {"required": True, "content": dict.fromkeys(_UPLOADS, form)}
