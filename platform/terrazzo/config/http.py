"""Checks of the section ``[http]`` that its types can't express."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Protocol

from terrazzo.config.values import ConfigError
from terrazzo_broker.peer_address import TrustedProxies

_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach a listener on this host: a loopback address, or ``localhost``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class _Http(Protocol):
    @property
    def trusted_proxies(self) -> tuple[str, ...]: ...

    @property
    def allowed_origins(self) -> tuple[str, ...]: ...


def check_http(http: _Http) -> None:
    """Raises:
    ConfigError: an entry that is no network or no origin, named with its place in the list.
    """
    for number, network in enumerate(http.trusted_proxies, 1):
        try:
            TrustedProxies([network])
        except ValueError as error:
            raise ConfigError(f"http.trusted_proxies[{number}]: {error}") from None
    for number, origin in enumerate(http.allowed_origins, 1):
        if not _ORIGIN.fullmatch(origin):
            shape = "an origin such as https://app.example.com, in small letters and without a path"
            raise ConfigError(f"http.allowed_origins[{number}]: expected {shape}, got {origin!r:.100}")
