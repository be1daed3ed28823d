"""The address of whoever asks, behind proxies that are trusted (``http.trusted_proxies``)."""

from __future__ import annotations

from aiohttp import hdrs, web

from terrazzo_broker.peer_address import TrustedProxies

PROXIES = web.AppKey("PROXIES", TrustedProxies)
"""Where an application keeps whose word is taken."""


def forwarded_for(request: web.BaseRequest) -> tuple[str, ...]:
    """The values of all ``X-Forwarded-For`` headers, in their order."""
    return tuple(request.headers.getall(hdrs.X_FORWARDED_FOR, ()))


def client_address(request: web.Request) -> str:
    """The peer's address, or where it is a trusted proxy that of its client; empty where there is none."""
    return request.app[PROXIES].client_of(request.remote or "", forwarded_for(request))
