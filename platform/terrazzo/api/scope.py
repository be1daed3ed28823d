"""Which terminals an actor can see: another company's don't exist for it."""

from __future__ import annotations

from terrazzo.access.actor import Actor
from terrazzo.api.services import Services
from terrazzo.errors import NotFound
from terrazzo.terminals.terminal import Terminal


def sees(actor: Actor, terminal: Terminal) -> bool:
    """Whether the terminal belongs to the actor's company."""
    return actor.is_super or terminal.company_id == actor.company_id


async def find_terminal(services: Services, actor: Actor, key: str | int) -> str:
    """The uid of the terminal with this uid or id; uids are answered from memory.

    Raises:
        NotFound: there is none, or it is another company's.
    """
    terminal = services.registry.terminal(key) if isinstance(key, str) else None
    if terminal is not None and sees(actor, terminal):
        return terminal.uid
    try:
        row = await services.entities.terminals.item(actor, key)
    except NotFound:
        raise NotFound("terminal_id", key) from None
    return str(row["uid"])
