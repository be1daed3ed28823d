"""``Connection``: one connection to the servers, with what JetStream answers and refuses in our terms."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from nats import errors
from nats.aio.client import Client

from terrazzo.ports.stream import LogUnavailable, LogUnusable, NobodyAnswers
from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.jetstream.settings import JetStreamSettings

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

_log = logging.getLogger(__name__)

_API = "$JS.API."
_PAUSE_S = 0.2  # between attempts to get a lost connection back
_LEAST_PAYLOAD = 1 << 20
_HEADER_BYTES = 4_096  # of a message, beside its body
_MOST_PENDING = 64 << 20  # bytes that wait for the socket
_STORE_FAILED = 10_077  # of which the text says why
_FINAL = {10_005, 10_023, 10_028, 10_047, 10_074}  # replicas that can't be, or more room than there is
_UNDER_WAY = {10_158, 10_164}  # another message of the subject, or this one, is on its way to most servers
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class JetStreamStats(msgspec.Struct):
    """Counters since the start, and the state now."""

    connected: int = 0  # 1: there is a connection
    connects: int = 0
    disconnects: int = 0
    requests: int = 0
    failures: int = 0  # requests without an answer, or answered that nothing can be done now
    published: int = 0  # frames that the log acknowledged
    published_bytes: int = 0
    stale: int = 0  # frames that were refused because another writer was there
    read: int = 0  # frames
    readers: int = 0  # times that reading began anew


class Refused(Exception):
    """JetStream has answered with an error. ``code``: its own number of the reason; ``status``: as in HTTP."""

    def __init__(self, subject: str, error: Mapping[str, Any]) -> None:
        self.status = int(error.get("code", 0))
        self.code = int(error.get("err_code", 0))
        self.text = str(error.get("description", ""))
        super().__init__(f"{subject}: {self.text} ({self.code})")

    @property
    def is_full(self) -> bool:
        """Whether the stream has as much as it may have."""
        return self.code == _STORE_FAILED and self.text.startswith("maximum ")

    @property
    def is_final(self) -> bool:
        """Whether the same request will be answered in the same way until somebody changes something."""
        return self.is_full or self.code in _FINAL


class Connection:
    """Keeps one connection to whichever server answers; requests fail while there is none."""

    def __init__(self, settings: JetStreamSettings) -> None:
        self.settings = settings
        self.stats = JetStreamStats()
        self._client = Client()
        self._failure_log = SparseLog(_log)
        self._last_error = ""
        self._is_refused = False

    async def open(self) -> None:
        """Connects.

        Raises:
            LogUnavailable: no server answers; says which were asked.
            LogUnusable: a server refuses the credentials, a file can't be used, or what it takes is too small.
        """
        try:
            options = self._options()
        except ValueError as error:
            raise LogUnusable(f"stream.{error}") from None
        try:
            async with asyncio.timeout(self.settings.timeout_s):  # it tries for ever, as it does when a link is lost
                await self._client.connect(**options)
        except (errors.Error, OSError, TimeoutError) as error:
            await self.close()
            raise self._unreached(error) from None
        self.stats.connects += 1
        self.stats.connected = 1
        if self._client.max_payload < _LEAST_PAYLOAD:
            await self.close()
            raise LogUnusable(
                f"stream.url: max_payload of the server is {self._client.max_payload:,} bytes: set it to 8MB or more"
            )

    @property
    def most_bytes(self) -> int:
        """Of a message's body."""
        return int(self._client.max_payload) - _HEADER_BYTES

    async def ask(self, subject: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the JetStream API answers to a request.

        Raises:
            Refused: an error.
            LogUnavailable: nothing in time, or no server can answer now.
        """
        given = b"" if body is None else msgspec.json.encode(body)
        return self._answer(subject, await self.request(_API + subject, given))

    async def publish(self, subject: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Appends a message to the stream of a subject; returns its number.

        Raises:
            Refused: an error.
            LogUnavailable: unknown whether it was appended.
        """
        answer = self._answer(subject, await self.request(subject, body, headers))
        return int(answer["seq"])

    async def request(
        self, subject: str, body: bytes, headers: Mapping[str, str] | None = None, *, timeout_s: float = 0.0
    ) -> Msg:
        """Sends a request and returns the message that answers it, within ``timeout_s`` or as the settings say.

        Raises:
            NobodyAnswers: nobody is there for this subject.
            LogUnavailable: nothing in time.
        """
        timeout_s = timeout_s or self.settings.timeout_s
        self.stats.requests += 1
        if not self._client.is_connected:
            raise self._failed(subject, "no server is reached")
        try:
            given = dict(headers) if headers else None
            message = await self._client.request(subject, body, timeout=timeout_s, headers=given)
            _end_if_cancelled()
            return message
        except errors.NoRespondersError as error:
            _end_if_cancelled()
            raise NobodyAnswers(str(self._failed(subject, _reason(error)))) from None
        except (errors.Error, OSError, TimeoutError) as error:
            raise self._failed(subject, _reason(error)) from None

    async def subscribe(self, subject: str, *, most_bytes: int = _MOST_PENDING) -> Subscription:
        """Takes what is sent to a subject; it holds no more than ``most_bytes``."""
        try:
            return await self._client.subscribe(subject, pending_bytes_limit=most_bytes)
        except (errors.Error, OSError) as error:
            raise self._failed(subject, _reason(error)) from None

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription; one of a connection that is gone has ended with it."""
        with contextlib.suppress(errors.Error, OSError):
            await subscription.unsubscribe()

    async def respond(self, message: Msg, body: bytes) -> None:
        """Answers a request.

        Raises:
            LogUnavailable: there is no connection.
        """
        try:
            await message.respond(body)
        except (errors.Error, OSError) as error:
            raise self._failed(message.subject, _reason(error)) from None

    async def tell(self, subject: str, body: Mapping[str, Any], *, reply: str) -> None:
        """Sends a request whose answers go to an inbox.

        Raises:
            LogUnavailable: there is no connection.
        """
        if not self._client.is_connected:
            raise self._failed(subject, "no server is reached")
        try:
            await self._client.publish(_API + subject, msgspec.json.encode(body), reply=reply)
        except (errors.Error, OSError) as error:
            raise self._failed(subject, _reason(error)) from None

    def new_inbox(self) -> str:
        """A name for ``subscribe``."""
        return str(self._client.new_inbox())

    async def close(self) -> None:
        """Ends the connection."""
        self.stats.connected = 0
        if not self._client.is_closed:
            await self._client.close()

    def _unreached(self, error: BaseException) -> LogUnavailable | LogUnusable:
        told = self._last_error or _reason(error)
        is_refused = self._is_refused or "authorization" in told.lower()
        if is_refused or isinstance(error, errors.InvalidUserCredentialsError):
            return LogUnusable(f"stream.url: {self.settings.url}: the credentials are refused")
        return LogUnavailable(f"stream.url: {self.settings.url}: {told}")

    def _answer(self, subject: str, message: Msg) -> dict[str, Any]:
        try:
            answer = _decode(message.data)
        except msgspec.DecodeError:
            raise self._failed(subject, "the answer can't be read") from None
        error = answer.get("error")
        if error is None:
            return answer
        refused = Refused(subject, error)
        if refused.status in (500, 503) and not refused.is_final:  # no leader, shutting down, a disk that fails
            raise self._failed(subject, refused.text) from None
        if refused.code in _UNDER_WAY:  # which of them will be the last is not known yet
            raise self._failed(subject, refused.text) from None
        try:
            raise refused
        finally:
            del refused

    def _failed(self, subject: str, reason: str) -> LogUnavailable:
        self.stats.failures += 1
        return LogUnavailable(f"the log ({self.settings.url}) doesn't answer: {subject}: {reason}")

    def _options(self) -> dict[str, Any]:
        settings = self.settings
        options: dict[str, Any] = {
            "servers": settings.servers,
            "name": f"terrazzo {settings.name}",
            "connect_timeout": settings.timeout_s,
            "reconnect_time_wait": _PAUSE_S,
            "max_reconnect_attempts": -1,
            "allow_reconnect": True,
            "ping_interval": 5,
            "max_outstanding_pings": 2,
            "pending_size": _MOST_PENDING,
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_reconnected,
            "tls": settings.tls_context(),
        }
        options |= {"user": settings.username, "password": settings.password} if settings.username else {}
        options |= {"token": settings.token} if settings.token else {}
        return options | ({"user_credentials": settings.credentials} if settings.credentials else {})

    async def _on_error(self, error: Exception) -> None:
        self._last_error = _reason(error)
        self._is_refused |= "authorization" in self._last_error.lower()  # a reset of the connection may come after it
        self._failure_log.warning("the log: %s", self._last_error)

    async def _on_disconnected(self) -> None:
        self.stats.connected = 0
        self.stats.disconnects += 1

    async def _on_reconnected(self) -> None:
        self.stats.connected = 1
        self.stats.connects += 1


def _reason(error: BaseException) -> str:
    if isinstance(error, errors.NoRespondersError):
        return "no server has the stream, or it has no leader now"
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        return "no answer in time"
    return str(error).removeprefix("nats: ") or type(error).__name__


async def next_message(subscription: Subscription, timeout_s: float) -> Msg:
    """The next message of a subscription.

    The library loses a cancellation that comes together with a message: it is not lost here.

    Raises:
        TimeoutError: there is none in time.
        errors.Error: the connection is closed.
    """
    try:
        message = await subscription.next_msg(timeout=timeout_s)
    except errors.TimeoutError:
        raise TimeoutError from None
    _end_if_cancelled()
    return message


def _end_if_cancelled() -> None:
    """Raises a cancellation that the library has lost, as an answer came at the same moment."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
