"""Answers in columns, where a request's ``Accept`` asks for them and the result has them; all else is JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from terrazzo.api.kernel.envelope import Answer, GatewayReply
from terrazzo.mosaic.column_files import COLUMN_MEDIA_TYPES, has_arrow

ColumnForm = Literal["plain", "arrow"]
"""``plain``: arrays of float64 one after the other; ``arrow``: Arrow IPC, the streaming format."""

PLAIN_MEDIA_TYPE = "application/vnd.terrazzo.columns"
_FORMS: Mapping[str, ColumnForm] = {PLAIN_MEDIA_TYPE: "plain", COLUMN_MEDIA_TYPES["arrow"]: "arrow"}


def column_form_of(accept: str) -> ColumnForm | None:
    """The form that a header ``Accept`` names first; None: none."""
    for each in accept.split(","):
        form = _FORMS.get(each.partition(";")[0].strip().lower())
        if form is not None:
            return form
    return None


@runtime_checkable
class HasPlainColumns(Protocol):
    """A result that can be told in plain columns."""

    def plain_columns(self) -> bytes:
        """Its bytes."""


@runtime_checkable
class HasRecords(Protocol):
    """A result with records in ``data``."""

    @property
    def data(self) -> Any: ...


class Columns(NamedTuple):
    """A result that becomes columns; ``encode`` may take a while."""

    encode: Callable[[], bytes]
    media_type: str

    def answer(self) -> Answer:
        """The answer with its bytes."""
        return Answer(self.encode(), media_type=self.media_type)


class ColumnReply(GatewayReply, frozen=True, kw_only=True):
    """As ``GatewayReply``, but for results that have the form that is asked for.

    ``is_series``: the result's records are flat and have a ``time``.
    """

    form: ColumnForm
    is_series: bool = False

    def present(self, result: Any) -> Any:
        """As it is, or as ``Columns``."""
        if self.form == "plain" and isinstance(result, HasPlainColumns):
            return Columns(result.plain_columns, PLAIN_MEDIA_TYPE)
        if self.form == "arrow" and self.is_series and isinstance(result, HasRecords) and has_arrow():
            return Columns(lambda: _as_arrow(result), COLUMN_MEDIA_TYPES["arrow"])
        return result


def _as_arrow(result: HasRecords) -> bytes:
    from terrazzo.mosaic.record_table import encode_records  # its library is heavy

    more = {name: str(value) for name, value in _fields(result).items() if isinstance(value, int)}
    return encode_records(list(result.data), more)


def _fields(result: HasRecords) -> dict[str, Any]:
    """What a result says beside its records: which page it is."""
    names = getattr(result, "__struct_fields__", ())
    return {name: getattr(result, name) for name in names if name != "data"}
