"""What the broker retains: topics, sizes, of whom."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, page_offset, paged
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.bus import RetainedTopic
from terrazzo.reasons import told_by
from terrazzo.times import format_spaced

MOST_LOOKED_AT = 100_000
MOST_LISTED = 10_000


class RetainedList(PageRequest):
    """Retained messages whose topics match ``filter``, an MQTT topic filter; all unless given."""

    filter: Annotated[str, Meta(min_length=1, max_length=1024, description="an MQTT topic filter")] = "#"


class RetainedRecord(msgspec.Struct):
    """One retained message, without its payload. ``publisher``: the client id of who published it.

    ``permission_company_id``: whose it is; empty: everybody's.
    """

    topic: str
    bytes: int
    qos: int
    publisher: str
    permission_company_id: str
    expires: str | None


async def handle_get_retained_list(services: Services, actor: Actor, request: RetainedList) -> Paged[RetainedRecord]:
    """The company's retained messages by topic, a super user's of all; the first 10,000 that are found.

    Raises:
        BadParameter: the filter can't be one.
    """
    owner = None if actor.is_super else str(actor.company_id)
    found, pauses, looked = [], LoopPauses(), 0
    try:
        for each in services.broker.retained(owner, request.filter):
            looked += 1
            if each is not None:
                found.append(each)
            if looked >= MOST_LOOKED_AT or len(found) >= MOST_LISTED:
                break
            await pauses.pause()
    except ValueError as error:
        raise BadParameter("filter", told_by(error)) from None
    found.sort(key=lambda each: (each.topic, each.owner))
    start = page_offset(request)
    page = [_shown(services, each) for each in found[start : start + request.page_size]]
    return paged(request, page, len(found))


def _shown(services: Services, kept: RetainedTopic) -> RetainedRecord:
    return RetainedRecord(
        topic=kept.topic,
        bytes=kept.size,
        qos=kept.qos,
        publisher=kept.publisher,
        permission_company_id=kept.owner,
        expires=format_spaced(kept.expires_us, services.zone) if kept.expires_us else None,
    )


OPERATIONS = (
    Operation(
        name="get_retained_list",
        summary="What the broker retains: topics and sizes, without payloads",
        request=RetainedList,
        result=Paged[RetainedRecord],
        permission=Role.VIEWER,
        handler=handle_get_retained_list,
    ),
)
