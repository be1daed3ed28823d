"""``terrazzo mcp``: answers of the platform for assistants that speak the Model Context Protocol."""

from terrazzo.cli.assistants.command import register

__all__ = ["register"]
