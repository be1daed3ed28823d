"""A client of the gateway: ``Client`` for synchronous code, ``AsyncClient`` for asyncio; each loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from terrazzo.client.errors import ActionError, ClientError, ConnectionLost, NotSent, UnexpectedAnswer

if TYPE_CHECKING:
    from terrazzo.client.asynchronous import AsyncClient
    from terrazzo.client.live import Frame, Gap
    from terrazzo.client.synchronous import Client

__all__ = [
    "ActionError",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConnectionLost",
    "Frame",
    "Gap",
    "NotSent",
    "UnexpectedAnswer",
]

_HOMES = {"Client": "synchronous", "AsyncClient": "asynchronous", "Frame": "live", "Gap": "live"}


def __getattr__(name: str) -> Any:
    """Imports a class at its first use, so that synchronous code need not wait for aiohttp to load."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
