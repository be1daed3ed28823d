"""``terrazzo cluster``: the nodes around one log."""

from terrazzo.cli.cluster.command import register

__all__ = ["register"]
