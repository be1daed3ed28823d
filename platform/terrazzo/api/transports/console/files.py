"""The console's files: ``/``, and what it loads from ``/console/``.

They are built from ``platform/console/`` when the platform is installed, and stand in ``built/`` beside this module.
Names of files carry a hash of their contents, so that browsers keep them; ``/`` is asked for each time.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'; report-uri console/policy-reports"
)
"""What the console's page may do [Content Security Policy 3; Trusted Types]; ``policy_with`` adds a map's pictures."""
_IMAGES = "img-src 'self' data: blob:"

NOT_BUILT = (
    "The console was not built: run `make console`, or install again without TERRAZZO_CONSOLE=0. The API is at /docs.\n"
)

_FOREVER = "public, max-age=31536000, immutable"
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_COOKIE = "terrazzo-"  # how names of session cookies begin
_PLAIN = (".png", ".ico")  # compressed by themselves
_OF_PARTS = {
    "Content-Security-Policy": "default-src 'none'",  # by itself one is nothing but text: the page's policy holds in it
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Server": "Terrazzo",  # else aiohttp's, which is longer, with versions
}


def policy_with(map_tiles: str) -> str:
    """The policy, where the map's pictures come from this address (``http.map_tiles``); empty: from nowhere."""
    address = urlsplit(map_tiles)
    return POLICY.replace(_IMAGES, f"{_IMAGES} {address.scheme}://{address.netloc}") if map_tiles else POLICY


def _of_pages(policy: str) -> dict[str, str]:
    of_page = {"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"}
    return _OF_PARTS | {"Content-Security-Policy": policy} | of_page


class ConsoleFile(msgspec.Struct, frozen=True):
    """A body as it was built, plain and compressed."""

    media_type: str
    body: bytes
    zipped: bytes  # empty: it is not worth it
    etag: str

    @classmethod
    def read(cls, file: Traversable) -> ConsoleFile:
        """Reads and compresses a file."""
        body, suffix = file.read_bytes(), PurePath(file.name).suffix
        zipped = b"" if suffix in _PLAIN else gzip.compress(body, mtime=0)
        return cls(_TYPES[suffix], body, zipped, hashlib.sha256(body).hexdigest()[:16])

    def respond(self, request: web.Request, *, cache: str, policy: str = "") -> web.Response:
        """The body, compressed where the client can read that; 304 where it has it. ``policy``: of a page."""
        own = _of_pages(policy) if policy else _OF_PARTS
        vary = "Accept-Encoding, Accept-Language, Cookie" if policy else "Accept-Encoding"
        headers = {**own, "Cache-Control": cache, "ETag": f'"{self.etag}"', "Vary": vary}
        if any(tag.value in (self.etag, "*") for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        is_zipped = bool(self.zipped) and "gzip" in request.headers.get("Accept-Encoding", "")
        if is_zipped:
            headers["Content-Encoding"] = "gzip"
        charset = None if self.media_type.startswith("image/") else "utf-8"
        body = self.zipped if is_zipped else self.body
        return web.Response(body=body, headers=headers, content_type=self.media_type, charset=charset)


def console_handlers(map_tiles: str = "") -> Iterator[tuple[str, Handler]]:
    """Paths and what serves them. Files are read when they are first asked for; those of before an upgrade are gone."""
    yield "/", _page_handler(policy_with(map_tiles))
    yield "/console/{name}", _handle_file


def _built() -> Traversable:
    return files("terrazzo.api.transports.console").joinpath("built")


_known: dict[str, ConsoleFile] = {}


def _file(name: str) -> ConsoleFile | None:
    found = _known.get(name)
    if found is None:
        file = _built().joinpath(name)
        if PurePath(name).name != name or PurePath(name).suffix not in _TYPES or not file.is_file():
            return None
        found = ConsoleFile.read(file)
        if not name.endswith(".html"):  # which name the others, and are built anew with each of them
            _known[name] = found
    return found


def _page_handler(policy: str) -> Handler:
    async def handle_page(request: web.Request) -> web.StreamResponse:
        page = _file(_page_for(request))
        if page is None:
            return web.Response(text=NOT_BUILT, status=404, headers=_of_pages(policy))
        return page.respond(request, cache="no-cache", policy=policy)

    return handle_page


def _page_for(request: web.Request) -> str:
    """Who shows no session gets the page that has the login in it: one may type before the scripts are there."""
    if any(name.startswith(_COOKIE) for name in request.cookies):
        return "index.html"
    language = request.headers.get("Accept-Language", "").strip().lower()
    return "login-zh.html" if language.startswith("zh") else "login.html"


async def _handle_file(request: web.Request) -> web.StreamResponse:
    found = _file(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    return found.respond(request, cache=_FOREVER)
