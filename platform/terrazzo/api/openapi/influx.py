"""The OpenAPI document's paths of InfluxDB's clients."""

from __future__ import annotations

from typing import Any

from terrazzo.api.openapi.schemas import Schema
from terrazzo.api.operations.influx.query import INFLUX_QUERY, PING_PATH, QUERY_PATH, WRITE_PATH

_JSON = "application/json"
_PARAMETERS = {
    "q": "statements of InfluxQL, with ; between them",
    "db": "mosaic or grid",
    "epoch": "the unit of times: ns, u, ms, s, m or h; empty: RFC 3339",
    "chunked": "true: a document for each chunk of rows",
    "chunk_size": "rows of a chunk",
    "pretty": "true: laid out for people",
    "u": "a user's name, which goes for nothing",
    "p": "a token or API key, where no header has one",
}


def describe_influx(security: list[Schema]) -> Schema:
    """The paths, by address and method."""
    error = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    failed = {"content": {_JSON: {"schema": error}}}
    answers: Schema = {
        "200": {
            "description": "A result for each statement, with series or an error",
            "content": {_JSON: {"schema": _results()}, "text/csv": {"schema": {"type": "string"}}},
        },
        "400": {"description": "No InfluxQL", **failed},
        "401": {"description": "No good token", **failed},
        "403": {"description": "Not permitted", **failed},
        "413": {"description": "The form is too long", **failed},
        "429": {"description": "Too many questions of the company wait", **failed},
        "503": {"description": "A part of the platform can't work now", **failed},
    }
    named = [{"name": name, "description": text, "schema": {"type": "string"}} for name, text in _PARAMETERS.items()]
    asked: dict[str, Any] = {"tags": ["components"], "security": security, "responses": answers}
    form = {"type": "object", "properties": {each["name"]: each["schema"] for each in named}}
    return {
        QUERY_PATH: {
            "get": {
                **asked,
                "operationId": "get_influx_query",
                "summary": INFLUX_QUERY.summary,
                "parameters": [{**each, "in": "query", "required": each["name"] == "q"} for each in named],
            },
            "post": {
                **asked,
                "operationId": "post_influx_query",
                "summary": f"{INFLUX_QUERY.summary}, with the parameters as a form",
                "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": form}}},
            },
        },
        PING_PATH: {"get": _plain("get_influx_ping", "Whether InfluxDB's language is spoken here", "204", "It is")},
        WRITE_PATH: {"post": _plain("post_influx_write", "Refused: terminals write over MQTT", "405", "Always")},
    }


def _plain(name: str, summary: str, status: str, description: str) -> Schema:
    answers = {status: {"description": description}}
    return {"operationId": name, "tags": ["components"], "summary": summary, "security": [], "responses": answers}


def _results() -> Schema:
    text = {"type": "string"}
    series = {
        "name": text,
        "tags": {"type": "object", "additionalProperties": text},
        "columns": {"type": "array", "items": text},
        "values": {"type": "array", "items": {"type": "array", "items": {}}},
        "partial": {"type": "boolean"},
    }
    result = {
        "statement_id": {"type": "integer"},
        "error": text,
        "series": {"type": "array", "items": {"type": "object", "properties": series}},
        "partial": {"type": "boolean"},
    }
    results = {"type": "array", "items": {"type": "object", "properties": result}}
    return {"type": "object", "required": ["results"], "properties": {"results": results}}
