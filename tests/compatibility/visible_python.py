"""The public Python names: ``terrazzo.client``, ``terrazzo_broker`` and the pytest plugin, with signatures."""

from __future__ import annotations

import importlib
import inspect
import re
from importlib.metadata import entry_points
from typing import Any

MODULES = ("terrazzo.client", "terrazzo_broker")


def python_names() -> dict[str, Any]:
    """What each public module offers; a class with its constructor, bases of ours, methods and attributes."""
    return {module: _module(module) for module in MODULES} | {"pytest": _plugin()}


def _module(name: str) -> dict[str, Any]:
    module = importlib.import_module(name)
    return {each: describe(getattr(module, each)) for each in module.__all__}


def describe(value: Any) -> Any:
    """The signature of a callable; of a class all that is public in it."""
    if inspect.isclass(value):
        members = {
            name: _member(member) for name, member in inspect.getmembers_static(value) if _is_public(name, value)
        }
        call = "" if getattr(value, "_is_protocol", False) else _signature(value)
        return {"call": call, "is": _bases(value), "members": members}
    return _signature(value) if callable(value) else repr(type(value))


def _bases(value: type) -> list[str]:
    """What it is besides: what programs can name, so not what the inside is composed of."""
    return [base.__name__ for base in value.__mro__[1:-1] if issubclass(base, BaseException)]


def _is_public(name: str, owner: type) -> bool:
    home = next((base for base in owner.__mro__ if name in vars(base)), object)
    return not name.startswith("_") and home.__module__.startswith("terrazzo")


def _member(member: Any) -> str:
    if isinstance(member, property):
        return "property"
    if isinstance(member, classmethod | staticmethod):
        return f"{type(member).__name__} {_signature(member.__func__)}"
    if inspect.isroutine(member):
        return ("async " if inspect.iscoroutinefunction(member) else "") + _signature(member)
    return "attribute"


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except ValueError:
        return "(...)"
    return re.sub(r"\b(?:terrazzo\w*|collections|typing|types|asyncio|pathlib|ssl)(?:\.\w+)*\.(?=\w)", "", text)


def _plugin() -> dict[str, Any]:
    """Where pytest finds the plugin, and its fixtures with scope, arguments and what they hand out."""
    (entry,) = entry_points(group="pytest11", name="terrazzo")
    module = entry.load()
    fixtures = {name: value for name, value in vars(module).items() if _fixture_marker(value) is not None}
    return (
        {"entry point": f"{entry.name} = {entry.value}"}
        | {
            name: {
                "signature": _signature(inspect.unwrap(_function(value))),
                "scope": str(_fixture_marker(value).scope),
                "autouse": bool(_fixture_marker(value).autouse),
            }
            for name, value in fixtures.items()
        }
        | {"FleetFactory": _signature(module.FleetFactory.__call__)}
    )


def _fixture_marker(value: Any) -> Any:
    return getattr(value, "_fixture_function_marker", None) or getattr(value, "_pytestfixturefunction", None)


def _function(value: Any) -> Any:
    return getattr(value, "_fixture_function", None) or value.__pytest_wrapped__.obj
