"""Requests and answers without I/O: generators yield requests, a driver sends them and passes the answers back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

from terrazzo.client.errors import ActionError, ClientError, NotSent, UnexpectedAnswer

T = TypeVar("T")

SUCCESS = 200
NOT_AUTHENTICATED = 10402

_BUSY = (429, 503)
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request. ``target``: path and query. ``streams``: the body of a successful answer is left unread."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    streams: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a request; ``stream`` is the driver's handle on a body that has not been read."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""
    stream: Any = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A step that asks the driver to wait for ``delay_s`` seconds."""

    delay_s: float


Steps = Generator[Request | Pause, Response | None, T]
"""A generator of requests and pauses that is driven by ``advance`` and returns a ``T``."""

Outcome = Response | ClientError | None
"""The outcome of a step: an answer, an error, or None after a pause and at the beginning."""


def advance(steps: Steps[Any], outcome: Outcome) -> Request | Pause:
    """Runs ``steps`` to its next request or pause; ``StopIteration`` carries the result."""
    return steps.throw(outcome) if isinstance(outcome, ClientError) else steps.send(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often to repeat a request where that is safe, and the longest pause that the platform may ask for."""

    most: int = 3
    patience_s: float = 10.0

    def pause_s(self, attempt: int, response: Response | None) -> float | None:
        """Seconds until the next attempt, None for no more; without a response nothing was sent."""
        if attempt > self.most:
            return None
        if response is None:
            return min(_FIRST_PAUSE_S * 2.0 ** (attempt - 1), _LONGEST_PAUSE_S)
        asked_s = retry_after_s(response)
        if response.status not in _BUSY or asked_s is None or asked_s > self.patience_s:
            return None
        return asked_s


def exchange(request: Request, retries: Retries) -> Steps[Response]:
    """The answer to a request; repeats it only if it was certainly not carried out."""
    for attempt in itertools.count(1):
        try:
            response = yield request
        except NotSent:
            pause_s = retries.pause_s(attempt, None)
            if pause_s is None:
                raise
        else:
            assert response is not None
            pause_s = retries.pause_s(attempt, response)
            if pause_s is None:
                return response
        yield Pause(pause_s)
    raise AssertionError


def leaves_stream(request: Request, status: int, headers: Mapping[str, str]) -> bool:
    """Whether the body of an answer is left unread: it was asked for as a stream, and is no envelope."""
    kind = headers.get("content-type", "")
    is_envelope = kind.startswith("application/json") and "content-disposition" not in headers
    return request.streams and status == HTTPStatus.OK and not is_envelope


def retry_after_s(response: Response) -> float | None:
    """The seconds of the header ``Retry-After``, None without one (the platform sends no dates)."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def encode_query(path: str, query: Mapping[str, Any]) -> str:
    """A path with its query string; lists repeat their name, None is left out."""
    given: list[tuple[str, Any]] = []
    for name, value in query.items():
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        given += [(name, each) for each in values if each is not None]
    return f"{path}?{urlencode(given)}" if given else path


def parse_envelope(body: bytes, *, status: int = SUCCESS) -> dict[str, Any]:
    """The envelope of an answer: ``code``, ``info``, ``result``.

    Raises:
        UnexpectedAnswer: it is not an envelope.
    """
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict) or not isinstance(envelope.get("code"), int):
        raise UnexpectedAnswer(f"HTTP {status} without an envelope: {body[:200]!r}")
    return envelope


def result_of(envelope: Mapping[str, Any], response: Response | None = None) -> Any:
    """The result of a successful envelope.

    Raises:
        ActionError: the code isn't 200.
    """
    if envelope["code"] == SUCCESS:
        return envelope.get("result")
    raise ActionError(
        envelope["code"],
        str(envelope.get("msg", "")),
        str(envelope.get("info", "")),
        result=envelope.get("result"),
        retry_after_s=None if response is None else retry_after_s(response),
    )
