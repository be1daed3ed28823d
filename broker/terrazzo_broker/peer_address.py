"""Whose connection it is: the address that limits count by, and the client that a trusted proxy speaks for."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache

_CACHED = 4096  # addresses; who comes from more of them costs a microsecond each
_IPV6_SITE = 64  # bits: whoever has one address of IPv6 has all addresses of its /64
_LONGEST_CHAIN = 16  # proxies that are believed one after the other

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(_CACHED)
def share_of(address: str) -> str:
    """The address that shares and failures are counted by: an IPv6 address stands for its /64, IPv4 for itself.

    IPv4 in IPv6 (``::ffff:192.0.2.1``) is the IPv4 address. What is no address (a Unix socket has none) stays as it is.
    """
    parsed = _parse(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return address if parsed is None else str(parsed)
    return str(ipaddress.IPv6Network((parsed, _IPV6_SITE), strict=False))


class TrustedProxies:
    """The proxies whose word on the client's address counts.

    Args:
        networks: addresses and networks, ``10.0.0.1`` or ``10.0.0.0/8``.

    Raises:
        ValueError: one of them is neither; named.
    """

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = tuple(_network(each) for each in networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: str) -> bool:
        parsed = _parse(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def client_of(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """The client of a request that came from ``peer``.

        ``forwarded_for``: the values of its ``X-Forwarded-For`` fields in their order, each a list with commas. Read
        from the right, as each proxy adds the address that it was asked from: the first one that is no trusted proxy is
        the client. What isn't an address ends the chain: whoever wrote it is the client. A peer that is no trusted
        proxy is the client, whatever it sent.
        """
        client = peer
        hops = [hop.strip() for value in forwarded_for for hop in value.split(",")]
        for hop in reversed(hops[-_LONGEST_CHAIN:]):
            if client not in self:
                return client
            named = _parse(_without_port(hop))
            if named is None:
                return client
            client = str(named)
        return client


def _without_port(hop: str) -> str:
    """``[2001:db8::1]:443`` and ``192.0.2.1:443`` are written by some proxies."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _parse(address: str) -> IpAddress | None:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped


def _network(text: str) -> IpNetwork:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no address and no network: {error}") from error
