"""``terrazzo simulate``: simulated terminals, in a process of their own."""

from __future__ import annotations

import os
import sys

import typer


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo simulate``, which passes all its options on."""
    handed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(context_settings=handed_on, add_help_option=False)(simulate)


def simulate(context: typer.Context) -> None:
    """Run simulated terminals; its --help lists the options, and docs/simulators.md."""
    command = [sys.executable, "-m", "terrazzo_simulators", "simulate", *context.args]
    os.execv(sys.executable, command)  # our own program, without a shell  # nosec B606
