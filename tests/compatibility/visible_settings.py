"""What operators set: configuration keys with their variables, command lines, logger names."""

from __future__ import annotations

import argparse
import contextlib
import json
import runpy
import subprocess
import sys
from typing import Any
from unittest import mock

import msgspec
from insides import ConfigError, command_line, read_environment, repeated_sections, sections

_LOGGERS = """
import importlib, json, logging, pkgutil
for package in ("terrazzo", "terrazzo_broker", "terrazzo_adapters", "terrazzo_simulators"):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.endswith("__main__") and ".migrations" not in found.name:
            importlib.import_module(found.name)
print(json.dumps(sorted(name for name in logging.root.manager.loggerDict if name.startswith("terrazzo"))))
"""


def configuration() -> dict[str, Any]:
    """Default (as JSON has it) and environment variable of each key."""
    found = {}
    for section, kind in sections().items():
        for field in msgspec.structs.fields(kind):
            variable = f"TERRAZZO_{section}__{field.encode_name}".upper()
            found[f"{section}.{field.encode_name}"] = {"default": _default(field), "variable": variable}
    for section, kind in repeated_sections().items():
        for field in msgspec.structs.fields(kind):
            variable = f"TERRAZZO_{section}__1__{field.encode_name}".upper()
            found[f"{section}.{field.encode_name}"] = {"default": _default(field), "variable": variable}
    return found


def is_read(variable: str) -> bool:
    """Whether the platform knows an environment variable, whatever it thinks of its value."""
    try:
        read_environment({variable: "x"})
    except ConfigError as refusal:
        return "unknown" not in str(refusal)
    return True


def command_lines() -> dict[str, Any]:
    """Each command of ``terrazzo`` with its parameters, and the options of ``python -m terrazzo_broker``."""
    return {**_commands(command_line(), "terrazzo"), "python -m terrazzo_broker": _broker_options()}


def loggers() -> list[str]:
    """The names that levels are set for: packages, and what stands beside them, one level deep."""
    done = subprocess.run([sys.executable, "-c", _LOGGERS], capture_output=True, text=True, timeout=60, check=True)
    return sorted({".".join(name.split(".")[:2]) for name in json.loads(done.stdout)})


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return "required"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return msgspec.to_builtins(default, enc_hook=str)


def _commands(command: Any, name: str) -> dict[str, Any]:
    children = getattr(command, "commands", None)
    if children is None:
        return {name: {_written(each): _parameter(each) for each in command.params}}
    found: dict[str, Any] = {}
    for child, each in children.items():
        found |= _commands(each, f"{name} {child}")
    return found


def _written(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    return str(parameter.name).upper() if is_argument else ", ".join([*parameter.opts, *parameter.secondary_opts])


def _parameter(parameter: Any) -> dict[str, Any]:
    default = parameter.default
    return {
        "default": default if isinstance(default, bool | int | float | list) or default is None else str(default),
        "required": parameter.required,
        "count": parameter.nargs,
        "several": bool(getattr(parameter, "multiple", False)),
        "variable": parameter.envvar,
    }


class _Seen(Exception):
    """Stops a program where it would read its arguments."""


def _broker_options() -> dict[str, Any]:
    parsers: list[argparse.ArgumentParser] = []

    def see(parser: argparse.ArgumentParser, *_: Any) -> None:
        parsers.append(parser)
        raise _Seen

    with mock.patch.object(argparse.ArgumentParser, "parse_args", see), contextlib.suppress(_Seen):
        runpy.run_module("terrazzo_broker", run_name="__main__")
    return {", ".join(each.option_strings) or each.dest: _option(each) for each in parsers[0]._actions}


def _option(action: argparse.Action) -> dict[str, Any]:
    choices = None if action.choices is None else sorted(map(str, action.choices))
    default = (
        action.default if action.default is None or isinstance(action.default, bool | int) else str(action.default)
    )
    return {"default": default, "required": action.required, "count": action.nargs, "choices": choices}
