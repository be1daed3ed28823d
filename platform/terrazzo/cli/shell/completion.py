"""Scripts for bash, zsh and fish, by the library that reads the command line; they ask ``terrazzo`` for each word."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]  # has no __all__

from terrazzo.cli.options import COMPLETION_VARIABLE

PROGRAM = "terrazzo"


class Shell(StrEnum):
    """Shells that complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo completion``, and has the program answer the shells that ask it for a word."""
    if COMPLETION_VARIABLE in os.environ:
        completion_init()
    app.command("completion")(completion)


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a script that has a shell complete commands and options: eval "$(terrazzo completion bash)"."""
    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION_VARIABLE, shell=shell.value)  # nosec B604
    print(script)
