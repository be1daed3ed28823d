"""Files over HTTP: POST ``file/upload``, GET ``file/download/<uid>``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
from aiohttp import BodyPartReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.dispatch import Performer
from terrazzo.api.kernel.envelope import Answer, ComponentReply, Failure
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.operations.files import DOWNLOAD, UPLOAD, FileUpload
from terrazzo.domain.stored_file import StoredFile
from terrazzo.errors import BadParameter
from terrazzo.files.folder import PIECE_BYTES

_FORM = "multipart/form-data"
_FORM_SLACK = 65_536  # of a form beside its file
_MALFORMED = (ValueError, HttpProcessingError)
_MOST_PARTS = 32  # of a form, before its file


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRoutes:
    """The two handlers, on the same performer as everything else.

    Args:
        prefixes: the configured ones of the components, by key.
        upload_bytes: how long a file may be.
        timeout_s: how long a pause of an upload may be.
    """

    prefixes: Mapping[str, str]
    performer: Performer
    validator: Validator
    upload_bytes: int
    timeout_s: float
    caller_of: Callable[[web.Request], Caller]
    respond: Callable[[Answer], web.Response]

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Handler]]]:
        """Paths, with a handler for each method."""
        yield UPLOAD.address(self.prefixes), {"POST": self._upload}
        yield DOWNLOAD.address(self.prefixes), {"GET": self._download}

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        body = UploadBody(request, most_bytes=self.upload_bytes, timeout_s=self.timeout_s)

        def decode() -> FileUpload:
            return FileUpload(self.validator.from_query(UPLOAD, dict(request.query)), body)

        answer = await self.performer.perform(UPLOAD, self.caller_of(request), decode, ComponentReply())
        return self.respond(msgspec.structs.replace(answer, status=413) if body.is_too_long else answer)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        reply = FileReply()
        fields = dict(request.match_info)
        caller = self.caller_of(request)
        answer = await self.performer.perform(
            DOWNLOAD, caller, lambda: self.validator.from_query(DOWNLOAD, fields), reply
        )
        return self.respond(answer) if reply.file is None else file_response(reply.file)


class FileReply:
    """Keeps the file that was found; a failure is answered as everywhere."""

    def __init__(self) -> None:
        self._envelope = ComponentReply()
        self.bad_parameter = self._envelope.bad_parameter
        self.not_found = self._envelope.not_found
        self.file: StoredFile | None = None

    def success(self, result: StoredFile) -> Answer:
        """Keeps it."""
        self.file = result
        return Answer(b"")

    def failure(self, failure: Failure) -> Answer:
        """An envelope."""
        return self._envelope.failure(failure)


class UploadBody:
    """A request's file, as long as it may be, and no slower than it may be."""

    def __init__(self, request: web.Request, *, most_bytes: int, timeout_s: float) -> None:
        self._request = request
        self._most_bytes = most_bytes
        self._timeout_s = timeout_s
        self._part: BodyPartReader | None = None
        slack = _FORM_SLACK if request.content_type == _FORM else 0
        self.is_too_long = (request.content_length or 0) > most_bytes + slack

    async def begin(self) -> str:
        """Comes to the form's file; its name, empty where the body itself is the file.

        Raises:
            BadParameter: the form has none, or is malformed.
        """
        if self.is_too_long or self._request.content_type != _FORM:
            self._check_length()
            return ""
        try:
            async with asyncio.timeout(self._timeout_s):
                reader = await self._request.multipart()
                for _ in range(_MOST_PARTS):
                    part = await reader.next()
                    if part is None:
                        break
                    if isinstance(part, BodyPartReader) and part.filename is not None:
                        self._part = part
                        return part.filename
        except TimeoutError:
            raise self._too_slow() from None
        except _MALFORMED as error:
            reason = " ".join(str(error).split())
            raise BadParameter("body", f"not a form: {reason[:200]}") from None
        raise BadParameter("file", "the form has no file")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file's bytes.

        Raises:
            BadParameter: it is too long, comes too slowly, or ends too early.
        """
        taken = 0
        while piece := await self._next():
            taken += len(piece)
            self.is_too_long = taken > self._most_bytes
            self._check_length()
            yield piece

    async def _next(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._part is not None:
                    return bytes(await self._part.read_chunk(PIECE_BYTES))
                return await self._request.content.readany()
        except TimeoutError:
            raise self._too_slow() from None
        except _MALFORMED as error:
            reason = " ".join(str(error).split())
            raise BadParameter("body", f"not a form: {reason[:200]}") from None
        except (ConnectionError, web.HTTPException, asyncio.IncompleteReadError) as error:
            raise BadParameter("body", f"ended too early: {error}") from None

    def _check_length(self) -> None:
        if self.is_too_long:
            raise BadParameter("file", f"longer than {self._most_bytes} bytes (limits.file_bytes)")

    def _too_slow(self) -> BadParameter:
        return BadParameter("body", f"nothing came for {self._timeout_s} s (limits.request_timeout_s)")


def file_response(file: StoredFile) -> web.FileResponse:
    """A file with type, length, ranges and its conditions; what a browser could run is for saving only."""
    way = "inline" if file.is_inline else "attachment"
    plain = "".join(character if character.isascii() and character not in '"\\' else "_" for character in file.name)
    headers = {
        hdrs.CONTENT_TYPE: file.media_type,
        hdrs.CONTENT_DISPOSITION: f"{way}; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name, safe='')}",
        hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
        hdrs.CACHE_CONTROL: "private, no-cache",
    }
    return web.FileResponse(file.path, headers=headers)
