"""The OpenAPI document's two paths of uploaded files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from terrazzo.api.openapi.files import parameters
from terrazzo.api.openapi.schemas import COMPONENT_FAILURE, Schema, Schemas, reference
from terrazzo.api.operations.files import DOWNLOAD, UPLOAD

_JSON = "application/json"
_BYTES: Schema = {"type": "string", "format": "binary"}
_FORM: Schema = {"type": "object", "properties": {"file": _BYTES}, "required": ["file"]}


def describe_uploads(
    schemas: Schemas, prefixes: Mapping[str, str], security: list[Schema], refused: dict[str, Any]
) -> Schema:
    """By address and method; ``prefixes`` are the configured ones."""
    at = DOWNLOAD.address(prefixes)
    return {
        UPLOAD.address(prefixes): {
            "post": {
                "operationId": "upload_file",
                "tags": ["components"],
                "summary": UPLOAD.summary,
                "security": security,
                "parameters": list(parameters(schemas.fields(UPLOAD.request))),
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {"schema": _FORM},
                        "application/octet-stream": {"schema": _BYTES},
                    },
                },
                "responses": {
                    **{status: _answer(schemas.component_answer(UPLOAD)) for status in ("200", "413")},
                    **{status: answer for status, answer in refused.items() if status != "413"},
                },
            }
        },
        at: {
            "get": {
                "operationId": "download_file",
                "tags": ["components"],
                "summary": DOWNLOAD.summary,
                "security": security,
                "parameters": list(parameters(schemas.fields(DOWNLOAD.request), at)),
                "responses": {
                    "200": _file("The file; or an envelope whose `code` says why there is none"),
                    "206": _file("A range of the file"),
                    "304": {"description": "The client has the file"},
                    "412": {"description": "The file isn't the one that the client has"},
                    "416": {"description": "A range past the end"},
                    **refused,
                },
            }
        },
    }


def _answer(schema: Schema) -> Schema:
    return {"description": "What was kept, or why nothing was", "content": {_JSON: {"schema": schema}}}


def _file(description: str) -> Schema:
    failure = {"schema": reference(COMPONENT_FAILURE)}
    return {"description": description, "content": {"application/octet-stream": {"schema": _BYTES}, _JSON: failure}}
