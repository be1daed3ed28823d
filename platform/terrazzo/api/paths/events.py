"""The paths of events, retainer labels and their counts: the same operations, with records as section 2 has them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from terrazzo.api.kernel.paging import Paged
from terrazzo.api.operations import events, labels
from terrazzo.domain.event_records import EventRecord, LabelRecord
from terrazzo.domain.record import record_of

T = TypeVar("T")


class EventItem(msgspec.Struct):
    """Section 2 "Event record"."""

    id: int
    object_id: int
    terminal_id: str
    code: str
    label_en: str
    label_cn: str
    value: str
    extension_key: str
    extension_value: str
    reference: str
    created: str
    is_available: int
    severity: str
    state: str


class LabelItem(msgspec.Struct):
    """Section 2 "Retainer-label record"; ``close_at`` is empty while the label is open."""

    id: int
    object_id: int
    terminal_id: str
    project_id: int
    class_id: str
    code: str
    label_en: str
    label_cn: str
    retained: str
    opened_at: str
    close_at: str
    elapsed: str
    reference: str
    created: str
    is_available: int


def event_item(record: EventRecord) -> EventItem:
    """An event as section 2 has it: ``object_id`` is a number."""
    return record_of(EventItem, msgspec.structs.asdict(record), {"object_id": int(record.object_id)})


def label_item(record: LabelRecord) -> LabelItem:
    """A label as section 2 has it: ``object_id`` is a number."""
    return record_of(LabelItem, msgspec.structs.asdict(record), {"object_id": int(record.object_id)})


def _events(page: Paged[EventRecord]) -> Paged[EventItem]:
    return _page(page, [event_item(record) for record in page.data])


def _labels(page: Paged[LabelRecord]) -> Paged[LabelItem]:
    return _page(page, [label_item(record) for record in page.data])


def _page(page: Paged[Any], data: list[T]) -> Paged[T]:
    return Paged(data, page.page_index, page.page_size, page.total_pages, page.total_records)


PATHS = (
    events.GET_EVENT_ITEM.at("GET", "/service/api/v1/event/getItem", EventItem, event_item),
    events.GET_EVENT_LIST.at("GET", "/service/api/v1/event/getList", Paged[EventItem], _events),
    labels.GET_RETAINER_LABEL_ITEM.at("GET", "/service/api/v1/retainer/getItem", LabelItem, label_item),
    labels.GET_RETAINER_LABEL_LIST.at("GET", "/service/api/v1/retainer/getList", Paged[LabelItem], _labels),
    events.GET_EVENT_QUANTITY.at("GET", "/service/api/v1/statistics/eventQuantity"),
    labels.GET_RETAINER_QUANTITY.at("GET", "/service/api/v1/statistics/retainerQuantity"),
    events.GET_EVENT_QUANTITY_BY_DAY.at("GET", "/service/api/v1/statistics/eventQuantityByDay"),
    labels.GET_RETAINER_QUANTITY_BY_DAY.at("GET", "/service/api/v1/statistics/retainerQuantityByDay"),
)
