"""Downloads a firmware file over HTTP as a terminal does: piece by piece, resumed where a power cut ended it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_TIMEOUT_S = 30.0
_ATTEMPTS = 5  # of a piece, where the server can't be reached


class DownloadError(Exception):
    """The file can't be downloaded; the text says why."""


class Download:
    """One file, kept in parts over power cuts. ``on_piece`` is called after each part with their number so far."""

    def __init__(self, url: str, *, piece_bytes: int) -> None:
        self.url = url
        self.size: int | None = None
        self.pieces = 0  # requests that brought a part
        self.resumed = 0  # how often it was continued after a power cut
        self._piece_bytes = piece_bytes
        self._content = bytearray()
        self._etag = ""

    @property
    def is_complete(self) -> bool:
        """Whether all bytes of the file have been received."""
        return self.size is not None and len(self._content) == self.size

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes received so far, in hexadecimal."""
        return hashlib.sha256(self._content).hexdigest()

    def is_of(self, url: str) -> bool:
        """Whether a URL leads to the same file; only signatures in the query may differ."""
        return urlsplit(url)[:3] == urlsplit(self.url)[:3]

    def take_up(self, url: str) -> None:
        """Continues the download from another URL, from the first missing byte."""
        self.url = url
        self.resumed += bool(self._content)

    async def run(self, on_piece: Callable[[int], None]) -> None:
        """Downloads what is missing. Raises ``DownloadError``."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while not self.is_complete:
                await self._fetch_patiently(session)
                self.pieces += 1
                on_piece(self.pieces)

    async def _fetch_patiently(self, session: aiohttp.ClientSession) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._fetch(session)
            except (aiohttp.ClientError, TimeoutError) as error:
                if attempt == _ATTEMPTS:
                    raise DownloadError(f"{self.url.partition('?')[0]}: {error!r}") from error
                await asyncio.sleep(0.2 * attempt)
            else:
                return

    async def _fetch(self, session: aiohttp.ClientSession) -> None:
        start = len(self._content)
        headers = {"Range": f"bytes={start}-{start + self._piece_bytes - 1}"}
        if self._etag:
            headers["If-Range"] = self._etag  # a file that has changed comes from its beginning
        async with session.get(self.url, headers=headers) as response:
            body = await response.read()
            found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if response.status == 206 and found is not None and int(found[1]) == start:
                self.size = int(found[3])
            elif response.status == 200:
                self._content.clear()
                self.size = len(body)
            else:
                raise DownloadError(f"HTTP {response.status}")
            self._etag = response.headers.get("ETag", "")
            self._content += body
