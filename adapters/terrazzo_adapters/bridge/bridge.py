"""``MqttBridge``: one bridge to one remote broker, connecting again and again."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from terrazzo.ports.bridge import BridgeStatus, LocalBroker
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_adapters.bridge.link import RemoteLink
from terrazzo_adapters.bridge.queue import MessageQueue
from terrazzo_adapters.bridge.queue_index import Capacity, QueueIndex
from terrazzo_adapters.bridge.receiver import Receiver
from terrazzo_adapters.bridge.remote_client import RemoteClient
from terrazzo_adapters.bridge.sender import Sender
from terrazzo_adapters.bridge.settings import BridgeSettings
from terrazzo_adapters.bridge.spool import MessageSpool

_log = logging.getLogger(__name__)

_RETRY_FIRST_S = 0.5
_STABLE_S = 10.0  # a connection that held so long is followed by a short pause again
_CLOSED = "the bridge's company is closed"
_WITHHELD = "what came in could not be stored and is not acknowledged; it has to be sent again over a new connection"
_FINISH_S = 1.0  # for acknowledgements of what is on its way


class MqttBridge:
    """``terrazzo.ports.bridge.Bridge`` on paho-mqtt.

    Args:
        tasks: runs the connection from ``start`` to ``hang_up``, and the queue from ``start`` to ``close``.
        folder: the folder of the queue on disk.

    Raises:
        ValueError: a TLS file can't be used; names the setting.
    """

    def __init__(self, settings: BridgeSettings, broker: LocalBroker, *, tasks: Tasks, folder: Path) -> None:
        self.name = settings.name
        self.company_id = settings.company_id
        self._settings = settings
        self._broker = broker
        self._context = tls_context(settings) if settings.tls else None
        self._status = BridgeStatus()
        self._log = SparseLog(_log)
        capacity = Capacity(settings.queue_messages, settings.queue_bytes, settings.overflow)
        self._queue = MessageQueue(
            settings.name,
            spool=MessageSpool(folder, name=settings.name),
            index=QueueIndex(capacity),
            status=self._status,
            broker=broker,
            tasks=tasks,
        )
        self._link: RemoteLink | None = None
        self._sender: Sender | None = None
        self._receiver: Receiver | None = None
        self._remote: RemoteClient | None = None
        self._tasks = tasks
        self._task: Task | None = None
        self._is_closing = False
        self._open = asyncio.Event()
        self._open.set()

    def set_open(self, is_open: bool) -> None:
        """See ``Bridge.set_open``."""
        if is_open:
            self._open.set()
            return
        self._open.clear()
        self._status.last_error = _CLOSED
        if self._link is not None:
            self._link.cut(_CLOSED)

    async def start(self) -> None:
        """See ``Bridge.start``."""
        await self._queue.open()
        self._queue.ready.listen(self._pump)
        if self._settings.outgoing:
            given = self._settings
            self._broker.subscribe(self.name, given.local_filters, self._queue, company_id=given.company_id)
        if self._settings.incoming:
            self._broker.when_withheld(self.name, self._on_withheld)
        # While it is down messages wait on disk, as they do while the remote broker is away.
        self._task = self._tasks.spawn(f"bridge {self.name}", self._run, OnFailure.RESTART)

    def status(self) -> BridgeStatus:
        """See ``Bridge.status``."""
        return self._status

    def kept(self) -> tuple[int, int]:
        """See ``Bridge.kept``."""
        untaken = 0 if self._receiver is None else self._receiver.untaken_bytes
        partial = 0 if self._remote is None else self._remote.partial_bytes
        return self._queue.memory_bytes + untaken + partial, self._status.queued

    async def _run(self) -> None:
        """Connects again and again until it is stopped. A fault on this side ends it, and it is started again."""
        attempts = Attempts(Retry(first_s=_RETRY_FIRST_S, most_s=self._settings.retry_s, jitter=0.5))
        while True:
            await self._open.wait()
            started_us = now_us()
            try:
                await self._cross()
            except OSError as error:  # RemoteLinkError and TimeoutError among them
                self._note(error)
                self._log.warning("bridge %s: %s", self.name, self._status.last_error)
            except Exception as error:
                self._note(error)
                raise
            if now_us() - started_us > _STABLE_S * 1e6:
                attempts.succeeded()
            await asyncio.sleep(attempts.failed() or 0)

    async def _cross(self) -> None:
        """Uses one connection, from opening it to its loss."""
        settings, status = self._settings, self._status
        if self._remote is None:
            self._remote = RemoteClient(settings, self._context, broker_id=self._broker.id)
        link = RemoteLink(self._remote, settings)
        self._receiver = Receiver(link, self._broker, settings=settings, status=status, log=self._log)
        sender = Sender(
            link,
            self._queue,
            sent=self._remote.sent,
            rules=settings.outgoing,
            broker_id=self._broker.id,
            status=status,
            log=self._log,
        )
        self._queue.rewind()  # what was on its way over an earlier connection goes again
        refused = await link.open()
        self._link, self._sender = link, sender
        status.connects += 1
        status.connected_since_us = now_us()
        status.last_error = f"the remote broker refused to subscribe us to {', '.join(refused)}" if refused else ""
        if refused:
            _log.warning("bridge %s: %s", self.name, status.last_error)
        try:
            if not self._open.is_set():  # closed while it connected
                link.cut(_CLOSED)
            self._pump()
            status.last_error = await asyncio.shield(link.lost)
            if not self._is_closing:
                self._log.warning("bridge %s: %s; messages wait on disk", self.name, status.last_error)
        finally:
            status.connected_since_us = None
            self._link = self._sender = None
            link.cut("given up")

    def _on_withheld(self) -> None:
        if self._link is not None and not self._link.lost.done():
            self._status.withheld += 1
            self._link.cut(_WITHHELD)

    def _note(self, error: Exception) -> None:
        self._status.last_error = f"no connection to {self._settings.host}:{self._settings.port}: {_words(error)}"

    def _pump(self) -> None:
        if self._link is not None and self._sender is not None:
            self._link.guard(self._sender.pump)

    async def hang_up(self) -> None:
        """See ``Bridge.hang_up``."""
        self._is_closing = True
        link, sender = self._link, self._sender
        if link is not None and sender is not None:
            await sender.finish(_FINISH_S)
            await link.close()
        if self._task is not None:
            await self._task.stop()

    async def drain(self, timeout_s: float) -> None:
        """See ``Bridge.drain``."""
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.when_durable(lambda: durable.set_result(None))
        await asyncio.wait({durable}, timeout=timeout_s)

    async def checkpoint(self, path: Path) -> None:
        """See ``Bridge.checkpoint``."""
        await self._queue.checkpoint(path)

    async def close(self) -> None:
        """See ``Bridge.close``."""
        await self._queue.close()


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    return str(error) or type(error).__name__


def tls_context(settings: BridgeSettings) -> ssl.SSLContext:
    """TLS 1.2 or later, the remote broker's certificate checked against its host name.

    Raises:
        ValueError: a file can't be used.
    """
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca or None)
    except OSError as error:
        raise ValueError(f"tls_ca: {settings.tls_ca}: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.tls_cert:
        try:
            # An encrypted key must not ask for its passphrase on a terminal.
            context.load_cert_chain(settings.tls_cert, settings.tls_key, password=lambda: "")
        except OSError as error:
            raise ValueError(f"tls_cert: {settings.tls_cert} with {settings.tls_key}: {error}") from None
    return context
