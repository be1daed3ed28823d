"""Addresses as they are shown in errors, logs and lists: without user and password."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

MASK = "******"  # stands for a secret: that there is one is said, never what it is
_USERINFO = re.compile(r"^([^/?#]*//)[^/?#]*@")  # [RFC 3986, 3.2.1]


def without_userinfo(link: str) -> str:
    """A URL with its user and password masked; any other text as it is."""
    return _USERINFO.sub(rf"\g<1>{MASK}@", link)


def without_user(link: str) -> str:
    """A URL without its user and password; any other text as it is."""
    return _USERINFO.sub(r"\g<1>", link)


def shown_address(address: str) -> str:
    """The address of a server as it was configured, with whatever stands before its last ``@`` masked: also where the
    password has characters that a URL may not have there (``http://user:a/b@host``)."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        scheme, rest = "", address
    _, at, place = rest.rpartition("@")
    return f"{scheme}{mark}{MASK}@{place}" if at else address


def is_http_address(address: str) -> bool:
    """Whether a text is the address of an HTTP server, with or without user and password: ``http://host:8086``."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.fragment
    except ValueError:
        return False
