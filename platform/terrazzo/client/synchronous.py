"""``Client``: the client for synchronous code, on one kept connection; no thread, no event loop."""

from __future__ import annotations

import functools
import http.client
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

from terrazzo.client import actions
from terrazzo.client.actions import Asked, Listed, Pages
from terrazzo.client.bulk import ImportAnswer, OnProgress, export_target, import_request, series_target
from terrazzo.client.errors import ConnectionLost, NotSent, lost_by
from terrazzo.client.exchange import Outcome, Pause, Request, Response, Retries, Steps, advance, leaves_stream
from terrazzo.client.frames import frame_of
from terrazzo.client.results import ImportReport
from terrazzo.client.session import DEFAULT_URL, Session

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
P = ParamSpec("P")

_CHUNK = 1 << 16


def _blocking(build: Callable[P, Asked[T]]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(build)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        asked = build(*args, **kwargs)
        return asked.read(self.call(asked.action, **asked.fields))

    return method


def _walking(build: Callable[P, Listed[T]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    @functools.wraps(build)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._walk(build(*args, **kwargs))

    return method


class Client:
    """A client of one platform. With credentials it logs in when it has to, also when the token expires.

    One request at a time: threads that share a client wait for each other.

    Args:
        timeout_s: for a connection, and for each wait for data.
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
        self._timeout_s = timeout_s
        self._connection = _connection(self.session.url, timeout_s, tls)
        self._turn = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next request opens a new one."""
        with self._turn:
            self._connection.close()

    def login(self, username: str | None = None, password: str | None = None) -> dict[str, Any]:
        """Logs in with these credentials, which are used from now on; returns the user's record."""
        return self._run(self.session.login(username, password))

    def logout(self) -> None:
        """Revokes the token, and forgets the credentials."""
        self._run(self.session.logout())

    def call(self, action: str, **fields: Any) -> Any:
        """The result of an action; raises ``ActionError`` if the code isn't 200."""
        return self._run(self.session.call(action, fields))

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """The whole answer of an action (code, info, result), whatever its code."""
        return self._run(self.session.ask(action, fields))

    def get(self, path: str, **query: Any) -> Any:
        """The result of a GET on a component path."""
        return self.component("GET", path, **query)

    def component(self, method: str, path: str, *, body: Any = None, **query: Any) -> Any:
        """The result of a component path; ``body`` is sent as JSON."""
        return self._run(self.session.component(method, path, query, body))

    def pages(self, action: str, *, page_size: int = 1000, **fields: Any) -> Iterator[Any]:
        """Yields all records of a list action, fetching page after page."""
        return self._walk(Listed(action, fields, page_size))

    def import_records(
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
        for chunk in self._stream(request):
            answer.feed(chunk)
        return answer.finish()

    def export_records(self, entity: str, *, format: str = "csv", secrets: bool = False) -> Iterator[bytes]:
        """Yields all records of an entity, as a file in pieces that an import accepts."""
        return self.stream(export_target(entity, format=format, secrets=secrets))

    def export_grid(self, terminal_id: str | int, **options: Any) -> Iterator[bytes]:
        """Yields a terminal's messages as a file, oldest first.

        Options: ``format``, ``start``, ``end``, ``topic``, ``keys``.
        """
        return self.stream(series_target("grid", terminal_id, options))

    def export_mosaic(self, object_id: str | int, **options: Any) -> Iterator[bytes]:
        """Yields an object's records as a file, oldest first. Options: ``format``, ``start``, ``end``, ``keys``."""
        return self.stream(series_target("mosaic", object_id, options))

    def grid_frame(self, terminal_id: str | int, **options: Any) -> DataFrame:
        """A terminal's points as a DataFrame of pandas, by time. Options as of ``export_grid``, but for ``format``.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        return frame_of(self.export_grid(terminal_id, format="arrow", **options))

    def mosaic_frame(self, object_id: str | int, **options: Any) -> DataFrame:
        """An object's variables as a DataFrame of pandas, by time. As ``grid_frame``."""
        return frame_of(self.export_mosaic(object_id, format="arrow", **options))

    def stream(self, target: str) -> Iterator[bytes]:
        """Yields the body of a GET in pieces. Nothing else can be asked until it is read or closed."""
        return self._stream(Request(method="GET", target=target))

    ping = _blocking(actions.ping)
    terminal = _blocking(actions.terminal)
    terminal_status = _blocking(actions.terminal_status)
    terminals = _walking(actions.terminals)
    last_grid = _blocking(actions.last_grid)
    grid = _walking(actions.grid)
    last_mosaic = _blocking(actions.last_mosaic)
    mosaic = _walking(actions.mosaic)
    command = _blocking(actions.command)
    object_command = _blocking(actions.object_command)
    commands = _walking(actions.commands)

    def _walk(self, listed: Listed[T]) -> Iterator[T]:
        pages = Pages(listed)
        while not pages.is_done:
            yield from pages.take(self.call(listed.action, **pages.next_fields()))

    def _stream(self, request: Request) -> Iterator[bytes]:
        with self._turn:
            response = self._run(self.session.stream(request))
            try:
                while chunk := _received(lambda: response.stream.read1(_CHUNK)):
                    yield chunk
            finally:
                if not response.stream.isclosed():  # given up half-way: the rest must not be the next answer
                    self._connection.close()

    def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        with self._turn:
            while True:
                try:
                    step = advance(steps, outcome)
                except StopIteration as end:
                    result: T = end.value
                    return result
                outcome = self._perform(step)

    def _perform(self, step: Request | Pause) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.delay_s)
            return None
        try:
            return self._send(step)
        except (NotSent, ConnectionLost) as error:
            self._connection.close()
            return error

    def _send(self, request: Request) -> Response:
        self._connect()
        connection, target = self._connection, self.session.base + request.target
        answer = _received(lambda: _exchange(connection, target, request))
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if leaves_stream(request, answer.status, headers):
            return Response(status=answer.status, headers=headers, stream=answer)
        return Response(status=answer.status, headers=headers, body=_received(answer.read))

    def _connect(self) -> None:
        """Opens a connection unless the kept one is still open on the platform's side too."""
        kept = self._connection.sock
        if kept is not None:
            if not _is_readable(kept):
                return
            self._connection.close()
        try:
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise NotSent(f"{self.session.url}: {error.strerror or error}") from error


def _connection(url: str, timeout_s: float, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    parsed = urlsplit(url)
    assert parsed.hostname is not None
    if parsed.scheme == "https":
        return http.client.HTTPSConnection(parsed.hostname, parsed.port, timeout=timeout_s, context=tls)
    return http.client.HTTPConnection(parsed.hostname, parsed.port, timeout=timeout_s)


def _exchange(connection: http.client.HTTPConnection, target: str, request: Request) -> http.client.HTTPResponse:
    connection.request(request.method, target, body=request.body, headers=dict(request.headers))
    return connection.getresponse()


def _received(read: Callable[[], T]) -> T:
    try:
        return read()
    except (OSError, http.client.HTTPException) as error:
        raise lost_by(error) from error


def _is_readable(sock: socket.socket) -> bool:
    """Whether an idle connection has something to read, which means that the other side has closed it."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
