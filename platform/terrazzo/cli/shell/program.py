"""The commands of ``terrazzo``. A new one is a module above this with ``register(app)``, named in ``MODULES``."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from terrazzo.cli.options import COMPLETION_VARIABLE
from terrazzo.config.sections import ConfigError
from terrazzo.errors import OperationError
from terrazzo_broker.log_text import visible

MODULES = (
    "serve",
    "programs",
    "user",
    "terminal",
    "keys",
    "import_",
    "export",
    "replay",
    "backup",
    "migration",
    "doctor",
    "cluster",
    "support",
    "assistants",
    "shell",
)
"""In the order of ``terrazzo --help``. The modules import heavy packages inside their functions only."""

_PACKAGE = "terrazzo.cli"


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The application with all commands; with ``serve`` alone where that is the one of the command line's arguments."""
    app = typer.Typer(
        name="terrazzo",
        help="An MQTT-centric device platform: acknowledged means stored.",
        epilog="Begin with: terrazzo serve --demo. Where something doesn't work: terrazzo doctor.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_describe)
    for name in ("serve",) if arguments[:1] == ["serve"] else MODULES:
        importlib.import_module(f"{_PACKAGE}.{name}").register(app)
    return app


def run(app: typer.Typer) -> None:
    """Runs the command line; expected failures print a line each and exit with 2."""
    try:
        app(complete_var=COMPLETION_VARIABLE)
    except (ConfigError, OperationError) as error:
        for handler in logging.getLogger().handlers:
            handler.flush()  # a thread writes the log: what fails is said after it, and each line in one piece
        for line in getattr(error, "lines", [str(error)]):
            sys.stderr.write(f"terrazzo: {visible(line)}\n")
        raise SystemExit(2) from None


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from terrazzo.runtime.build_info import build_info

        print(build_info())
        raise typer.Exit


def _describe(
    version: Annotated[  # shown and done with
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """An MQTT-centric device platform: acknowledged means stored."""
