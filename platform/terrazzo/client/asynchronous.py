"""``AsyncClient``: the client for asyncio, on aiohttp."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import aiohttp

from terrazzo.client import actions
from terrazzo.client.actions import Asked, Listed, Pages
from terrazzo.client.bulk import ImportAnswer, OnProgress, export_target, import_request, series_target
from terrazzo.client.errors import ConnectionLost, NotSent, lost_by
from terrazzo.client.exchange import Outcome, Pause, Request, Response, Retries, Steps, advance, leaves_stream
from terrazzo.client.frames import frame_of
from terrazzo.client.live import Frame, Gap, Live
from terrazzo.client.results import ImportReport
from terrazzo.client.session import DEFAULT_URL, GATEWAY_PATH, Session

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
P = ParamSpec("P")

_HEARTBEAT_S = 30.0  # a platform that is silently gone is noticed within one and a half of it
_MESSAGE_BYTES = 16 << 20


def _awaited(build: Callable[P, Asked[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @functools.wraps(build)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        asked = build(*args, **kwargs)
        return asked.read(await self.call(asked.action, **asked.fields))

    return method


def _walking(build: Callable[P, Listed[T]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    @functools.wraps(build)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._walk(build(*args, **kwargs))

    return method


class AsyncClient:
    """A client of one platform, for any number of tasks. With credentials it logs in when it has to.

    Args:
        timeout_s: for a request and its answer; for streams, for each wait for the next piece.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        username: str | None = None,
        password: str | None = None,
        token: str | None = None,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.session = Session(url, username=username, password=password, token=token, retries=retries)
        self._whole = aiohttp.ClientTimeout(total=timeout_s)
        self._piece = aiohttp.ClientTimeout(total=None, connect=timeout_s, sock_read=timeout_s)
        self._tls: ssl.SSLContext | bool = True if tls is None else tls
        self._opened: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        if self._opened is not None:
            await self._opened.close()

    async def login(self, username: str | None = None, password: str | None = None) -> dict[str, Any]:
        """Logs in with these credentials, which are used from now on; returns the user's record."""
        return await self._run(self.session.login(username, password))

    async def logout(self) -> None:
        """Revokes the token, and forgets the credentials."""
        await self._run(self.session.logout())

    async def call(self, action: str, **fields: Any) -> Any:
        """The result of an action; raises ``ActionError`` if the code isn't 200."""
        return await self._run(self.session.call(action, fields))

    async def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """The whole answer of an action (code, info, result), whatever its code."""
        return await self._run(self.session.ask(action, fields))

    async def get(self, path: str, **query: Any) -> Any:
        """The result of a GET on a component path."""
        return await self.component("GET", path, **query)

    async def component(self, method: str, path: str, *, body: Any = None, **query: Any) -> Any:
        """The result of a component path; ``body`` is sent as JSON."""
        return await self._run(self.session.component(method, path, query, body))

    def pages(self, action: str, *, page_size: int = 1000, **fields: Any) -> AsyncIterator[Any]:
        """Yields all records of a list action, fetching page after page."""
        return self._walk(Listed(action, fields, page_size))

    async def import_records(
        self,
        entity: str,
        data: bytes | str,
        *,
        dry_run: bool = False,
        mode: str = "create",
        on_progress: OnProgress | None = None,
    ) -> ImportReport:
        """Imports CSV or JSON, all or nothing; errors by row and column are in the ``ActionError``'s ``result``."""
        request = import_request(entity, data, dry_run=dry_run, mode=mode)
        answer = ImportAnswer(on_progress)
        async for chunk in self._stream(request):
            answer.feed(chunk)
        return answer.finish()

    def export_records(self, entity: str, *, format: str = "csv", secrets: bool = False) -> AsyncIterator[bytes]:
        """Yields all records of an entity, as a file in pieces that an import accepts."""
        return self.stream(export_target(entity, format=format, secrets=secrets))

    def export_grid(self, terminal_id: str | int, **options: Any) -> AsyncIterator[bytes]:
        """Yields a terminal's messages as a file, oldest first.

        Options: ``format``, ``start``, ``end``, ``topic``, ``keys``.
        """
        return self.stream(series_target("grid", terminal_id, options))

    def export_mosaic(self, object_id: str | int, **options: Any) -> AsyncIterator[bytes]:
        """Yields an object's records as a file, oldest first. Options: ``format``, ``start``, ``end``, ``keys``."""
        return self.stream(series_target("mosaic", object_id, options))

    async def grid_frame(self, terminal_id: str | int, **options: Any) -> DataFrame:
        """A terminal's points as a DataFrame of pandas, by time. Options as of ``export_grid``, but for ``format``.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        return frame_of([piece async for piece in self.export_grid(terminal_id, format="arrow", **options)])

    async def mosaic_frame(self, object_id: str | int, **options: Any) -> DataFrame:
        """An object's variables as a DataFrame of pandas, by time. As ``grid_frame``."""
        return frame_of([piece async for piece in self.export_mosaic(object_id, format="arrow", **options)])

    def stream(self, target: str) -> AsyncIterator[bytes]:
        """Yields the body of a GET in pieces, however long it is."""
        return self._stream(Request(method="GET", target=target))

    def live(
        self,
        kinds: Sequence[str],
        *,
        object_id: str | int | None = None,
        terminal_id: str | int | None = None,
        keys: Sequence[str] | None = None,
        since: int | None = None,
    ) -> AsyncGenerator[Frame | Gap, None]:
        """Yields what happens, as it happens.

        Reconnects by itself, continues where it was, and yields a ``Gap`` for what was lost.
        """
        wanted = {"kinds": list(kinds), "object_id": object_id, "terminal_id": terminal_id, "keys": keys}
        given = {name: value for name, value in wanted.items() if value is not None}
        return Live(self.session, self._run, self._connect_socket, given, since=since).frames()

    ping = _awaited(actions.ping)
    terminal = _awaited(actions.terminal)
    terminal_status = _awaited(actions.terminal_status)
    terminals = _walking(actions.terminals)
    last_grid = _awaited(actions.last_grid)
    grid = _walking(actions.grid)
    last_mosaic = _awaited(actions.last_mosaic)
    mosaic = _walking(actions.mosaic)
    command = _awaited(actions.command)
    object_command = _awaited(actions.object_command)
    commands = _walking(actions.commands)

    async def _walk(self, listed: Listed[T]) -> AsyncIterator[T]:
        pages = Pages(listed)
        while not pages.is_done:
            for record in pages.take(await self.call(listed.action, **pages.next_fields())):
                yield record

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        response = await self._run(self.session.stream(request))
        answer: aiohttp.ClientResponse = response.stream
        try:
            async for chunk in answer.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise lost_by(error) from error
        finally:
            answer.close()

    async def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = advance(steps, outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._perform(step)

    async def _perform(self, step: Request | Pause) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.delay_s)
            return None
        try:
            return await self._send(step)
        except (NotSent, ConnectionLost) as error:
            return error

    async def _send(self, request: Request) -> Response:
        url, timeout = self.session.url + request.target, self._piece if request.streams else self._whole
        try:
            answer = await self._http().request(
                request.method, url, data=request.body, headers=request.headers, timeout=timeout, ssl=self._tls
            )
            headers = {name.lower(): value for name, value in answer.headers.items()}
            if leaves_stream(request, answer.status, headers):
                return Response(status=answer.status, headers=headers, stream=answer)
            async with answer:
                return Response(status=answer.status, headers=headers, body=await answer.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(f"{self.session.url}: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise lost_by(error) from error

    async def _connect_socket(self, token: str | None) -> aiohttp.ClientWebSocketResponse:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return await self._http().ws_connect(
                self.session.url + GATEWAY_PATH,
                headers=headers,
                heartbeat=_HEARTBEAT_S,
                max_msg_size=_MESSAGE_BYTES,
                ssl=self._tls,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise NotSent(f"{self.session.url}: {error}") from error

    def _http(self) -> aiohttp.ClientSession:
        if self._opened is None or self._opened.closed:
            self._opened = aiohttp.ClientSession()
        return self._opened
