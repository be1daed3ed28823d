"""The command line ``terrazzo``."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Runs the command line; expected failures print a line each and exit with 2."""
    gc.disable()  # what is loaded stays: looking through it time and again takes a fortieth of a start
    from terrazzo.cli.shell.program import make_app, run

    app = make_app(sys.argv[1:])
    gc.enable()
    run(app)
