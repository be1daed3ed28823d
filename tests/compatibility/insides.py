"""The one place of this folder that knows where things stand inside ``terrazzo``: adapt it when they move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from typer.main import get_command

from terrazzo.cli.shell.program import make_app
from terrazzo.config.sections import ARRAYS, SECTIONS, ConfigError, load_config

__all__ = ["ConfigError", "command_line", "read_environment", "repeated_sections", "sections"]


def command_line() -> Any:
    """The program ``terrazzo``, a command of typer."""
    return get_command(make_app())


def sections() -> dict[str, type[msgspec.Struct]]:
    """The sections of a configuration, by name."""
    return SECTIONS


def repeated_sections() -> dict[str, type[msgspec.Struct]]:
    """Those that there may be several of, ``[[bridge]]``."""
    return ARRAYS


def read_environment(environment: Mapping[str, str]) -> Any:
    """The configuration that these variables make; raises where one is not known."""
    return load_config(None, environment)
