"""Which terminals an actor can see: another company's don't exist for it."""

from __future__ import annotations

from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import NotFound
from terrazzo.metadata.lookup import as_id


def sees(actor: Actor, terminal: Terminal) -> bool:
    """Whether the terminal belongs to the actor's company."""
    return actor.is_super or terminal.company_id == actor.company_id


async def find_terminal(services: Services, actor: Actor, key: str | int) -> str:
    """The uid of the terminal with this uid or id, from memory; the database is asked where that knows none.

    Raises:
        NotFound: there is none, or it is another company's.
    """
    by_uid = services.registry.terminal(key) if isinstance(key, str) else None
    if by_uid is not None and sees(actor, by_uid):
        return by_uid.uid
    number = as_id(key)  # text that reads as a number is a uid first, then an id
    by_id = None if number is None else services.registry.terminal_by_id(number)
    if by_id is not None and sees(actor, by_id):
        return by_id.uid
    try:
        row = await services.entities.terminals.item(actor, key)
    except NotFound:
        raise NotFound("terminal_id", key) from None
    return str(row["uid"])


async def find_series_name(services: Services, actor: Actor, key: str | int) -> str:
    """The name of the series of the terminal with this uid or id, or of the former terminal with this id.

    Raises:
        NotFound: there is and was none, or it is another company's.
    """
    try:
        return services.registry.series_name(await find_terminal(services, actor, key))
    except NotFound:
        number = as_id(key)
        former = None if number is None else await services.former_terminals.find(actor, number)
        if former is None:
            raise
        return former.series


async def find_object(services: Services, actor: Actor, key: str | int) -> int:
    """The id of the object with this id, as a number or as text, from memory where that knows it.

    Raises:
        NotFound: there is none, or it is another company's.
    """
    number = as_id(key)
    company = None if number is None else services.registry.object_company(number)
    if number is not None and company and (actor.is_super or company == actor.company_id):
        return number
    try:
        return int((await services.entities.objects.item(actor, key))["id"])
    except NotFound:
        raise NotFound("object_id", key) from None
