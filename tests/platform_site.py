"""The terminals' side of a platform in this process; and paho clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from own_platform import ListenAddresses, Platform, Ports, own_platform
from terrazzo.domain.actor import Actor, Role
from terrazzo.ports.store import Record
from waiting import until

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)


class Site:
    """One running platform on a data folder, its parts at hand; a second one on the same folder is a restart."""

    def __init__(self, platform: Platform, addresses: ListenAddresses) -> None:
        self.platform = platform
        self.port = addresses.mqtt_port
        self.store = platform.store
        self.entities = platform.metadata.entities
        lines, terminals = platform.messaging, platform.terminals
        self.presence, self.bus, self.ingest, self.commands = lines.presence, lines.bus, lines.ingest, lines.commands
        self.login, self.activations, self.broker = terminals.login, terminals.activations, terminals.broker

    async def company(self, name: str = "one") -> Company:
        """A new company with an administrator and a configuration."""
        company = await self.entities.companies.create(ROOT, {"name": name})
        actor = Actor(user_id=1, username=name, company_id=company["id"], role=Role.ADMIN)
        config = await self.entities.configurations.create(actor, {"name": f"config of {name}"})
        return Company(self, actor, config["uid"])

    async def grid(self, series: str) -> list[Record]:
        """All records of a series, oldest first."""
        page = await self.store.page([series], 0, 2**62, offset=0, limit=100_000)
        return page.records[::-1]


@dataclass
class Company:
    """Whose terminals a test works with."""

    site: Site
    actor: Actor
    config: str

    async def terminal(self, uid: str, **values: Any) -> Any:
        """Creates a terminal with the pin ``pin-<uid>`` and the user name ``u-<uid>``."""
        base = {"uid": uid, "name": uid, "type": "Other", "mode": "pwd", "config_id": self.config}
        credentials = {"username": f"u-{uid}", "pin": f"pin-{uid}"[:16]}
        return await self.site.entities.terminals.create(self.actor, base | credentials | values)

    async def object(self, *terminals: str) -> Any:
        """Creates an object that these terminals serve."""
        return await self.site.entities.objects.create(self.actor, {"name": "o", "terminal_list": list(terminals)})


@asynccontextmanager
async def running_site(
    folder: Path, *, ports: Ports | None = None, **sections: Mapping[str, Any]
) -> AsyncIterator[Site]:
    """A started site, stopped at the end. Failed logins are not limited unless the section ``limits`` says so."""
    limits = {"login_failures": 0, **sections.pop("limits", {})}
    async with own_platform(folder, ports=ports, limits=limits, **sections) as (platform, addresses):
        yield Site(platform, addresses)


class Peer:
    """A paho client that is waited for with ``await``; codes are those of the protocol that it speaks."""

    def __init__(self, site: Site, uid: str, *, protocol: int = 5, clean: bool = True) -> None:
        version = paho.MQTTv5 if protocol == 5 else paho.MQTTv311
        options = {} if protocol == 5 else {"clean_session": clean}
        self._site, self._uid, self._protocol, self._clean = site, uid, protocol, clean
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, uid, protocol=version, reconnect_on_failure=False, **options
        )
        self.messages: list[Any] = []
        self.connack: Any = None
        self.disconnected: Any = None
        self.told = ""  # the last Reason String
        self.is_down = threading.Event()
        self._acks: dict[tuple[str, int], Any] = {}
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_message = lambda _client, _data, message: self.messages.append(message)
        self.client.on_publish = lambda _c, _d, mid, reason, said: self._note_ack(("pub", mid), reason, said)
        self.client.on_subscribe = lambda _c, _d, mid, reasons, said: self._note_ack(("sub", mid), reasons, said)

    def _note_ack(self, which: tuple[str, int], reason: Any, properties: Any) -> None:
        self.told = getattr(properties, "ReasonString", "")
        self._acks[which] = reason

    def _on_connect(self, _client: Any, _data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.told = getattr(properties, "ReasonString", "")
        self.connack = (reason, flags, properties)

    def _on_disconnect(self, _client: Any, _data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.told = getattr(properties, "ReasonString", self.told)
        self.disconnected = reason.value if flags.is_disconnect_packet_from_server else None
        self.is_down.set()

    async def connect(
        self,
        username: str | None = "",
        password: str | None = "",
        *,
        expiry_s: int = 0,
        keep_alive_s: int = 60,
        problem_information: bool = True,
    ) -> int:
        """Logs in, with the credentials that ``Company.terminal`` gives; the CONNACK's code."""
        username = f"u-{self._uid}" if username == "" else username
        password = f"pin-{self._uid}"[:16] if password == "" else password
        if username is not None:
            self.client.username_pw_set(username, password)
        more: dict[str, Any] = {}
        if self._protocol == 5:
            more = {"clean_start": self._clean, "properties": Properties(PacketTypes.CONNECT)}
            more["properties"].SessionExpiryInterval = expiry_s
            if not problem_information:
                more["properties"].RequestProblemInformation = 0
        self.connack, self.disconnected = None, None
        self.is_down.clear()
        await asyncio.to_thread(self.client.connect, "127.0.0.1", self._site.port, keep_alive_s, **more)
        self.client.loop_start()
        await until(lambda: self.connack or self.is_down.is_set(), f"{self._uid} connects")
        assert self.connack is not None, "closed without a CONNACK"
        return int(self.connack[0].value)

    async def publish(
        self, topic: str, payload: bytes, qos: int = 1, correlation: bytes | None = None, *, retain: bool = False
    ) -> int:
        """Publishes; at QoS 1 and 2 waits for the acknowledgement and returns its reason code."""
        properties = None
        if correlation is not None:
            properties = Properties(PacketTypes.PUBLISH)
            properties.CorrelationData = correlation
        info = self.client.publish(topic, payload, qos, retain, properties)
        if qos:
            await until(lambda: ("pub", info.mid) in self._acks, f"{topic} is acknowledged")
            return int(self._acks[("pub", info.mid)].value)
        return 0

    def send(self, topic: str, payload: bytes, qos: int = 1) -> Callable[[], bool]:
        """Publishes without waiting; tells later whether it was acknowledged."""
        info = self.client.publish(topic, payload, qos)
        return lambda: ("pub", info.mid) in self._acks

    async def subscribe(self, topic_filter: str, qos: int = 1) -> int:
        """Subscribes; the SUBACK's code."""
        _, mid = self.client.subscribe(topic_filter, qos)
        await until(lambda: ("sub", mid) in self._acks, f"{topic_filter} is acknowledged")
        return int(self._acks[("sub", mid)][0].value)

    async def received(self, count: int) -> list[Any]:
        """The messages so far, at least ``count``."""
        await until(lambda: len(self.messages) >= count, f"{self._uid} receives {count}, has {len(self.messages)}")
        return self.messages

    async def gone(self) -> int | None:
        """Waits until the server has closed; the DISCONNECT's reason code, None without one."""
        await until(self.is_down.is_set, f"{self._uid} is disconnected")
        return self.disconnected

    async def cut(self) -> None:
        """Ends the connection as a power cut does."""
        socket = self.client.socket()
        if socket is not None:
            socket.shutdown(2)
        await until(self.is_down.is_set, f"{self._uid} is cut")
        await asyncio.to_thread(self.client.loop_stop)

    async def close(self) -> None:
        """Ends the connection in order."""
        self.client.disconnect()
        await asyncio.to_thread(self.client.loop_stop)


@asynccontextmanager
async def peers(site: Site):
    """Makes peers and closes them at the end."""
    made: list[Peer] = []

    def make(uid: str, **options: Any) -> Peer:
        made.append(Peer(site, uid, **options))
        return made[-1]

    try:
        yield make
    finally:
        for peer in made:
            await peer.close()


def unix_s() -> int:
    """Seconds since the epoch."""
    return int(time.time())


# Fixtures, for the conftest of each folder whose tests need a site


@pytest.fixture
async def site(tmp_path: Path):
    async with running_site(tmp_path) as running:
        yield running


@pytest.fixture
async def company(site: Site) -> Company:
    return await site.company()


@pytest.fixture
async def peer(site: Site):
    async with peers(site) as make:
        yield make
