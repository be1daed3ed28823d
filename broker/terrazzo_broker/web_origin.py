"""The origins of web pages [RFC 6454]: whose page a browser's request comes from."""

from __future__ import annotations

from collections.abc import Iterable

ANY_ORIGIN = "*"
DEFAULT_PORTS = {"http": "80", "https": "443"}


def normal_origin(origin: str) -> str:
    """In lower case and without the port that its scheme implies, as browsers write it."""
    scheme, separator, authority = origin.lower().partition("://")
    return scheme + separator + without_default_port(scheme, authority)


def without_default_port(scheme: str, authority: str) -> str:
    """``example.com`` for ``example.com:443`` of https."""
    port = DEFAULT_PORTS.get(scheme)
    return authority if port is None else authority.removesuffix(f":{port}")


class AllowedOrigins:
    """Origins whose pages may ask.

    Args:
        allowed: ``https://console.example.com``; ``*`` is all but ``null``, which pages of no known place have.
    """

    __slots__ = ("_allowed",)

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(normal_origin(each) for each in allowed)

    def __contains__(self, origin: str) -> bool:
        return normal_origin(origin) in self._allowed or (ANY_ORIGIN in self._allowed and origin != "null")


def is_of_host(origin: str, host: str) -> bool:
    """Whether a page is of the host and port that its request was sent to (``Host``)."""
    scheme, separator, authority = normal_origin(origin).partition("://")
    return bool(separator) and scheme in DEFAULT_PORTS and without_default_port(scheme, host.lower()) == authority
