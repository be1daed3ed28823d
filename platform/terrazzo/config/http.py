"""What hosts, proxies and origins in the configuration mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address

from terrazzo.config.values import ConfigError
from terrazzo_broker.peer_address import TrustedProxies
from terrazzo_broker.web_origin import ANY_ORIGIN

_TILES = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/[A-Za-z0-9._~/{}?=&%-]*", re.ASCII)
_ORIGIN = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", re.ASCII)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach a listener on this host: a loopback address, or ``localhost``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_askers(networks: Sequence[str]) -> None:
    """Refuses addresses of brokers that are none.

    Raises:
        ConfigError: names the key and the value.
    """
    try:
        TrustedProxies(networks)
    except ValueError as error:
        raise ConfigError(f"broker.auth_from: expected addresses and networks such as 10.0.0.0/8: {error}") from None


def check_http(*, trusted_proxies: Sequence[str], allowed_origins: Sequence[str]) -> None:
    """Refuses proxies that are no addresses, and origins that no browser sends.

    Raises:
        ConfigError: names the key and the value.
    """
    try:
        TrustedProxies(trusted_proxies)
    except ValueError as error:
        raise ConfigError(
            f"http.trusted_proxies: expected addresses and networks such as 10.0.0.0/8: {error}"
        ) from None
    for origin in allowed_origins:
        if origin != ANY_ORIGIN and not _ORIGIN.fullmatch(origin):
            expected = f"expected origins such as https://console.example.com, or {ANY_ORIGIN}"
            raise ConfigError(f"http.allowed_origins: {expected}, got {origin!r:.100}")


def check_map_tiles(address: str) -> None:
    """Refuses an address of map tiles that names no tile, or that could say something else in the page's policy.

    Raises:
        ConfigError: names the key and the value.
    """
    places = {part: address.count(part) for part in ("{z}", "{x}", "{y}")}
    if address and (not _TILES.fullmatch(address) or set(places.values()) != {1}):
        expected = "expected an address such as https://tiles.example.com/{z}/{x}/{y}.png"
        raise ConfigError(f"http.map_tiles: {expected}, got {address!r:.200}")
