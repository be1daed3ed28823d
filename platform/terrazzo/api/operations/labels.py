"""Labels: what retainers keep open while a variable has a value."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import Filter, ListRequest, conditions_of
from terrazzo.api.kernel.day_counts import ByDay, DayFilter, Quantity, by_day, days_asked
from terrazzo.api.kernel.fields import Key, PageSize
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.events import ById, HappeningList, conditions_in_time, record_id
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.event_records import LabelRecord, label_record
from terrazzo.errors import NotFound
from terrazzo.times import now_us


class OpenLabelList(ListRequest):
    """The documents show no fields: without any, as many as a page holds."""

    page_size: PageSize = 1000


class CloseLabel(msgspec.Struct, kw_only=True):
    """The object, the code in the retainer script, and the script: together they name one label."""

    object_id: Key
    code: Annotated[str, Meta(min_length=1, max_length=64)]
    template_id: Key


async def handle_get_retainer_label_list(
    services: Services, actor: Actor, request: HappeningList
) -> Paged[LabelRecord]:
    """A page of labels, those that opened last first unless ordered otherwise."""
    rows = await services.labels.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=await conditions_in_time(services, actor, request, moment="opened_at"),
        order_by=request.order_by.by,
    )
    return paged(request, [_present(services, row) for row in rows.rows], rows.total)


async def handle_get_retainer_label_item(services: Services, actor: Actor, request: ById) -> LabelRecord:
    """One label of the actor's company."""
    return _present(services, await services.labels.item(actor, record_id(request.id)))


async def handle_get_open_retainer_list(services: Services, actor: Actor, request: OpenLabelList) -> Paged[LabelRecord]:
    """A page of the labels that are open, as many as a page holds unless asked otherwise."""
    conditions = conditions_of(request)
    rows = await services.labels.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=conditions._replace(all_of=[*conditions.all_of, ("close_at", "=", None)]),
        order_by=request.order_by.by,
    )
    return paged(request, [_present(services, row) for row in rows.rows], rows.total)


async def handle_close_retainer(services: Services, actor: Actor, request: CloseLabel) -> LabelRecord:
    """Closes an open label by hand.

    Raises:
        NotFound: no such object or script, or no label of this code is open.
    """
    object_id = await find_object(services, actor, request.object_id)
    try:
        script = await services.entities.retainers.item(actor, request.template_id)
    except NotFound:
        raise NotFound("template_id", request.template_id) from None
    return _present(services, await services.labels.close(actor, object_id, script, request.code))


async def handle_get_retainer_quantity(services: Services, actor: Actor, request: Filter) -> Quantity:
    """How many labels meet the conditions, open and closed."""
    return Quantity(await services.labels.count(actor, conditions_of(request)))


async def handle_get_retainer_quantity_by_day(services: Services, actor: Actor, request: DayFilter) -> ByDay[int]:
    """How many labels that meet the conditions opened on each of the last days."""
    days = days_asked(services, request)
    return by_day(days, await services.labels.count_by_day(actor, days, conditions_of(request)))


def _present(services: Services, row: Row) -> LabelRecord:
    return label_record(row, services.zone, now_us=now_us())


CLOSE_RETAINER = Operation(
    name="close_retainer",
    summary="Closes an open label by hand; it opens again when its variable has left the open value and comes back",
    request=CloseLabel,
    result=LabelRecord,
    permission=Role.OPERATOR,
    handler=handle_close_retainer,
    aliases=("close",),
)

GET_RETAINER_LABEL_LIST = Operation(
    name="get_retainer_label_list",
    summary="A page of labels, the ones that opened last first",
    request=HappeningList,
    result=Paged[LabelRecord],
    permission=Role.VIEWER,
    handler=handle_get_retainer_label_list,
)
GET_RETAINER_LABEL_ITEM = Operation(
    name="get_retainer_label_item",
    summary="One label",
    request=ById,
    result=LabelRecord,
    permission=Role.VIEWER,
    handler=handle_get_retainer_label_item,
)
GET_OPEN_RETAINER_LIST = Operation(
    name="get_open_retainer_list",
    summary="The labels that are open, the ones that opened last first",
    request=OpenLabelList,
    result=Paged[LabelRecord],
    permission=Role.VIEWER,
    handler=handle_get_open_retainer_list,
)
GET_RETAINER_QUANTITY = Operation(
    name="get_retainer_quantity",
    summary="How many labels there are, open and closed",
    request=Filter,
    result=Quantity,
    permission=Role.VIEWER,
    handler=handle_get_retainer_quantity,
)
GET_RETAINER_QUANTITY_BY_DAY = Operation(
    name="get_retainer_quantity_by_day",
    summary="How many labels opened each day",
    request=DayFilter,
    result=ByDay[int],
    permission=Role.VIEWER,
    handler=handle_get_retainer_quantity_by_day,
)

OPERATIONS = (
    GET_RETAINER_LABEL_LIST,
    GET_RETAINER_LABEL_ITEM,
    GET_OPEN_RETAINER_LIST,
    CLOSE_RETAINER,
    GET_RETAINER_QUANTITY,
    GET_RETAINER_QUANTITY_BY_DAY,
)
