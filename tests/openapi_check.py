"""Whether a document is an OpenAPI 3.1 document, by its own schema and by what that leaves open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import jsonschema_rs

_SCHEMA = files("openapi_spec_validator").joinpath("resources/schemas/v3.1/schema.json")
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def problems(document: dict[str, Any]) -> list[str]:
    """What is wrong, with its place; nothing in a document that is valid.

    By compiled schemas: validators written in Python take half a minute for a document of some hundred operations.
    """
    by_schema = jsonschema_rs.Draft202012Validator(json.loads(_SCHEMA.read_text()))
    return [
        *(f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in by_schema.iter_errors(document)),
        *(f"{place}: {error}" for place, schema in _schemas(document) for error in _of_schema(schema)),
        *(f"{target}: refers to nothing" for target in _targets(document) if not _is_there(document, target)),
        *_of_operations(document),
    ]


def _schemas(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas: the named ones, and those that stand where they are used."""
    yield from document.get("components", {}).get("schemas", {}).items()
    waiting: list[tuple[str, Any]] = [("paths", document["paths"])]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(f"{place}/{number}", each) for number, each in enumerate(value)]
        elif isinstance(value, dict):
            if isinstance(value.get("schema"), dict):
                yield f"{place}/schema", value["schema"]
            waiting += [(f"{place}/{name}", each) for name, each in value.items() if name not in ("schema", "example")]


def _of_schema(schema: dict[str, Any]) -> Iterator[str]:
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        yield error.message


def _targets(document: dict[str, Any]) -> set[str]:
    """What ``$ref`` names, wherever it is no property that is called so."""
    found, waiting = set(), [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                found.add(value["$ref"])
            waiting += [each for name, each in value.items() if name not in ("example", "examples")]
        elif isinstance(value, list):
            waiting += value
    return found


def _is_there(document: dict[str, Any], target: str) -> bool:
    found: Any = document
    for part in target.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not target.startswith("#/") or not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return True


def _of_operations(document: dict[str, Any]) -> Iterator[str]:
    """Names of operations are unique; a path's parameters are those in its braces, each once."""
    names: set[str] = set()
    for path, item in document["paths"].items():
        in_path = {part[1:-1] for part in path.split("/") if part.startswith("{") and part.endswith("}")}
        for method in _METHODS:
            operation = item.get(method)
            if operation is None:
                continue
            name = operation.get("operationId")
            if name in names:
                yield f"{method} {path}: the name {name} stands twice"
            names.add(name)
            given = [*item.get("parameters", ()), *operation.get("parameters", ())]
            keys = [(each["in"], each["name"]) for each in given]
            if len(set(keys)) < len(keys):
                yield f"{method} {path}: a parameter stands twice"
            if {name for where, name in keys if where == "path"} != in_path:
                yield f"{method} {path}: its parameters are not those of the path"
