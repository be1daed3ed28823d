"""A broker, and clients, for each test that asks for them."""

from __future__ import annotations

from own_broker import dial, running, start

__all__ = ["dial", "running", "start"]
