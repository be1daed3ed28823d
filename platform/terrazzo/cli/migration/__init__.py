"""``terrazzo migrate``."""

from terrazzo.cli.migration.command import register

__all__ = ["register"]
