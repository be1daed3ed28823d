"""``/openapi.json``, and ``/docs``: a page about it that loads nothing from outside."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Callable, Iterator
from importlib.resources import files

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from terrazzo.api.openapi.document import JSON
from terrazzo.api.openapi.schemas import Schema

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {
    "/docs": ("index.html", "text/html"),
    "/docs/docs.css": ("docs.css", "text/css"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
    "/docs/schema.js": ("schema.js", "text/javascript"),
}


class StaticFile(msgspec.Struct, frozen=True):
    """A body that doesn't change while the process lives, plain and compressed."""

    media_type: str
    body: bytes
    zipped: bytes
    etag: str  # without quotes

    @classmethod
    def make(cls, media_type: str, body: bytes) -> StaticFile:
        """Compresses and names a body."""
        return cls(media_type, body, gzip.compress(body, mtime=0), hashlib.sha256(body).hexdigest()[:32])

    def respond(self, request: web.Request) -> web.Response:
        """The body; 304 without one where the client has it; compressed where the client can read that."""
        headers = {
            "ETag": f'"{self.etag}"',
            "Cache-Control": "no-cache",  # ask each time; the answer is mostly 304
            "Vary": "Accept-Encoding",
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
        }
        if any(tag.value in (self.etag, "*") for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        zipped = "gzip" in request.headers.get("Accept-Encoding", "")
        if zipped:
            headers["Content-Encoding"] = "gzip"
        charset = None if self.media_type == JSON else "utf-8"
        body = self.zipped if zipped else self.body
        return web.Response(body=body, headers=headers, content_type=self.media_type, charset=charset)


def document_handlers(document: Callable[[], Schema]) -> Iterator[tuple[str, Handler]]:
    """Paths and what serves them; each file is made when it is first asked for."""
    yield "/openapi.json", _handler(lambda: StaticFile.make(JSON, msgspec.json.encode(document())))
    for path, (name, media_type) in _PAGE.items():
        yield path, _handler(lambda name=name, media_type=media_type: _read(name, media_type))  # type: ignore[misc]


def _handler(make: Callable[[], StaticFile]) -> Handler:
    made: list[StaticFile] = []
    turn = asyncio.Lock()

    async def handle_file(request: web.Request) -> web.StreamResponse:
        async with turn:
            if not made:  # a thread makes it: all of ``/openapi.json`` takes some hundred milliseconds
                made.append(await asyncio.to_thread(make))
        return made[0].respond(request)

    return handle_file


def _read(name: str, media_type: str) -> StaticFile:
    return StaticFile.make(media_type, files("terrazzo.api.openapi").joinpath("docs_page", name).read_bytes())
