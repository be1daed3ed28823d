"""The command line ``terrazzo``. A new command is a module here with ``register(app)``, named in ``MODULES``."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Annotated

import typer

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


COMPLETION_VARIABLE = "_TERRAZZO_COMPLETE"
"""By which a shell asks for words, however the program was started."""


def make_app() -> typer.Typer:
    """The application with all commands."""
    app = typer.Typer(
        name="terrazzo",
        help="An MQTT-centric device platform: acknowledged means stored.",
        epilog="Begin with: terrazzo serve --demo. Where something doesn't work: terrazzo doctor.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_describe)
    for name in MODULES:
        importlib.import_module(f"{__name__}.{name}").register(app)
    return app


def main() -> None:
    """Runs the command line; expected failures print a line each and exit with 2."""
    try:
        make_app()(complete_var=COMPLETION_VARIABLE)
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
