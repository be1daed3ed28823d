"""Files over HTTP: POST ``file/upload``, GET ``file/download/<uid>``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.dispatch import Performer
from terrazzo.api.kernel.envelope import Answer, ComponentReply, Failure
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.operations.files import DOWNLOAD, UPLOAD, FileUpload
from terrazzo.api.transports.bodies.forms import MULTIPART, form_events
from terrazzo.api.transports.bodies.media_type import media_type_of
from terrazzo.api.transports.bodies.multipart import BadForm, Event, FormPart
from terrazzo.api.transports.bodies.reader import BodyBound, BodyReader, BodyRefused
from terrazzo.domain.stored_file import StoredFile
from terrazzo.errors import BadParameter
from terrazzo.reasons import say

_FORM_SLACK = 65_536  # of a form beside its file


class FileRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The two handlers, on the same performer as everything else.

    Args:
        prefixes: the configured ones of the components, by key.
        upload_bytes: how long a file may be.
        timeout_s: how long a pause of an upload may be.
    """

    prefixes: Mapping[str, str]
    performer: Performer
    validator: Validator
    bodies: BodyReader
    upload_bytes: int
    timeout_s: float
    caller_of: Callable[[web.Request], Caller]
    respond: Callable[[Answer], web.Response]

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Handler]]]:
        """Paths, with a handler for each method."""
        yield UPLOAD.address(self.prefixes), {"POST": self._upload}
        yield DOWNLOAD.address(self.prefixes), {"GET": self._download}

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        caller, bound = self.caller_of(request), BodyBound(self.upload_bytes, "limits.file_bytes")
        slack = _FORM_SLACK if media_type_of(request).name == MULTIPART else 0
        pieces = self.bodies.pieces(request, caller, bound._replace(slack_bytes=slack))
        body = UploadBody(request, pieces, bound, self.timeout_s)

        def decode() -> FileUpload:
            return FileUpload(self.validator.from_query(UPLOAD, dict(request.query)), body)

        answer = await self.performer.perform(UPLOAD, caller, decode, ComponentReply())
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

    def present(self, result: StoredFile) -> StoredFile:
        """As it is."""
        return result

    def success(self, result: StoredFile) -> Answer:
        """Keeps it."""
        self.file = result
        return Answer(b"")

    def failure(self, failure: Failure) -> Answer:
        """An envelope."""
        return self._envelope.failure(failure)


class UploadBody:
    """A request's file, as long as it may be, and no slower than it may be."""

    def __init__(
        self, request: web.Request, pieces: AsyncGenerator[bytes, None], bound: BodyBound, timeout_s: float
    ) -> None:
        self._request = request
        self._timed = _timed(pieces, timeout_s)
        self._bound = bound
        self._events: AsyncGenerator[Event, None] | None = None
        self.is_too_long = False

    async def begin(self) -> str:
        """Comes to the form's file; its name, empty where the body itself is the file.

        Raises:
            BadParameter: the form has none, or is malformed.
        """
        if media_type_of(self._request).name != MULTIPART:
            return ""
        self._events = form_events(self._timed, self._request.headers[hdrs.CONTENT_TYPE])
        with self._refusals():
            async for event in self._events:
                if isinstance(event, FormPart) and event.file_name is not None:
                    return event.file_name
        raise BadParameter("file", say("form_without_file"))

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file's bytes.

        Raises:
            BadParameter: it is too long, comes too slowly, or ends too early.
        """
        taken = 0
        with self._refusals():
            async for piece in self._content():
                taken += len(piece)
                self._bound.check(taken)
                yield piece

    async def _content(self) -> AsyncIterator[bytes]:
        """Of a form only its first file; the rest has to be the rest of a form."""
        if self._events is None:
            async for piece in self._timed:
                yield piece
            return
        is_file = True
        async for event in self._events:
            if isinstance(event, FormPart):
                is_file = False
            elif is_file:
                yield event

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except BadForm as error:
            raise BadParameter("body", say("not_a_form", why=error)) from None
        except BodyRefused as refusal:
            self.is_too_long = refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            field = "file" if self.is_too_long else "body"
            raise BadParameter(field, str(refusal).removeprefix("body: ")) from None


async def _timed(pieces: AsyncGenerator[bytes, None], timeout_s: float) -> AsyncIterator[bytes]:
    async with aclosing(pieces):
        while True:
            try:
                async with asyncio.timeout(timeout_s):
                    piece = await anext(pieces, b"")
            except TimeoutError:
                raise BadParameter("body", say("nothing_came", seconds=timeout_s)) from None
            if not piece:
                return
            yield piece


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
