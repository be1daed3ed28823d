"""From bytes to the parts of a form, ``multipart/form-data`` [RFC 7578]. Pure, linear, and bounded in what it keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from terrazzo.reasons import say

MOST_PARTS = 256
MOST_HEADER_BYTES = 4_096  # of one part, all together
MOST_NAME_CHARS = 256  # of a part's name; names of files are cut by who keeps them

_MOST_BOUNDARY = 70  # RFC 2046, 5.1.1
_MOST_PADDING = 16  # blanks behind a boundary
_PARAMETER = re.compile(r""";[ \t]*([^\s;="]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*+)"|([^;"\s]*))""", re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\])')


class BadForm(Exception):
    """Not a form; ``str()`` says why."""


class FormPart(NamedTuple):
    """A part begins; its bytes follow."""

    name: str
    file_name: str | None  # None: a field
    media_type: str  # empty where it says nothing
    charset: str


Event = FormPart | bytes


class _State(Enum):
    PREAMBLE = "before the first boundary"
    BOUNDARY = "behind a boundary"
    HEADERS = "in the headers of a part"
    CONTENT = "in a part"
    EPILOGUE = "behind the last boundary"


class MultipartParser:
    """``feed`` what arrives, ``end`` at the end.

    Args:
        boundary: as ``boundary_of`` gives it.
    """

    def __init__(self, boundary: str) -> None:
        self._delimiter = b"\r\n--" + boundary.encode()
        self._state = _State.PREAMBLE
        self._buffer = bytearray(b"\r\n")  # a form may begin with its boundary
        self._searched = 0  # of the buffer: the end of headers isn't there
        self._parts = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """Parts, and the bytes of the latest, as far as they are here.

        Raises:
            BadForm: this is none, or is over a limit.
        """
        if self._state is _State.EPILOGUE:
            return
        self._buffer += data
        while (event := self._next()) is not None:
            if event:
                yield event

    def end(self) -> None:
        """Nothing more comes.

        Raises:
            BadForm: something is missing.
        """
        if self._state is not _State.EPILOGUE:
            raise BadForm(say("form_ends_early", where=self._state.value))

    def _next(self) -> Event | None:
        """The next event; empty bytes for a change of state alone; None where more has to come."""
        match self._state:
            case _State.PREAMBLE:
                return self._skip_preamble()
            case _State.BOUNDARY:
                return self._take_boundary()
            case _State.HEADERS:
                return self._take_headers()
            case _State.CONTENT:
                return self._take_content()
            case _State.EPILOGUE:
                self._buffer.clear()
                return None

    def _skip_preamble(self) -> Event | None:
        if self._before_delimiter() is None:
            return None
        self._state = _State.BOUNDARY
        return b""

    def _take_content(self) -> Event | None:
        found = self._before_delimiter()
        if found is not None:
            self._state = _State.BOUNDARY
            return found
        keep = len(self._delimiter) - 1  # it may have begun
        if len(self._buffer) <= keep:
            return None
        content = bytes(self._buffer[:-keep])
        del self._buffer[:-keep]
        return content

    def _before_delimiter(self) -> bytes | None:
        at = self._buffer.find(self._delimiter)
        if at < 0:
            if self._state is _State.PREAMBLE:
                del self._buffer[: 1 - len(self._delimiter)]
            return None
        before = bytes(self._buffer[:at])
        del self._buffer[: at + len(self._delimiter)]
        return before

    def _take_boundary(self) -> Event | None:
        if self._buffer.startswith(b"--"):
            self._state = _State.EPILOGUE
            return b""
        end = self._buffer.find(b"\r\n", 0, _MOST_PADDING + 2)
        padding = self._buffer[:end] if end >= 0 else self._buffer.removesuffix(b"\r").removesuffix(b"-")
        if padding.strip(b" \t") or len(padding) > _MOST_PADDING:
            raise BadForm(say("form_boundary_line"))
        if end < 0:
            return None
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise BadForm(say("form_too_many_parts", most=MOST_PARTS))
        del self._buffer[:end]  # the line end stays: two of them end the headers, also where there are none
        self._state, self._searched = _State.HEADERS, 0
        return b""

    def _take_headers(self) -> Event | None:
        end = self._buffer.find(b"\r\n\r\n", self._searched, MOST_HEADER_BYTES + 4)
        if end < 0:
            if len(self._buffer) > MOST_HEADER_BYTES:
                raise BadForm(say("part_headers_too_long", most=MOST_HEADER_BYTES))
            self._searched = max(0, len(self._buffer) - 3)
            return None
        part = _part(self._buffer[:end].decode("utf-8", "replace"))
        del self._buffer[: end + 4]
        self._state = _State.CONTENT
        return part


def _part(headers: str) -> FormPart:
    values: dict[str, str] = {}
    for line in headers.split("\r\n"):
        name, _, value = line.partition(":")
        values[name.strip().lower()] = value.strip()
    disposition, parameters = parse_parameters(values.get("content-disposition", ""))
    if disposition != "form-data" or "name" not in parameters:
        raise BadForm(say("part_without_name"))
    name = parameters["name"]
    if len(name) > MOST_NAME_CHARS:
        raise BadForm(say("part_name_too_long", most=MOST_NAME_CHARS))
    media_type, of_media = parse_parameters(values.get("content-type", ""))
    if media_type.startswith("multipart/"):
        raise BadForm(say("part_with_parts"))
    return FormPart(name, _file_name(parameters), media_type, of_media.get("charset", ""))


def _file_name(parameters: Mapping[str, str]) -> str | None:
    """With the extended one before the plain one [RFC 6266, 4.3]."""
    charset, _, rest = parameters.get("filename*", "").partition("'")
    if charset.lower() == "utf-8":
        return unquote_to_bytes(rest.partition("'")[2]).decode("utf-8", "replace")
    return parameters.get("filename")


def parse_parameters(text: str) -> tuple[str, dict[str, str]]:
    """``form-data; name="a"`` as the value and its parameters; of two with one name the first counts."""
    value, separator, rest = text.partition(";")
    parameters: dict[str, str] = {}
    for found in _PARAMETER.finditer(separator + rest):
        quoted, plain = found[2], found[3]
        parameters.setdefault(found[1].lower(), plain if quoted is None else _ESCAPE.sub(r"\1", quoted))
    return value.strip().lower(), parameters


def boundary_of(content_type: str) -> str:
    """The boundary in a ``Content-Type``.

    Raises:
        BadForm: there is none, or not one.
    """
    boundary = parse_parameters(content_type)[1].get("boundary", "")
    if not boundary:
        raise BadForm(say("form_without_boundary"))
    if len(boundary) > _MOST_BOUNDARY or not boundary.isascii() or not boundary.isprintable():
        raise BadForm(say("form_boundary_wrong", most=_MOST_BOUNDARY))
    return boundary
