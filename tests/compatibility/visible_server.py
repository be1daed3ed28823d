"""What clients and operators see of a running platform: actions, component paths, ``/openapi.json``, metrics."""

from __future__ import annotations

import json
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from running import Platform

_TEXT = {"description", "summary", "example", "examples", "title"}
"""Of the document, what only people read."""
_METHODS = {"get", "post", "put", "delete"}


def ask_platform(data: Path, **environment: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """``/openapi.json`` and the metrics of a new platform that has been asked a little."""
    with Platform(data, env=environment) as platform:
        platform.login().call("ping")
        platform.ask("no_such_action")
        document = json.loads(_get(f"{platform.url}/openapi.json"))
        return document, metrics(_get(f"{platform.url}/metrics"))


def actions(document: dict[str, Any]) -> dict[str, Any]:
    """Role (None: no token is needed), other names, fields and result of each action."""
    schemas = document["components"]["schemas"]
    found = {}
    for action in document["x-actions"]:
        request = _resolved(action["request"], schemas)
        answer = _resolved(action["answer"], schemas)
        found[action["name"]] = {
            "role": action["role"],
            "also": sorted(action["aliases"]),
            "fields": _fields(request),
            "result": bare(answer["properties"].get("result")),
        }
    return found


def paths(document: dict[str, Any]) -> dict[str, Any]:
    """Permission, fields and parameters of each method of each path."""
    found = {}
    for path, methods in document["paths"].items():
        for method in _METHODS & methods.keys():
            described = methods[method]
            bodies = described.get("requestBody", {}).get("content", {})
            found[f"{method.upper()} {path}"] = {
                "permission": described.get("description", "") if "components" in described["tags"] else "",
                "security": described.get("security"),
                "parameters": {each["name"]: bare(each) for each in described.get("parameters", [])},
                "bodies": {kind: _body(body.get("schema", {})) for kind, body in bodies.items()},
                "statuses": sorted(described["responses"]),
            }
    return found


def openapi(document: dict[str, Any]) -> Any:
    """The document without its texts, examples and the version of the product."""
    document = {**document, "info": {}}
    found: Any = bare(document)
    found["x-actions"] = sorted(each["name"] for each in document["x-actions"])
    return found


def metrics(text: str) -> dict[str, Any]:
    """Type and label names of each metric; no labels where nothing has been counted yet."""
    found = {}
    for family in text_string_to_metric_families(text):
        labels: dict[str, set[str]] = defaultdict(set)
        for sample in family.samples:
            labels[sample.name].update(sample.labels)
        found[family.name] = {"type": family.type, "samples": {name: sorted(of) for name, of in labels.items()}}
    return found


def bare(value: Any, *, is_names: bool = False) -> Any:
    """Without what only people read; ``is_names``: the keys are names of fields, schemas or paths, not of OpenAPI."""
    if isinstance(value, dict):
        kept = value.items() if is_names else ((key, each) for key, each in value.items() if key not in _TEXT)
        return {key: bare(each, is_names=not is_names and key in _NAMED) for key, each in kept}
    if isinstance(value, list):
        return [bare(each) for each in value]
    return value


_NAMED = {"properties", "schemas", "paths", "mapping", "responses", "securitySchemes", "headers", "$defs"}


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    return {name: {**bare(of), "required": name in required} for name, of in schema.get("properties", {}).items()}


def _body(schema: dict[str, Any]) -> Any:
    return _fields(schema) if "properties" in schema else bare(schema)


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    target = schema.get("$ref")
    found: dict[str, Any] = schemas[target.rpartition("/")[2]] if target else schema
    return found


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())
