"""All ports of a gateway, for each test that asks for them."""

from __future__ import annotations

from lasting import ports, rig

__all__ = ["ports", "rig"]
