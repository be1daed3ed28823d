"""What can be done with uploaded files, as rows of the table of operations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, NamedTuple, Protocol

import msgspec
from msgspec import Meta, UnsetType

from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.operation import Operation, nothing
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.stored_file import StoredFile
from terrazzo.errors import BadParameter
from terrazzo.reasons import say

FileUid = Annotated[str, Meta(min_length=1, max_length=128, description="the file's uid, or its url")]


class FileKey(msgspec.Struct, kw_only=True):
    """Which file."""

    uid: FileUid


class Uploading(msgspec.Struct, kw_only=True):
    """``name``: the file's, where the body isn't a form that says it."""

    name: Annotated[str, Meta(max_length=255)] = ""


class Uploaded(msgspec.Struct):
    """What file records name; ``url`` is below this platform's address."""

    name: str
    url: str
    uid: str
    type: str
    size: int
    sha256: str


class FileBody(Protocol):
    """The file in a request's body, as it arrives."""

    async def begin(self) -> str:
        """Reads up to the file; returns its name, empty where the body doesn't say it."""

    def pieces(self) -> AsyncIterator[bytes]:
        """The file's bytes, in the pieces that arrive."""


class FileUpload(NamedTuple):
    """What the handler of uploads gets: the query's fields, and a file that is still arriving."""

    request: Uploading
    body: FileBody


async def handle_upload(services: Services, actor: Actor, request: FileUpload) -> Uploaded:
    """Stores the file as it arrives."""
    found = await request.body.begin()
    name = request.request.name or found
    if not name:
        raise BadParameter("name", say("required_without_file"))
    row = await services.files.add(actor, name, request.body.pieces())
    url = DOWNLOAD.address(services.prefixes).replace("{uid}", row["uid"])
    return Uploaded(row["name"], url, row["uid"], row["type"], row["size"], row["sha256"])


async def handle_download(services: Services, actor: Actor, request: FileKey) -> StoredFile:
    """Where the file stands on disk, and what it is.

    Raises:
        NotFound: there is none in the actor's company.
    """
    return await services.files.open_for(actor, _uid(request))


async def handle_discard(services: Services, actor: Actor, request: FileKey) -> Empty:
    """Deletes a file that no record names, for good."""
    await services.files.remove(actor, _uid(request))
    return Empty()


def _uid(request: FileKey) -> str:
    return request.uid.rpartition("/")[2]


UPLOAD = Operation(
    name="file/upload",
    summary="Keeps a file: of a form's field `file`, or the body itself under `name`",
    request=Uploading,
    result=Uploaded,
    permission=Role.OPERATOR,
    handler=handle_upload,
    method="POST",
    path="/object/api/v1/file/upload",
)
DOWNLOAD = Operation(
    name="file/download",
    summary="A file's content, whole or in ranges",
    request=FileKey,
    result=StoredFile,
    permission=Role.VIEWER,
    handler=handle_download,
    method="GET",
    path="/object/api/v1/file/download/{uid}",
)
DISCARD = Operation(
    name="file/discard",
    summary="Deletes an uploaded file that no record names",
    request=FileKey,
    result=UnsetType,
    permission=Role.ADMIN,
    handler=handle_discard,
    method="POST",
    path="/object/api/v1/file/discard",
    shape=nothing,
)
