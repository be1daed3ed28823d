"""Which addresses messages may be sent to: public ones, and those that the configuration allows.

A name is resolved here and the connection goes to the address that was checked, so that a DNS answer that changes
between the check and the connection has no effect.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from terrazzo.ports.providers import NOT_AN_IP_ADDRESS, NOT_PUBLIC
from terrazzo_adapters.messenger.special_networks import embedded_ipv4, is_public

IPAddress = IPv4Address | IPv6Address
SocketAddress = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]
"""What a socket is made for: family, type, protocol, canonical name, address."""


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
            AddressRefused: private, loopback, link-local, multicast or otherwise not public, or with a zone.
        """
        text, _, zone = host.partition("%")
        try:
            address = ip_address(text)
        except ValueError:
            return
        if not self._may(address, is_scoped=bool(zone)):
            raise AddressRefused(NOT_PUBLIC.format(host=host))

    def new_socket(self, target: SocketAddress) -> socket.socket:
        """The socket of a connection, for aiohttp's connector: the last place that sees where it really goes.

        Raises:
            AddressRefused: the address may not be called, or it is none but a name that the system would resolve.
        """
        family, kind, protocol, _, address = target
        host = str(address[0])
        try:
            ip_address(host.partition("%")[0])
        except ValueError:
            raise AddressRefused(NOT_AN_IP_ADDRESS.format(host=host[:100])) from None
        self.check(host)
        return socket.socket(family, kind, protocol)

    def _may(self, address: IPAddress, *, is_scoped: bool) -> bool:
        if self._is_allowed(address) or is_scoped:  # a zone is one of this machine's links, not the Internet
            return self._is_allowed(address)
        inner = embedded_ipv4(address) if isinstance(address, IPv6Address) else ()
        if inner and all(self._is_allowed(each) or is_public(each) for each in inner):
            return True
        return is_public(address)

    def _is_allowed(self, address: IPAddress) -> bool:
        return any(address in network for network in self._allowed if network.version == address.version)


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
