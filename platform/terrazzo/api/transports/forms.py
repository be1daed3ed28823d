"""Forms with files: the fields of ``multipart/form-data``, and its files in memory, as long as they may be together."""

from __future__ import annotations

import re
from typing import NamedTuple

from aiohttp import BodyPartReader, web

from terrazzo.api.kernel.attachments import MOST_FILES
from terrazzo.ports.providers import Attachment

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")


class Form(NamedTuple):
    """What a form carries: the fields besides ``data``, the JSON in ``data``, and the files."""

    fields: list[tuple[str, str]]
    data: bytes
    files: tuple[Attachment, ...]


async def read_form(request: web.Request, most_bytes: int) -> Form:
    """Reads a form with files.

    Raises:
        ValueError: it isn't one.
        HTTPRequestEntityTooLarge: it is longer than ``most_bytes``.
    """
    fields: list[tuple[str, str]] = []
    data, files, left = b"", list[Attachment](), most_bytes
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            raise ValueError("a part has parts of its own")
        content = await _content(part, left, most_bytes)
        left -= len(content)
        if part.filename is not None:
            files.append(Attachment(clean_name(part.filename), _media_type(part), content))
        elif part.name == "data":
            data += content
        else:
            fields.append((part.name or "", content.decode()))
        if len(files) > MOST_FILES:
            raise ValueError(f"more than {MOST_FILES} files")
    return Form(fields, data, tuple(files))


def clean_name(name: str) -> str:
    """A file's name without folders and without what a head of a mail can't hold."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c for c in last if c.isprintable())[:255] or "file"


async def _content(part: BodyPartReader, left: int, most_bytes: int) -> bytes:
    content = bytearray()
    while chunk := await part.read_chunk():
        content += chunk
        if len(content) > left:
            raise web.HTTPRequestEntityTooLarge(most_bytes, most_bytes + 1)
    return bytes(content)


def _media_type(part: BodyPartReader) -> str:
    given = part.headers.get("Content-Type", "").partition(";")[0].strip()
    return given if _MEDIA_TYPE.fullmatch(given) and len(given) <= 128 else "application/octet-stream"
