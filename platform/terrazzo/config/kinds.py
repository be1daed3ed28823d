"""Kinds of values that keys have, with their ranges."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Port = Annotated[int, Meta(ge=0, le=65_535)]  # 0: any free one
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
CountOrOff = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # 0: off
Days = Annotated[int, Meta(ge=0, le=36_500)]  # 0: for ever
Seconds = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Bytes = Annotated[int, Meta(ge=1_024, le=256 * 2**20)]
Host = Annotated[str, Meta(min_length=1)]
Prefix = Annotated[str, Meta(pattern=r"^(/[A-Za-z0-9._~-]+)+$")]  # of a path: /grid, /v2/grid
