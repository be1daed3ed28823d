"""Who a caller is, by the token that came with a request or that was checked on its connection."""

from __future__ import annotations

import logging

from terrazzo.access.api_keys import is_api_key
from terrazzo.access.tokens import HeldToken
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import TokenService
from terrazzo.domain.actor import Actor
from terrazzo.errors import NotAuthenticated
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog

_log = SparseLog(logging.getLogger(__name__))


def identify(tokens: TokenService, caller: Caller) -> Actor:
    """Whose the caller's token is.

    Over HTTP it is checked with every request. On a connection that stays it is checked when it is first shown, and
    good as long as the connection is open, unless it is ended (section 1 "Authentication", 5).

    Raises:
        NotAuthenticated: there is none, it isn't good, or it has been ended.
    """
    token = caller.token
    if not token:
        raise NotAuthenticated(say("no_token"))
    try:
        actor = tokens.verify(token) if caller.live is None else _verify_held(tokens, caller, token)
    except NotAuthenticated as error:
        if is_api_key(token):
            _log.warning("an API key from %s was refused: %s", caller.address, error)
        raise
    slot = caller.slot
    if slot is not None and slot.company_id != actor.company_id:
        slot.prove(actor.company_id)
    return actor


def _verify_held(tokens: TokenService, caller: Caller, token: str) -> Actor:
    held = held_by(caller)
    if held is None:
        caller.held = None
        held = caller.held = tokens.hold(token)
    return tokens.verify_held(held)


def held_by(caller: Caller) -> HeldToken | None:
    """The caller's token as its connection holds it; None where it hasn't been checked there."""
    held = caller.held
    return held if held is not None and held.token == caller.token else None
