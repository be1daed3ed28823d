"""What is known of a replay while it runs."""

from __future__ import annotations

import msgspec


class ReplayProgress(msgspec.Struct):
    """``records_total`` and ``records_done``: reports, those read before the range included; ``position_us``: the last
    one's time. The counts before and after are of the range; None: not known yet."""

    records_total: int = 0
    records_done: int = 0
    records_skipped: int = 0
    position_us: int | None = None
    mosaic_before: int | None = None
    mosaic_after: int | None = None
    events_before: int | None = None
    events_after: int | None = None
    labels_before: int | None = None
    labels_after: int | None = None
