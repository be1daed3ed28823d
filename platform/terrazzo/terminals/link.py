"""A terminal's connection as the broker's hooks carry it along (``Client.identity``)."""

from __future__ import annotations

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.terminals.acl import TerminalAcl


class TerminalLink:
    """The terminal of a connection, as its record was at login, and its permissions."""

    __slots__ = ("acl", "terminal")

    def __init__(self, terminal: Terminal, registry: Registry) -> None:
        self.terminal = terminal
        self.acl = TerminalAcl(terminal, registry)
