"""The address that counts: what shares are counted by, and who a trusted proxy says it speaks for."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

_SHARE_BITS = 64  # of an IPv6 address: what one customer has of a provider, and can pick addresses from at will
_MOST_HOPS = 32  # entries of X-Forwarded-For that are looked at, from the right


def share_of(address: str) -> str:
    """What an address counts as: an IPv4 address as itself, also inside an IPv6 one, an IPv6 address as its /64.

    Text that is no address (the peer of a Unix socket) counts as itself.
    """
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    network = int(parsed) >> (128 - _SHARE_BITS) << (128 - _SHARE_BITS)
    return f"{ipaddress.IPv6Address(network)}/{_SHARE_BITS}"


class TrustedProxies:
    """The peers whose word about an address is taken: of the PROXY protocol, and of ``X-Forwarded-For``.

    Args:
        networks: addresses and networks, ``10.1.2.3`` or ``10.0.0.0/8``; without any, nobody is trusted.

    Raises:
        ValueError: one of them is neither, or has bits behind its prefix; it is named.
    """

    __slots__ = ("_networks",)

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks = tuple(ipaddress.ip_network(each) for each in networks)

    def __bool__(self) -> bool:
        """Whether anybody is trusted."""
        return bool(self._networks)

    def __contains__(self, address: str) -> bool:
        """Whether the peer with this address is trusted; an IPv4 address inside an IPv6 one is the IPv4 address."""
        if not self._networks:
            return False
        parsed = _parse(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def client_of(self, peer: str, forwarded_for: Iterable[str]) -> str:
        """The address of the client behind ``peer``.

        Read from the right, where the nearest proxy has written: the first address that is no trusted proxy's. What
        stands left of it, and what is no address, anybody may have written and is not believed.

        Args:
            peer: the address of the connection.
            forwarded_for: the values of all ``X-Forwarded-For`` headers, in their order.
        """
        if peer not in self:
            return peer
        client = peer
        hops = [hop for value in forwarded_for for hop in value.rsplit(",", _MOST_HOPS)]
        for hop in reversed(hops[-_MOST_HOPS:]):
            parsed = _parse(_without_port(hop.strip()))
            if parsed is None:
                break
            client = str(parsed)
            if client not in self:
                break
        return client


EVERYBODY = TrustedProxies(("0.0.0.0/0", "::/0"))


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if parsed.version == 6 else None
    return mapped or parsed


def _without_port(hop: str) -> str:
    """``192.0.2.1:4711`` and ``[2001:db8::1]:4711``, as some proxies write, without the port."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
