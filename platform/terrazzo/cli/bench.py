"""``terrazzo bench``: the benchmarks, in a process of their own."""

from __future__ import annotations

import os
import sys

import typer


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo bench``, which passes all its options on."""
    handed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(context_settings=handed_on, add_help_option=False)(bench)


def bench(context: typer.Context) -> None:
    """Measure Terrazzo on this machine, beside peers that are installed; its --help lists the options."""
    command = [sys.executable, "-m", "terrazzo_bench", *context.args]
    os.execv(sys.executable, command)  # our own program, without a shell  # nosec B606
