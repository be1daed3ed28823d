"""The command line ``terrazzo``. A new command is a module here with ``register(app)``, named in ``MODULES``."""

from __future__ import annotations

import importlib
import sys

import typer

from terrazzo.config.sections import ConfigError
from terrazzo.errors import OperationError
from terrazzo_broker.log_text import visible

MODULES = ("serve", "simulate", "user", "terminal", "keys", "import_", "export", "replay", "doctor")
"""In the order of ``terrazzo --help``. The modules import heavy packages inside their functions only."""


def make_app() -> typer.Typer:
    """The application with all commands."""
    app = typer.Typer(
        name="terrazzo",
        help="An MQTT-centric device platform: acknowledged means stored.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_describe)
    for name in MODULES:
        importlib.import_module(f"{__name__}.{name}").register(app)
    return app


def main() -> None:
    """Runs the command line; expected failures print one line and exit with 2."""
    try:
        make_app()()
    except (ConfigError, OperationError) as error:
        print(f"terrazzo: {visible(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None


def _describe() -> None:
    """An MQTT-centric device platform: acknowledged means stored."""
