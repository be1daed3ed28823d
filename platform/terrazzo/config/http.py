"""What a host in the configuration means."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach a listener on this host: a loopback address, or ``localhost``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
