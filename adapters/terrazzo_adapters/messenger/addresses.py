"""Which addresses messages may be sent to: public ones, and those that the configuration allows.

A name is resolved here and the connection goes to the address that was checked, so that a DNS answer that changes
between the check and the connection has no effect.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp.abc import AbstractResolver, ResolveResult

IPAddress = IPv4Address | IPv6Address

_NAT64 = ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


class AddressRefused(OSError):
    """An address that may not be called; ``str()`` says why."""


class Guard:
    """Checks addresses against the allowed ones.

    Args:
        allowed: networks that are not public and may be called all the same.

    Raises:
        ValueError: not a network.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed: list[IPv4Network | IPv6Network] = [ip_network(each) for each in allowed]

    def check(self, host: str) -> None:
        """Refuses an IP address that may not be called; a host name is checked when it is resolved.

        Raises:
            AddressRefused: private, loopback, link-local, multicast or otherwise not public.
        """
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return
        if not self._may(address):
            raise AddressRefused(f"{host} is not a public address (messenger.allow_private)")

    def _may(self, address: IPAddress) -> bool:
        real = _inner(address)
        if any(real in network for network in self._allowed if network.version == real.version):
            return True
        return real.is_global and not real.is_multicast


class GuardedResolver(AbstractResolver):
    """Resolves names for aiohttp, and refuses a name if any of its addresses may not be called."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host.

        Raises:
            AddressRefused: one of them may not be called.
            OSError: there is none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        results = []
        for found_family, _, proto, _, address in found:
            numeric = str(address[0])
            self._guard.check(numeric)
            results.append(
                ResolveResult(
                    hostname=host,
                    host=numeric,
                    port=port,
                    family=found_family,
                    proto=proto,
                    flags=socket.AI_NUMERICHOST,
                )
            )
        return results

    async def close(self) -> None:
        """Does nothing; aiohttp requires it."""


def _inner(address: IPAddress) -> IPAddress:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, ...), or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address
