"""The broker: what an embedding program starts, stops and speaks through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from .codec.reasons import disconnect_reason
from .connection import Connection
from .connection_state import ConnectionState
from .core import BrokerCore
from .delivery.local_subscriber import LocalSubscriber
from .delivery.session import Session
from .expiry import sweep
from .hooks import Client, Delivery, FormerOwners, Hooks, MayReceive, PublishGrant
from .listeners.certificates import TlsFiles
from .listeners.listener_set import ListenerSet
from .message import ApplicationMessage, PublishProperties, TrackedMessage
from .owner_memory import OwnerMemory
from .refusals import Cause, OnRefused, Refusal
from .scheduling.turns import Steps
from .settings import BrokerSettings, OwnerLimits
from .storage import MemoryStorage, Storage
from .sys_topics import sys_topics
from .tasks import OnFailure, RestartingTasks, Task, Tasks
from .topics.names import matches
from .topics.owners import EVERYBODY
from .topics.tree import TopicSubscription
from .tracing.packet_tap import OnPacket, tap, untap


class Broker:
    """An MQTT 3.1, 3.1.1 and 5.0 broker on the running event loop.

    ``hooks`` decide on clients, publishes and subscriptions; ``stats`` are the counters. All methods are called on the
    loop. ``may_receive`` narrows what clients are sent within their subscriptions. ``tasks`` runs the broker's
    long-lived tasks, and restarts those that fail. ``storage``: None keeps everything in memory. ``owners``: whose
    is what was stored before owners were kept. ``on_refused`` is told of what is refused and who is ended, and why;
    what ``hooks.authenticate`` refuses it knows itself.

    Raises:
        StorageError: what is stored can't be read.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        hooks: Hooks,
        storage: Storage | None = None,
        *,
        may_receive: MayReceive | None = None,
        owners: FormerOwners | None = None,
        on_refused: OnRefused | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        storage = storage if storage is not None else MemoryStorage()
        self.core = BrokerCore(
            settings,
            hooks,
            storage,
            may_receive=may_receive,
            owners=owners or FormerOwners(_none, _none),
            on_refused=on_refused,
        )
        self.settings = settings
        self.hooks = hooks
        self.stats = self.core.stats
        self.sessions = storage.sessions  # by client id
        self.retained = storage.retained
        self._tasks: Tasks = tasks if tasks is not None else RestartingTasks(self.stats)
        self._listeners = ListenerSet(self.core, self._tasks)
        self._sweep: Task | None = None
        self._started_s = self.core.clock()
        self._next_sys_s = self._started_s

    # Listeners; each ``listen_*`` may be called several times

    async def listen_tcp(self, host: str, port: int, *, proxy_protocol: bool = False) -> int:
        """Accepts connections on ``host:port`` (port 0: any free one); the port bound.

        ``proxy_protocol``: each connection starts with a PROXY protocol header, version 1 or 2, which names the
        client's address; else those of ``BrokerSettings.trusted_proxies`` do, and nobody else may.

        Raises:
            OSError: the address is taken or not ours.
        """
        bound = await self._listeners.listen_tcp(host, port, proxy_protocol=proxy_protocol)
        self._start()
        return bound

    async def listen_tls(
        self,
        host: str,
        port: int,
        *,
        cert: str | Path,
        key: str | Path,
        client_ca: str | Path | None = None,
        proxy_protocol: bool = False,
    ) -> int:
        """Accepts TLS 1.2 and 1.3; with ``client_ca``, clients may show a certificate that it has signed.

        Raises:
            OSError: the address is taken or not ours.
            CertificateError: a file can't be used; the message starts with ``tls_cert``, ``tls_key`` or
                ``tls_client_ca``.
        """
        files = TlsFiles(cert=cert, key=key, client_ca=client_ca)
        bound = self._listeners.listen_tls(host, port, files, proxy_protocol=proxy_protocol)
        self._start()
        return bound

    async def listen_websocket(self, host: str, port: int, *, path: str = "/mqtt", tls: TlsFiles | None = None) -> int:
        """Accepts MQTT over WebSocket, or over secure WebSocket with ``tls``.

        Raises:
            OSError, CertificateError: as ``listen_tls``.
        """
        bound = self._listeners.listen_websocket(host, port, path=path, tls=tls)
        self._start()
        return bound

    async def listen_unix(self, path: str | Path) -> None:
        """Accepts connections on a Unix socket, mode 0660; a file that a dead process has left is replaced.

        Raises:
            OSError: something else is there, or somebody listens on it.
        """
        await self._listeners.listen_unix(path)
        self._start()

    def reload_certificates(self) -> None:
        """Reads all TLS files again, for new connections; open ones are left alone.

        Raises:
            CertificateError: a file can't be used; then nothing has changed.
        """
        self._listeners.reload_certificates()

    async def trust_authorities(self, authorities: Sequence[bytes]) -> None:
        """Trusts these certificate authorities (DER) on all TLS listeners, besides ``client_ca``, for new connections.

        It takes the place of what was named before; empty: those of the files alone. A client's certificate is asked
        for, not required: ``ConnectRequest.certificate`` has it, and the hooks say for whom its authority may vouch.

        Raises:
            CertificateError: a file can't be used; the listeners stay as they were.
        """
        await self._listeners.trust_authorities(authorities)

    @property
    def is_listening(self) -> bool:
        """Whether connections are accepted."""
        return self._listeners.is_serving

    # Life

    def _start(self) -> None:
        if self._sweep is None:
            self._sweep = self._tasks.spawn("broker sweep", self._tick, OnFailure.RESTART)

    async def _tick(self) -> None:
        while True:
            for _ in sweep(self.core):
                await asyncio.sleep(0)
            if self.settings.sys_interval_s and self.core.clock() >= self._next_sys_s:
                self._next_sys_s = self.core.clock() + self.settings.sys_interval_s
                self._publish_sys()
            await asyncio.sleep(self.settings.sweep_interval_s)

    def _publish_sys(self) -> None:
        figures = sys_topics(
            self.stats,
            uptime_s=self.core.clock() - self._started_s,
            sessions=len(self.sessions),
            retained=self.retained.count,
        )
        for topic, value in figures:
            self.publish(topic, value.encode(), retain=True)

    @property
    def intake_paused(self) -> bool:
        """Whether reading from clients is stopped by ``pause_intake``."""
        return self.core.connections.is_paused

    def pause_intake(self) -> None:
        """Stops reading from all clients, those that log in later included; what becomes of a login they are told."""
        self.core.connections.pause()

    def resume_intake(self) -> None:
        """Reads from all clients again."""
        self.core.connections.resume()

    def hold_owners(self, owners: Collection[str]) -> None:
        """Reads nothing from these owners' clients, those that log in later included, until the next call."""
        self.core.connections.hold_owners(owners)

    async def stop_listening(self) -> None:
        """Accepts no connection any more; those that are open are left alone."""
        self.core.connections.refuse_more()
        await self._listeners.close()

    async def close(self, timeout_s: float) -> None:
        """Stops accepting, disconnects clients (v5: 0x8B), flushes, closes; aborts what is left after ``timeout_s``."""
        await self.stop_listening()
        await self.core.connections.close(timeout_s)
        self.core.peer_tasks.cancel()
        await self.core.peer_tasks.finish()
        if self._sweep is not None:
            await self._sweep.stop()
        await self._listeners.finish()
        await self.core.storage.close()

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy in ``path`` of what its storage has on disk, while it runs: the backup.

        What was acknowledged before is in it. With a storage in memory there is nothing, and no ``path``.

        Raises:
            StorageError: it could not be made.
        """
        await self.core.storage.checkpoint(path)

    # What the embedding program sends and asks

    def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 0,
        retain: bool = False,
        properties: PublishProperties | None = None,
        publisher: str | None = None,
        owner: str = EVERYBODY,
    ) -> int:
        """Publishes on the server's own behalf, without asking the hooks; how many sessions it goes to: 0 where
        it takes turns of the loop to reach them all.

        ``publisher``: whose no-local subscriptions don't count. ``owner``: whose clients hear it.
        """
        core = self.core
        if publisher is not None:
            core.retained.ledger.own_clients.add(publisher)  # it has its owner's share
        given, heard_by = properties or PublishProperties(), []

        def steps() -> Steps[None]:
            route = yield from core.router.route(PublishGrant(topic), topic.encode(), publisher, owner)
            message = core.message(route, payload, qos, retain, given, publisher)
            yield from core.distributing(route, message, core.now_us(), None)
            heard_by.append(len(route.targets) + len(route.groups))

        core.turns.start(owner, steps())
        return sum(heard_by)

    def limit_owner(self, owner: str, limits: OwnerLimits | None) -> None:
        """Gives an owner's clients limits of their own from now on; None: the settings' ones. What is there stays."""
        self.core.limit_owner(owner, limits)

    def end_retained(self, owner: str, prefix: str) -> None:
        """Ends an owner's retained messages on the topic ``prefix`` and below it: nobody gets them any more, and they
        are removed piece by piece, some thousand a second."""
        self.retained.end_below(owner, prefix)

    def subscribe_local(
        self,
        name: str,
        filters: Mapping[str, int],
        take: Callable[[ApplicationMessage], bool],
        *,
        owner: str = EVERYBODY,
    ) -> None:
        """Hands ``take`` each message of ``owner`` that a filter matches, at most at the filter's QoS, its retain flag
        kept.

        Messages published as ``publisher=name`` are left out. ``take`` is called on the loop before the publisher is
        answered; False says that there is no room.
        """
        subscriber = LocalSubscriber(name, take, owner)
        for pattern, qos in filters.items():
            subscription = TopicSubscription(pattern, qos, no_local=True, retain_as_published=True)
            self.core.add_receiver(subscriber, subscription)

    @property
    def memory(self) -> OwnerMemory:
        """What each owner's clients have in memory."""
        return OwnerMemory(self.core)

    def mark_bridged(self, name: str, broker_id: str) -> None:
        """Gives each message to a client that is a bridge this user property, and drops publishes that come back with
        it. A client is a bridge if its CONNECT has a user property of this name."""
        self.core.mark_bridged(name, broker_id)

    def send(
        self,
        client_id: str,
        topic: str,
        payload: bytes,
        *,
        correlation_data: bytes | None = None,
        response_topic: str | None = None,
        user_properties: tuple[tuple[str, str], ...] = (),
        on_outcome: Delivery,
    ) -> bool:
        """Sends at QoS 1 to exactly this client; False, and nothing happens, unless it is connected and has a
        subscription that matches at QoS 1 or 2. ``on_outcome`` follows once, perhaps only after the client has come
        back to its session and has been sent the message again."""
        session = self.sessions.get(client_id)
        connection = session.connection if session is not None else None
        if session is None or connection is None or not _may_receive(session, topic):
            return False
        properties = PublishProperties(
            correlation_data=correlation_data, response_topic=response_topic, user_properties=user_properties
        )
        message = TrackedMessage(
            topic=topic.encode(),
            payload=payload,
            qos=1,
            properties=properties.encode(),
            on_outcome=self.core.hooks.told(client_id, on_outcome),
        )
        return connection.send_each([message], self.core.now_us(), None) is None

    def disconnect(self, client_id: str, reason: int, *, end_session: bool = False, text: str = "") -> bool:
        """Ends a client's connection, with a reason code (0x98, ...) in MQTT 5; False where it is not connected.

        ``end_session``: its session is forgotten, too. ``text``: why, told to the client behind the reason.
        """
        session = self.sessions.get(client_id)
        if session is None:
            return False
        connection = session.connection
        if connection is not None:
            code = disconnect_reason(reason)
            self._tell_ended(connection.client, int(code), text)
            why = f"disconnected by the server: {code.name.lower()}"
            connection.close(f"{why}: {text}" if text else why, reason=code)
        if end_session and self.sessions.get(client_id) is session:
            self.core.end_session(session)
        return connection is not None

    def _tell_ended(self, client: Client | None, reason: int, text: str) -> None:
        if client is not None:
            cause, whose = Cause.ENDED_BY_SERVER, (client.address, client.client_id, client.owner)
            self.core.hooks.tell_refused(Refusal(cause, *whose, reason, text, client.protocol))

    def client(self, client_id: str) -> Client | None:
        """The connected client of this id; None where it is not connected."""
        return self.core.client(client_id)

    def tap(self, client_id: str, on_packet: OnPacket) -> bool:
        """Shows each packet of a client's present connection, both ways; False where it is not connected."""
        connection = self._open_connection(client_id)
        if connection is not None:
            tap(connection, on_packet)
        return connection is not None

    def untap(self, client_id: str) -> None:
        """Shows them no more."""
        connection = self._open_connection(client_id)
        if connection is not None:
            untap(connection)

    def _open_connection(self, client_id: str) -> Connection | None:
        session = self.sessions.get(client_id)
        connection = None if session is None else session.connection
        return connection if isinstance(connection, Connection) else None

    def clients(self) -> Iterable[Client]:
        """All connected clients."""
        open_ones = [each for each in self.core.connections if each.state is ConnectionState.OPEN]
        return [each.client for each in open_ones if each.client is not None]

    def at_work(self) -> str:
        """Whose bytes are handled at this moment, for whoever looks on from another thread; empty for nobody's."""
        connection = self.core.reading
        if connection is None:
            return ""
        client = connection.client
        return "bytes from a peer that has not logged in" if client is None else f"bytes from {client.client_id}"

    def forget_grants(self, client_id: str | None = None) -> None:
        """Drops cached publish grants, of one client or of all, so that the hooks are asked again."""
        if client_id is None:
            for connection in self.core.connections:
                connection.forget_grants()
        elif (session := self.sessions.get(client_id)) is not None and session.connection is not None:
            session.connection.forget_grants()


def _none(name: str) -> str:
    """The owner of everything in a broker that knows of none."""
    return ""


def _may_receive(session: Session, topic: str) -> bool:
    return any(
        each.qos and not each.filter.startswith("$share/") and matches(each.filter, topic)
        for each in session.subscriptions.values()
    )
