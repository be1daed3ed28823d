"""The mosaic component's paths: the same operations, with records as ``{time, value}`` and values as text."""

from __future__ import annotations

import msgspec

from terrazzo.api.kernel.long_answers.lists import made
from terrazzo.api.kernel.paging import Paged
from terrazzo.api.operations.history import mosaic
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
    return made(result.data, sample)


def _list(result: MosaicList) -> MosaicSamples:
    return MosaicSamples(made(result.data, sample))


def _page(result: Paged[MosaicRecord]) -> Paged[MosaicSample]:
    samples = made(result.data, sample)
    return Paged(samples, result.page_index, result.page_size, result.total_pages, result.total_records)


PATHS = (
    mosaic.GET_LAST_MOSAIC.at("GET", "/mosaic/api/v1/mosaic/getLastItem", list[MosaicSample], _items),
    mosaic.GET_MOSAIC_ITEM.at("GET", "/mosaic/api/v1/mosaic/getItemByTime", list[MosaicSample], _items),
    mosaic.GET_LAST_MOSAIC_LIST.at("GET", "/mosaic/api/v1/mosaic/getLastListByItem", MosaicSamples, _list),
    mosaic.GET_MOSAIC_LIST.at("GET", "/mosaic/api/v1/mosaic/getListByDuration", Paged[MosaicSample], _page),
    mosaic.GET_MOSAIC_LIST_BY_KEY.at("POST", "/mosaic/api/v1/mosaic/getListByKey", Paged[MosaicSample], _page),
)
