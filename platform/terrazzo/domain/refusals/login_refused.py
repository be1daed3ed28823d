"""``LoginRefused``: one refused login of a terminal, as those who listen for it are told."""

from __future__ import annotations

from typing import NamedTuple

from terrazzo.domain.refusals.reasons import Reason
from terrazzo.domain.terminal import Terminal


class LoginRefused(NamedTuple):
    """A CONNECT, or a re-authentication, that was refused.

    Attributes:
        client_id: as it was given, of any length and with any characters.
        username: as it was given; empty where none was.
        address: the peer's; behind a trusted proxy the client's.
        terminal: whose client id it is; None: no terminal of that uid is registered.
        is_proven: the password or signature was right.
        is_known: the terminal has logged in from there before.
        detail: what the reason's text doesn't say; may quote what the peer sent.
        company_id: whose claim key let the peer get so far; 0: it has shown none.
    """

    reason: Reason
    client_id: str
    username: str
    address: str
    listener: str
    protocol: int
    terminal: Terminal | None
    is_proven: bool = False
    is_known: bool = False
    detail: str = ""
    company_id: int = 0
