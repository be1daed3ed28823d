"""``terrazzo completion``: what a shell needs to complete the commands and their options."""

from terrazzo.cli.shell.completion import register

__all__ = ["register"]
