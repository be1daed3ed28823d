"""Masks secrets in the requests and answers that are journaled: wherever the value of a known secret occurs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from terrazzo.domain.template import names_in

MASK = "******"
_SHORTEST = 6  # characters: what is shorter occurs in any text by chance
_SECRET_NAME = re.compile(r"key|secret|token|pass|pwd|sign|auth|credential|account|sid", re.IGNORECASE)
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


def secrets_of(url: str, headers: dict[str, str], body: Any) -> Iterator[str]:
    """The secrets of an HTTP provider: values of headers and of the URL's query, and constants of the body whose names
    say so (key, token, password, ...)."""
    for name, value in headers.items():
        if name.lower() not in _PLAIN_HEADERS and not [*names_in(value)]:
            yield value
            yield from value.split()[1:]  # Authorization: Bearer <token>
    for pair in urlsplit(url).query.split("&"):
        yield pair.partition("=")[2]
    yield from _constants(body)


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
