"""The configuration's section ``[tracing]``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class TracingSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[tracing]``: spans of messages, commands and requests, sent to a collector by OTLP over HTTP."""

    endpoint: Annotated[str, Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    sample: Annotated[float, Meta(ge=0, le=1)] = 0.01
    service_name: Annotated[str, Meta(min_length=1)] = "terrazzo"
    attributes: dict[str, str] = {}
    headers: dict[str, str] = {}
    queue_spans: Annotated[int, Meta(ge=16, le=1_000_000)] = 4_096
