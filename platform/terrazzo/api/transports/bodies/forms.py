"""Forms: the fields of ``multipart/form-data`` and ``application/x-www-form-urlencoded``, and files in memory."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple
from urllib.parse import parse_qsl

from terrazzo.api.kernel.attachments import MOST_FILES
from terrazzo.api.transports.bodies.multipart import BadForm, Event, FormPart, MultipartParser, boundary_of
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say

MULTIPART = "multipart/form-data"
URLENCODED = "application/x-www-form-urlencoded"
MOST_FIELDS = 1_000

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")
_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "windows-1252", "gb2312", "gbk", "gb18030", "big5")


class Form(NamedTuple):
    """What a form carries: the fields besides ``data``, the JSON in ``data``, and the files."""

    fields: list[tuple[str, str]]
    data: bytes
    files: tuple[Attachment, ...]


async def form_events(pieces: AsyncIterator[bytes], content_type: str) -> AsyncGenerator[Event, None]:
    """The parts of a form and their bytes, as they come.

    Raises:
        BadForm: it is none.
    """
    parser = MultipartParser(boundary_of(content_type))
    async for piece in pieces:
        for event in parser.feed(piece):
            yield event
    parser.end()


def read_multipart(body: bytes, content_type: str, *, takes_files: bool) -> Form:
    """The form in a body; files are left out unless they are taken.

    Raises:
        BadForm: it is none.
    """
    parser = MultipartParser(boundary_of(content_type))
    parts: list[tuple[FormPart, bytearray]] = []
    for event in parser.feed(body):
        if isinstance(event, FormPart):
            parts.append((event, bytearray()))
        else:
            parts[-1][1].extend(event)
    parser.end()
    files = [(part, content) for part, content in parts if part.file_name is not None and takes_files]
    if len(files) > MOST_FILES:
        raise BadForm(say("too_many_files", most=MOST_FILES))
    fields = [(part.name, _text(part, content)) for part, content in parts if part.file_name is None]
    return _form(fields, tuple(_attachment(part, content) for part, content in files))


def read_urlencoded(body: bytes, charset: str) -> Form:
    """The form in a body; raises ``BadForm``."""
    charset = _known(charset)
    try:
        text = body.rstrip().decode(charset)
        fields = parse_qsl(text, keep_blank_values=True, encoding=charset, max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError as error:
        raise BadForm(say("not_in_charset", charset=charset, byte=error.start)) from None
    except ValueError:
        raise BadForm(say("form_too_many_fields", most=MOST_FIELDS)) from None
    return _form(fields, ())


def _form(fields: list[tuple[str, str]], files: tuple[Attachment, ...]) -> Form:
    data = "".join(value for name, value in fields if name == "data")
    return Form([field for field in fields if field[0] != "data"], data.encode(), files)


def _text(part: FormPart, content: bytearray) -> str:
    charset = _known(part.charset)
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        raise BadForm(say("part_not_in_charset", part=part.name, charset=charset, byte=error.start)) from None


def _known(charset: str) -> str:
    """Python knows many more, some of them costly."""
    charset = charset.lower() or "utf-8"
    if charset not in _CHARSETS:
        raise BadForm(say("charset_unknown", charset=charset[:50]))
    return charset


def _attachment(part: FormPart, content: bytearray) -> Attachment:
    return Attachment(clean_name(part.file_name or ""), _media_type(part), bytes(content))


def clean_name(name: str) -> str:
    """A file's name without folders and without what a head of a mail can't hold."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c for c in last if c.isprintable())[:255] or "file"


def _media_type(part: FormPart) -> str:
    given = part.media_type
    return given if _MEDIA_TYPE.fullmatch(given) and len(given) <= 128 else "application/octet-stream"
