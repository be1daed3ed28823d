"""The networks that are not the public Internet, written out from the IANA registries of special-purpose addresses.

A table of our own: ``ipaddress.is_global`` answers differently from one version of Python to the next. Entries that the
registries call globally reachable but that serve the network itself (AS112, AMT, relays) are in it too: nobody has a
web server there. Of IPv6 only 2000::/3 is given out for the Internet; all else is refused without being named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

SPECIAL_IPV4 = tuple(
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",  # this network [RFC 791]
        "10.0.0.0/8",  # private use [RFC 1918]
        "100.64.0.0/10",  # shared address space of providers' NAT [RFC 6598]
        "127.0.0.0/8",  # loopback [RFC 1122]
        "169.254.0.0/16",  # link local, and the metadata service of clouds [RFC 3927]
        "172.16.0.0/12",  # private use [RFC 1918]
        "192.0.0.0/24",  # protocol assignments: DS-Lite, dummy, PCP and TURN anycast, NAT64 discovery [RFC 6890]
        "192.0.2.0/24",  # documentation [RFC 5737]
        "192.31.196.0/24",  # AS112 [RFC 7535]
        "192.52.193.0/24",  # AMT [RFC 7450]
        "192.88.99.0/24",  # 6to4 relays, deprecated [RFC 7526]
        "192.168.0.0/16",  # private use [RFC 1918]
        "192.175.48.0/24",  # AS112 [RFC 7534]
        "198.18.0.0/15",  # benchmarks [RFC 2544]
        "198.51.100.0/24",  # documentation [RFC 5737]
        "203.0.113.0/24",  # documentation [RFC 5737]
        "224.0.0.0/4",  # multicast [RFC 5771]
        "240.0.0.0/4",  # reserved [RFC 1112], with the limited broadcast [RFC 919]
    )
)

GLOBAL_UNICAST = IPv6Network("2000::/3")  # RFC 4291, 2.4; the only part that IANA gives out

SPECIAL_IPV6 = tuple(
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, AMT, AS112, ORCHID, DRIP [RFC 2928]
        "2001:db8::/32",  # documentation [RFC 3849]
        "2620:4f:8000::/48",  # AS112 [RFC 7534]
        "3ffe::/16",  # 6bone, given back [RFC 3701]
        "3fff::/20",  # documentation [RFC 9637]
    )
)
"""What is special within 2000::/3. Outside it are, among others, ``::1``, ``64:ff9b:1::/48`` [RFC 8215],
``100::/64`` [RFC 6666], ``5f00::/16`` [RFC 9602], ``fc00::/7`` [RFC 4193], ``fe80::/10``, ``fec0::/10`` [RFC 3879] and
``ff00::/8``."""


def _last(address: int) -> tuple[int, ...]:
    return (address & 0xFFFFFFFF,)


def _of_6to4(address: int) -> tuple[int, ...]:
    return ((address >> 80) & 0xFFFFFFFF,)


def _of_teredo(address: int) -> tuple[int, ...]:
    """The server, and the client, whose bits are inverted [RFC 4380, 4]."""
    return (address >> 64) & 0xFFFFFFFF, ~address & 0xFFFFFFFF


_EMBEDDING: Mapping[IPv6Network, Callable[[int], tuple[int, ...]]] = {
    IPv6Network("::ffff:0:0/96"): _last,  # IPv4-mapped [RFC 4291, 2.5.5.2]
    IPv6Network("::ffff:0:0:0/96"): _last,  # IPv4-translated [RFC 2765, 2.1]
    IPv6Network("64:ff9b::/96"): _last,  # NAT64 [RFC 6052]
    IPv6Network("2002::/16"): _of_6to4,  # [RFC 3056]
    IPv6Network("2001::/32"): _of_teredo,  # [RFC 4380]
    IPv6Network("::/96"): _last,  # IPv4-compatible, deprecated [RFC 4291, 2.5.5.1]
}


def embedded_ipv4(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that packets to an IPv6 address end up at; none where it has none inside."""
    for network, inner_of in _EMBEDDING.items():
        if address in network and int(address) > 1:  # :: and ::1 are no IPv4 addresses
            return tuple(IPv4Address(inner) for inner in inner_of(int(address)))
    return ()


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of a host of the Internet; an IPv6 one with IPv4 inside is what that one is."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in SPECIAL_IPV4)
    inner = embedded_ipv4(address)
    if inner:
        return all(is_public(each) for each in inner)
    return address in GLOBAL_UNICAST and not any(address in network for network in SPECIAL_IPV6)
