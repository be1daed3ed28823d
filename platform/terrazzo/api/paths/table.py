"""The component interfaces: paths and query strings in front of the same operations (section 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UnsetType

from terrazzo.api.kernel.component_path import ComponentPath as ComponentPath
from terrazzo.api.kernel.component_path import as_it_is, nothing
from terrazzo.api.kernel.dispatch import Performer
from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.fields import kind
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.paging import Paged
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.operations import files
from terrazzo.api.operations.history.grid import GridData, GridList, GridRecord
from terrazzo.api.operations.pusher import PUBLISH
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths import management, offline, service
from terrazzo.api.paths.events import HAPPENING_SHAPES
from terrazzo.api.paths.messenger import MESSENGER_PATHS
from terrazzo.api.paths.mosaic import MOSAIC_SHAPES
from terrazzo.api.paths.statistics import STATOS
from terrazzo.api.transports.forms import Attachments
from terrazzo.errors import BadParameter
from terrazzo.ports.providers import Attachment

PREFIXES = {
    "grid_base": "/grid",
    "mosaic_base": "/mosaic",
    "service_base": "/service",
    "offline_base": "/offline",
    "object_base": "/object",
    "stats_base": "/stats",
    "pusher_base": "/pusher",
    "messenger_base": "/api/send",
}
"""Where each component stands unless configured otherwise."""


class GridListData(GridData):
    """The newest records first."""


def _records(result: GridData) -> list[GridRecord]:
    return result.data


def _without_items(result: GridList) -> GridListData:
    return GridListData(result.data)


def _grid(suffix: str, action: str, result: Any, shape: Callable[[Any], Any] = as_it_is) -> ComponentPath:
    return ComponentPath(
        base="grid_base", path=f"/api/v1/grid/{suffix}", operation=TABLE[action], result=result, shape=shape
    )


PATHS = (
    _grid("getLastItem", "get_last_grid", list[GridRecord], _records),
    _grid("getItemByTime", "get_grid_item", list[GridRecord], _records),
    _grid("getLastListByItem", "get_last_grid_list", GridListData, _without_items),
    _grid("getListByDuration", "get_grid_list", Paged[GridRecord]),
    *(
        ComponentPath(
            base="mosaic_base",
            path=f"/api/v1/mosaic/{suffix}",
            method=method,
            operation=TABLE[action],
            result=result,
            shape=shape,
        )
        for method, suffix, action, result, shape in MOSAIC_SHAPES
    ),
    *(
        ComponentPath(
            base="service_base", path=f"/api/v1/{suffix}", operation=TABLE[action], result=result, shape=shape
        )
        for suffix, action, result, shape in HAPPENING_SHAPES
    ),
    *service.PATHS,
    *offline.PATHS,
    *management.PATHS,
    ComponentPath(
        base="object_base",
        path="/api/v1/file/discard",
        method="POST",
        operation=files.DISCARD,
        result=UnsetType,
        shape=nothing,
    ),
    *(
        ComponentPath(
            base="stats_base",
            path=f"/api/v1/statos/{suffix}",
            method=method,
            operation=operation,
            result=operation.result,
        )
        for method, suffix, operation in STATOS
    ),
    ComponentPath(
        base="pusher_base",
        path="/api/v1/publish",
        method="POST",
        operation=PUBLISH,
        result=UnsetType,
        shape=nothing,
    ),
    *MESSENGER_PATHS,
)


class Components:
    """Answers requests to component paths."""

    def __init__(self, performer: Performer, validator: Validator) -> None:
        self._performer = performer
        self._validator = validator

    async def answer(
        self,
        path: ComponentPath,
        fields: Sequence[tuple[str, str]],
        caller: Caller,
        *,
        body: bytes = b"",
        files: tuple[Attachment, ...] = (),
    ) -> Answer:
        """Answers one request.

        Args:
            fields: of the query string and of a form, decoded, in order.
            body: a JSON object, whose fields come before those of the query.
            files: of a form.
        """
        values = dict(query_values(fields))
        operation = path.choose({*values, *_names(body)}) if path.instead else path.operation
        given = {"attachments": Attachments(files)} if files else {}
        return await self._performer.perform(
            operation,
            caller,
            lambda: self._validator.from_query(operation, {**values, **_object(body), **given}),
            path.reply(path.shape),
        )


def _names(body: bytes) -> Collection[str]:
    """The fields of a body; of one that can't be read none, which is said later."""
    try:
        return _object(body).keys()
    except BadParameter:
        return ()


def _object(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        found = msgspec.json.decode(body)
    except RecursionError:
        raise BadParameter("body", "nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadParameter("body", f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadParameter("body", f"expected object, got {kind(found)}")
    return found


def query_values(query: Sequence[tuple[str, str]]) -> Mapping[str, str | list[str]]:
    """A name that occurs several times is a list; an empty value is one that was not given."""
    values: dict[str, str | list[str]] = {}
    for name, value in query:
        if not value:
            continue
        before = values.get(name)
        if before is None:
            values[name] = value
        else:
            values[name] = [*before, value] if isinstance(before, list) else [before, value]
    return values
