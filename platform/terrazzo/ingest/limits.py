"""``IngestLimits``: how much may wait, and how much one commit takes."""

from __future__ import annotations

import msgspec


class IngestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog at which reading from terminals pauses (it resumes at half), and the most that one commit takes.

    ``group_bytes``: of payloads and of what the mapping makes of them; where the store is slow it is less.
    """

    messages: int = 40_000
    bytes: int = 32 * 1024 * 1024
    group_messages: int = 20_000
    group_bytes: int = 8 * 1024 * 1024
