"""``terrazzo simulate`` and ``terrazzo bench``: programs of their own, in processes of their own."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer


def register(app: typer.Typer) -> None:
    """Adds both, which pass all their options on."""
    handed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    for program in (simulate, bench):
        app.command(context_settings=handed_on, add_help_option=False)(program)


def simulate(context: typer.Context) -> None:
    """Run simulated terminals; its --help lists the options, and docs/simulators.md."""
    _become("terrazzo_simulators", "simulate", *context.args)


def bench(context: typer.Context) -> None:
    """Measure Terrazzo on this machine, beside peers that are installed; its --help lists the options."""
    _become("terrazzo_bench", *context.args)


def _become(module: str, *arguments: str) -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # our own, without a shell  # nosec B606
