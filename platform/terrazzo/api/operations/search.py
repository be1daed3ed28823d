"""One search over everything that people have named."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Names
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.metadata.name_search import ASKED, SEARCHED
from terrazzo.reasons import say

_KINDS = ("terminal", *ASKED, *(each.kind for each in SEARCHED))


class Search(msgspec.Struct, kw_only=True):
    """What is looked for in names, uids, serial numbers and codes; ``kinds``: of these alone."""

    text: Annotated[str, Meta(min_length=1, max_length=64, description="any part of a name; case doesn't matter")]
    kinds: Names = msgspec.field(default_factory=Names)
    limit: Annotated[int, Meta(ge=1, le=100, description="records at most")] = 20


class SearchHit(msgspec.Struct):
    """A record: ``uid`` is what its actions take (an event's: its id), ``text`` what else is known of it.

    ``rank``: 0: its name is the text, 1: begins with it, 2: a word of it does, 3: the text is within. ``object_id``:
    whose service or offline record it is, else null; a wall link's ``uid`` is its dashboard's.
    """

    kind: str
    uid: str
    id: int
    name: str
    text: str
    rank: int
    object_id: int | None


async def handle_search(services: Services, actor: Actor, request: Search) -> list[SearchHit]:
    """The best of what the actor may see, of all kinds together.

    Raises:
        BadParameter: a blank text, or an unknown kind.
    """
    text = request.text.strip()
    if not text or "\0" in text:
        raise BadParameter("text", say("is_blank"))
    for kind in request.kinds.names:
        if kind not in _KINDS:
            raise BadParameter("kinds", say("is_none_of", name=kind[:64], expected=", ".join(_KINDS)))
    found = await services.search.find(actor, text, kinds=request.kinds.names, limit=request.limit)
    return [
        SearchHit(
            kind=each.kind,
            uid=each.key,
            id=each.record_id,
            name=each.name,
            text=each.text,
            rank=each.rank,
            object_id=each.object_id,
        )
        for each in found
    ]


OPERATIONS = (
    Operation(
        name="search",
        summary="Finds terminals, objects, events and all else that has a name, the best first",
        request=Search,
        result=list[SearchHit],
        permission=Role.VIEWER,
        handler=handle_search,
    ),
)
