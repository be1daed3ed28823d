"""``/bulk/<entity>``: POST imports an upload of any form, GET exports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.dispatch import Performer
from terrazzo.api.kernel.envelope import EMPTY_TEXT, Answer, GatewayReply
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.operations.bulk import BULK, BulkUpload, ExportOptions, Grow, ImportOptions
from terrazzo.api.transports.bodies.reader import BodyBound, BodyReader, BodyRefused
from terrazzo.api.transports.streaming import StreamReply, send_stream
from terrazzo.bulk.exporting import MEDIA_TYPES
from terrazzo.errors import BadParameter

_JSON_LINES = "application/x-ndjson"
_PROGRESS_S = 0.1  # between two lines of progress

Respond = Callable[[Answer], web.Response]
CallerOf = Callable[[web.Request], Caller]


class BulkRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The handlers, on the same performer as everything else.

    Args:
        upload_bytes: how long an upload may be.
    """

    performer: Performer
    validator: Validator
    bodies: BodyReader
    upload_bytes: int
    caller_of: CallerOf
    respond: Respond

    def __iter__(self) -> Iterator[tuple[str, dict[str, Handler]]]:
        """For each entity its path, with a handler for each method."""
        for each in BULK:
            yield each.path, {"POST": self._importer(each.upload()), "GET": self._exporter(each.export())}

    def _importer(self, operation: Operation) -> Handler:
        async def handle_upload(request: web.Request) -> web.StreamResponse:
            caller, stage, too_long = self.caller_of(request), _Stage(), False

            async def read(grow: Grow) -> bytearray:
                nonlocal too_long
                try:
                    return await self._read(request, caller, grow)
                except BodyRefused as refusal:
                    too_long = refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                    raise BadParameter("body", str(refusal).removeprefix("body: ")) from None

            def decode() -> BulkUpload:
                options: ImportOptions = self.validator.from_query(operation, dict(request.query))
                stage.is_wanted = bool(options.progress)
                return BulkUpload(options, read, stage.set)

            async def perform() -> Answer:
                reply = GatewayReply(operation.name, EMPTY_TEXT)
                answer = await self.performer.perform(operation, caller, decode, reply)
                return msgspec.structs.replace(answer, status=413) if too_long else answer

            return await self._answer(request, perform(), stage)

        return handle_upload

    async def _read(self, request: web.Request, caller: Caller, grow: Grow) -> bytearray:
        body = bytearray()
        bound = BodyBound(self.upload_bytes, "limits.import_bytes")
        async with aclosing(self.bodies.pieces(request, caller, bound)) as pieces:
            async for piece in pieces:
                grow(len(piece))
                body += piece
        return body  # not copied: that may be 32 MiB

    async def _answer(self, request: web.Request, work: Any, stage: _Stage) -> web.StreamResponse:
        """The answer; once there is progress to tell, as the last of the lines that tell it."""
        task = asyncio.create_task(work, name="bulk import")
        try:
            await stage.first_of(task)
            if stage.is_wanted and stage.is_set:
                return await self._tell(request, task, stage)
            return self.respond(await task)
        finally:
            task.cancel()

    async def _tell(self, request: web.Request, task: asyncio.Task[Answer], stage: _Stage) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _JSON_LINES})
        await response.prepare(request)
        while not task.done():
            await response.write(stage.line())
            await asyncio.wait({task}, timeout=_PROGRESS_S)
        await response.write(stage.line() + task.result().body + b"\n")
        return response

    def _exporter(self, operation: Operation) -> Handler:
        async def handle_export(request: web.Request) -> web.StreamResponse:
            reply = StreamReply(operation.name)
            format = "csv"

            def decode() -> ExportOptions:
                nonlocal format
                options: ExportOptions = self.validator.from_query(operation, dict(request.query))
                format = options.format
                return options

            answer = await self.performer.perform(operation, self.caller_of(request), decode, reply)
            if reply.result is None:
                return self.respond(answer)
            name = f"{operation.name.removeprefix('export_')}.{format}"
            return await send_stream(request, reply.result, media_type=MEDIA_TYPES[format], file_name=name)

        return handle_export


class _Stage:
    """How far an import is; only the latest counts."""

    def __init__(self) -> None:
        self.is_wanted = False
        self._now = ("read", 0, 0)
        self._begun = asyncio.Event()

    @property
    def is_set(self) -> bool:
        """Whether there is progress to tell."""
        return self._begun.is_set()

    def set(self, stage: str, done: int, total: int) -> None:
        """Takes note."""
        self._now = (stage, done, total)
        self._begun.set()

    async def first_of(self, task: asyncio.Task[Any]) -> None:
        """Returns when there is progress, or when the task is over."""
        begun = asyncio.create_task(self._begun.wait(), name="bulk import begun")
        await asyncio.wait({begun, task}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    def line(self) -> bytes:
        """One line of an answer."""
        stage, done, total = self._now
        return msgspec.json.encode({"progress": {"stage": stage, "done": done, "total": total}}) + b"\n"
