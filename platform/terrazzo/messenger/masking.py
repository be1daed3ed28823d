"""Masks secrets in the requests and answers that are journaled: wherever the value of a known secret occurs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from terrazzo.domain.template import names_in

MASK = "******"
_SHORTEST = 6  # characters: what is shorter occurs in any text by chance
_SECRET_NAME = re.compile(r"key|secret|token|pass|pwd|sign|auth|credential|account|sid", re.IGNORECASE)
_LONG = 16  # characters of a part of a path that is no word
_PLAIN_HEADERS = {"content-type", "accept", "user-agent"}


class Mask:
    """Masks the secrets of one provider in texts; values of less than 6 characters are not masked."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= _SHORTEST}
        self._secrets = sorted(known, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text with each secret replaced by ``MASK``."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


def shown_url(url: str) -> str:
    """A URL as journals show it: scheme, host and port. Path and query are what lets one call many a webhook."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return MASK
    if not parts.scheme or not host:
        return MASK
    origin = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    return origin + (f"/{MASK}" if parts.path.strip("/") or parts.query or parts.fragment else "")


def secrets_of(url: str, headers: dict[str, str], body: Any) -> Iterator[str]:
    """The secrets of an HTTP provider: values of headers and of the URL's query, user, password and path, and constants
    of the body whose names say so (key, token, password, ...). Of a path its parts too, if they are no words."""
    for name, value in headers.items():
        if name.lower() not in _PLAIN_HEADERS and not [*names_in(value)]:
            yield value
            yield from value.split()[1:]  # Authorization: Bearer <token>
    yield from _secrets_of_url(url)
    yield from _constants(body)


def _secrets_of_url(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    values = [pair.partition("=")[2] for pair in parts.query.split("&")]
    values += [*parts.netloc.rpartition("@")[0].split(":", 1), parts.query, parts.path.strip("/")]
    values += [part for part in parts.path.split("/") if len(part) >= _LONG or any(map(str.isdigit, part))]
    for value in values:
        yield value
        yield unquote(value)


def _constants(body: Any, name: str = "") -> Iterator[str]:
    match body:
        case str() if _SECRET_NAME.search(name) and not [*names_in(body)]:
            yield body
        case dict():
            for inner, each in body.items():
                yield from _constants(each, inner)
        case list():
            for each in body:
                yield from _constants(each, name)
