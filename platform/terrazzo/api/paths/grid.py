"""The grid component's paths: the grid queries, with their records alone or without what was asked for."""

from __future__ import annotations

from terrazzo.api.kernel.paging import Paged
from terrazzo.api.operations.history import grid
from terrazzo.api.operations.history.grid import GridData, GridList, GridRecord


class GridListData(GridData):
    """The newest records first."""


def _records(result: GridData) -> list[GridRecord]:
    return result.data


def _without_items(result: GridList) -> GridListData:
    return GridListData(result.data)


PATHS = (
    grid.GET_LAST_GRID.at("GET", "/grid/api/v1/grid/getLastItem", list[GridRecord], _records),
    grid.GET_GRID_ITEM.at("GET", "/grid/api/v1/grid/getItemByTime", list[GridRecord], _records),
    grid.GET_LAST_GRID_LIST.at("GET", "/grid/api/v1/grid/getLastListByItem", GridListData, _without_items),
    grid.GET_GRID_LIST.at("GET", "/grid/api/v1/grid/getListByDuration", Paged[GridRecord]),
)
