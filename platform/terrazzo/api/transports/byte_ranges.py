"""Which bytes of a file a request asks for (RFC 9110, 13 and 14). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_RANGE = re.compile(r"\s*bytes\s*=\s*(?:(\d{1,19})\s*)?-\s*(?:(\d{1,19})\s*)?", re.IGNORECASE | re.ASCII)


class ByteRange(NamedTuple):
    """Bytes from ``start`` until before ``end``; ``status`` as HTTP has it."""

    status: int
    start: int
    end: int


def choose_range(headers: Mapping[str, str], *, size: int, etag: str, method: str = "GET") -> ByteRange:
    """What to send: 200 all, 206 a part, 304 and 416 nothing.

    A condition on the range (``If-Range``) holds for this ETag only: there are no dates to compare [RFC 9110, 13.1.5].
    Several ranges at once, and what is no range of bytes, are answered with all [14.2].
    """
    if _names(headers.get("If-None-Match", ""), etag):
        return ByteRange(304, 0, 0)
    condition = headers.get("If-Range")
    wanted = _RANGE.fullmatch(headers.get("Range", ""))
    if method != "GET" or wanted is None or not (wanted[1] or wanted[2]) or condition not in (None, f'"{etag}"'):
        return ByteRange(200, 0, size)
    if not wanted[1]:
        start, end = max(0, size - int(wanted[2])), size
    else:
        start, end = int(wanted[1]), min(size, int(wanted[2]) + 1) if wanted[2] else size
    if wanted[1] and wanted[2] and int(wanted[2]) < int(wanted[1]):
        return ByteRange(200, 0, size)  # malformed [14.1.1]
    return ByteRange(206, start, end) if start < end else ByteRange(416, 0, 0)


def _names(text: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in text.split(",")]
    return "*" in tags or f'"{etag}"' in tags
