"""A terminal's connection as the broker's hooks carry it along (``Client.identity``)."""

from __future__ import annotations

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.terminals.acl import TerminalAcl


class TerminalLink:
    """The terminal of a connection, as its record was at login, and its permissions.

    ``authority_id``: the record id of who vouched for its certificate; 0 where it needed none.
    """

    __slots__ = ("acl", "authority_id", "terminal")

    def __init__(self, terminal: Terminal, registry: Registry, *, authority_id: int = 0) -> None:
        self.terminal = terminal
        self.authority_id = authority_id
        self.acl = TerminalAcl(terminal, registry)
