"""What stands for a mapping that nobody has written to yet: most connections and sessions have several."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

NOTHING: Any = MappingProxyType({})
"""Read as an empty dict; whoever writes makes one of its own before (``if it is NOTHING``)."""
