"""Time series as DataFrames, where pandas and pyarrow are installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame


def frame_of(pieces: Iterable[bytes]) -> DataFrame:
    """The DataFrame of an export in Arrow's streaming format; its index is the time.

    Raises:
        ImportError: pandas or pyarrow is not installed.
    """
    import pandas  # noqa: F401 - pyarrow says less clearly that it is missing
    import pyarrow as pa

    with pa.ipc.open_stream(b"".join(pieces)) as reader:
        return reader.read_pandas().set_index("time")
