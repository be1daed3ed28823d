"""The counters of live frames for ``/metrics``."""

from __future__ import annotations

import msgspec


class LiveStats(msgspec.Struct):
    """Counters; those in ``GAUGES`` are present numbers."""

    subscriptions: int = 0  # now
    feeds: int = 0  # now; equal subscriptions share one
    bytes_kept: int = 0  # now, roughly, for subscribers who are behind or come back
    frames_published: int = 0  # publications that somebody had subscribed to
    frames_sent: int = 0
    send_seconds: float = 0.0  # of the processor, spent on sending them
    frames_dropped: int = 0  # overwritten before a slow subscriber had read them
    gaps: int = 0  # times that a subscriber was told that frames are missing
    ended: int = 0  # subscriptions whose user lost the right to them
    refused: int = 0  # subscriptions over limits.ws_subscriptions
