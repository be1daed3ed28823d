"""The mosaic component's paths: the same operations, with records as ``{time, value}`` and values as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from terrazzo.api.kernel.paging import Paged
from terrazzo.api.operations.history.mosaic import MosaicData, MosaicList, MosaicRecord
from terrazzo.mosaic.body import text_of


class MosaicSample(msgspec.Struct):
    """One record; null where it lacks the variable."""

    time: str
    value: dict[str, str | None]


class MosaicSamples(msgspec.Struct):
    """The newest first."""

    data: list[MosaicSample]


def sample(record: MosaicRecord) -> MosaicSample:
    """A flat record in the component's shape."""
    value = {key: text_of(each) for key, each in record.items() if key != "time"}
    return MosaicSample(str(record["time"]), value)


def _items(result: MosaicData) -> list[MosaicSample]:
    return [sample(record) for record in result.data]


def _list(result: MosaicList) -> MosaicSamples:
    return MosaicSamples([sample(record) for record in result.data])


def _page(result: Paged[MosaicRecord]) -> Paged[MosaicSample]:
    samples = [sample(record) for record in result.data]
    return Paged(samples, result.page_index, result.page_size, result.total_pages, result.total_records)


MosaicShape = tuple[str, str, str, Any, Callable[[Any], Any]]
"""Method, path, action, type of the result, and what makes it of the action's result."""

MOSAIC_SHAPES: tuple[MosaicShape, ...] = (
    ("GET", "getLastItem", "get_last_mosaic", list[MosaicSample], _items),
    ("GET", "getItemByTime", "get_mosaic_item", list[MosaicSample], _items),
    ("GET", "getLastListByItem", "get_last_mosaic_list", MosaicSamples, _list),
    ("GET", "getListByDuration", "get_mosaic_list", Paged[MosaicSample], _page),
    ("POST", "getListByKey", "get_mosaic_list_by_key", Paged[MosaicSample], _page),
)
