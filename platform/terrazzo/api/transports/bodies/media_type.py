"""What a request says of its body's format: ``Content-Type`` [RFC 9110, 8.3].

aiohttp reads it with Python's parser of e-mail headers, which fails on some malformed ones: not here.
"""

from __future__ import annotations

from typing import NamedTuple

from aiohttp import hdrs, web

from terrazzo.api.transports.bodies.multipart import parse_parameters


class MediaType(NamedTuple):
    """``type/subtype`` and the charset, both in lower case and empty where nothing is said of them."""

    name: str
    charset: str


def media_type_of(request: web.BaseRequest) -> MediaType:
    """What the request's header says; what is malformed is no type that anybody takes."""
    name, parameters = parse_parameters(request.headers.get(hdrs.CONTENT_TYPE, ""))
    return MediaType(name, parameters.get("charset", "").lower())
