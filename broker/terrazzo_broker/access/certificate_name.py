"""The name in a client's certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """The subject's common name of a verified certificate (``SSLSocket.getpeercert``); None where there is none."""
    for attributes in (certificate or {}).get("subject", ()):
        for name, value in attributes:
            if name == "commonName" and value:
                return str(value)
    return None
