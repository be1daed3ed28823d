"""A company beside an attacked or attacking one: what it does all the time, and how long it waits for it.

200 reports a second at QoS 1 from ten terminals, at their times whatever has been acknowledged; each second a ping, a
page of history and a command that its terminal answers; a subscriber on a WebSocket who gets all reports; a statistics
job and a balance (``bystander_results.py``). Where it is asked for, somebody logs in each second, too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import paho.mqtt.client as paho
from attacks.company import Company
from bystander_results import Results, Span
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from live import Follower
from mqtt_bytes import login, publish
from running import PASSWORD
from terrazzo.client import ClientError

TERMINALS = 10
INTERVAL_S = TERMINALS / 200
COMMANDED = "b-commanded"
PATIENCE_S = 30.0
ALIVE_S = 5.0
AGAIN_S = 0.5  # after a connection was lost
QUIET_S = 1.0  # without a frame: all are there


@dataclass
class Waits:
    """Times in milliseconds; what was never answered waited until the end. ``failed`` counts reasons."""

    puback: list[float] = field(default_factory=list)
    ping: list[float] = field(default_factory=list)
    page: list[float] = field(default_factory=list)
    login: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    frames: int = 0
    commands: int = 0
    answered: int = 0
    own_delay_ms: float = 0.0  # how late this process came to its own work
    statistics_s: list[float] = field(default_factory=list)
    balance_s: list[float] = field(default_factory=list)

    @property
    def lost_frames(self) -> int:
        """Acknowledged reports that the subscriber was not told of."""
        return max(0, self.reports - self.frames)


class Reporter(asyncio.Protocol):
    """One terminal's connection: reports when it is time to, and notes when each was acknowledged."""

    def __init__(self, uid: str, waits: Waits, topic: str) -> None:
        self.logged_in = asyncio.get_running_loop().create_future()
        self.lost = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._uid = uid
        self._waits = waits
        self._topic = topic
        self._sent_s: dict[int, float] = {}
        self._ids = itertools.cycle(range(1, 65_536))
        self._buffer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.write(login(self._uid, f"u-{self._uid}", f"pin-{self._uid}"[:16]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        now_s = time.perf_counter()
        data = self._buffer + data
        whole = len(data) & ~3  # CONNACK and PUBACK of MQTT 3.1.1 have four bytes
        for at in range(0, whole, 4):
            if data[at] == 0x20:
                self.logged_in.set_result(data[at + 3])
            elif (sent_s := self._sent_s.pop(int.from_bytes(data[at + 2 : at + 4], "big"), None)) is not None:
                self._waits.puback.append((now_s - sent_s) * 1_000)
                self._waits.reports += 1
        if not self._sent_s:
            self._acknowledged.set()
        self._buffer = data[whole:]

    def report(self, payload: bytes) -> None:
        """Sends one."""
        packet_id = next(self._ids)
        self._acknowledged.clear()
        self._sent_s[packet_id] = time.perf_counter()
        self._transport.write(publish(self._topic, payload, packet_id=packet_id))

    async def finish(self) -> None:
        """Waits for what is not acknowledged, and notes what never is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.wait(
                    [asyncio.create_task(each.wait()) for each in (self.lost, self._acknowledged)],
                    return_when=asyncio.FIRST_COMPLETED,
                )
        self._transport.close()
        now_s = time.perf_counter()
        self._waits.puback += [(now_s - sent_s) * 1_000 for sent_s in self._sent_s.values()]
        if self._sent_s:
            self._waits.failed["reports not acknowledged"] += len(self._sent_s)


class Bystander:
    """The company ``b`` with its terminals and users, at work in this process; ``logs_in``: each second, too."""

    def __init__(self, company: Company, *, logs_in: bool = False) -> None:
        self.waits = Waits()
        self._logs_in = logs_in
        self._given = 0  # commands
        self._company = company
        self._uids = [company.terminal(f"b-{n}") for n in range(TERMINALS)]
        company.terminal(COMMANDED)
        self._object = company.object(*self._uids, rows=[["T", "", "", "STA", f"{self._uids[1]}.T", ""]])
        self._results = Results(company)

    async def run(self, span: Span) -> None:
        """All of it for so long, and until what was begun has ended."""
        self.waits = Waits()
        await self._results.first()
        span.begin()
        async with aiohttp.ClientSession() as http, self._subscribed() as follower:
            with commanded(self._company.platform.mqtt):
                tasks = [
                    *(self._report(uid, n, span) for n, uid in enumerate(self._uids)),
                    self._each_second("ping", http, span),
                    self._each_second("page", http, span),
                    self._command(http, span),
                    self._own_delay(span),
                    self._results.run(http, span),
                ]
                if self._logs_in:
                    tasks.append(self._each_second("login", http, span))
                await asyncio.gather(*tasks)
                ages = self._results.ages
                self.waits.statistics_s, self.waits.balance_s = ages.statistics, ages.balance
                await self._until_answered()
            await self._until_told(follower)

    async def _report(self, uid: str, number: int, span: Span) -> None:
        await asyncio.sleep(INTERVAL_S * number / TERMINALS)
        topic = f"g/{uid}/r" if number else "g/r/a"  # one of them in the short form
        while not span.is_over:
            reporter = await self._connect(uid, topic)
            if reporter is None:
                await asyncio.sleep(AGAIN_S)
                continue
            due_s = time.monotonic()
            while not span.is_over and not reporter.lost.is_set():
                reporter.report(json.dumps({"T": due_s, "sent": time.time()}).encode())
                due_s += INTERVAL_S
                await asyncio.sleep(due_s - time.monotonic())
            if reporter.lost.is_set():
                self.waits.failed[f"{uid} was disconnected"] += 1
            await reporter.finish()

    async def _connect(self, uid: str, topic: str) -> Reporter | None:
        loop = asyncio.get_running_loop()
        began_s = time.perf_counter()
        try:
            _, reporter = await loop.create_connection(
                lambda: Reporter(uid, self.waits, topic), "127.0.0.1", self._company.platform.mqtt
            )
            code = await asyncio.wait_for(reporter.logged_in, PATIENCE_S)
        except (OSError, TimeoutError) as error:
            self._missed("puback", began_s, f"{uid}'s login: {type(error).__name__}")
            return None
        if code:
            self._missed("puback", began_s, f"{uid}'s login: CONNACK {code}")
            return None
        return reporter

    async def _each_second(self, name: str, http: aiohttp.ClientSession, span: Span) -> None:
        asked = []
        while not span.is_over:
            asked.append(asyncio.create_task(self._timed(name, self._ask(http, name)), name=name))
            await asyncio.sleep(1.0)
        await asyncio.gather(*asked)

    async def _timed(self, name: str, asked: Awaitable[Any]) -> None:
        began_s = time.perf_counter()
        try:
            envelope = await asyncio.wait_for(asked, PATIENCE_S)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._missed(name, began_s, f"{name}: {type(error).__name__}")
            return
        getattr(self.waits, name).append((time.perf_counter() - began_s) * 1_000)
        if envelope["code"] != 200:
            self.waits.failed[f"{name}: {envelope['code']} {envelope['info'][:80]}"] += 1

    async def _ask(self, http: aiohttp.ClientSession, name: str) -> Any:
        if name == "ping":
            return await self._post(http, {"action": "ping"})
        if name == "login":
            user = {"username": f"{self._company.name}-viewer", "password": PASSWORD}
            return await self._post(http, {"action": "login", **user})
        now = datetime.now(UTC)
        start, end = (now - timedelta(hours=1)).isoformat(), now.isoformat()
        times = {"start_time": start, "end_time": end, "page_size": 20}
        return await self._post(http, {"action": "get_grid_list", "terminal_id": self._uids[1], **times})

    async def _command(self, http: aiohttp.ClientSession, span: Span) -> None:
        request = {"action": "publish_terminal_command", "terminal_id": COMMANDED, "command": "SP", "value": 1}
        while not span.is_over:
            began_s = time.monotonic()
            try:
                envelope = await asyncio.wait_for(self._post(http, request), PATIENCE_S)
                self.waits.commands += envelope["code"] == 200
                self._given += envelope["code"] == 200
                if envelope["code"] != 200:
                    self.waits.failed[f"command: {envelope['code']} {envelope['info'][:80]}"] += 1
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.waits.failed[f"command: {type(error).__name__}"] += 1
            await asyncio.sleep(max(0.0, 1.0 - time.monotonic() + began_s))

    async def _post(self, http: aiohttp.ClientSession, request: dict[str, Any]) -> Any:
        url = f"{self._company.platform.url}/apiproxy/api"
        headers = {"Authorization": f"Bearer {self._company.tokens['admin']}"}
        async with http.post(url, json=request, headers=headers) as answer:
            return await answer.json()

    async def _own_delay(self, span: Span) -> None:
        while not span.is_over:
            due_s = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.waits.own_delay_ms = max(self.waits.own_delay_ms, (time.monotonic() - due_s) * 1_000)

    async def _until_answered(self) -> None:
        """Until the journal has all commands as answered, for some seconds at most."""
        for _ in range(20):
            asked = {"terminal_id": COMMANDED, "state": "answered", "page_size": 1}
            try:
                found = await asyncio.to_thread(self._company.call, "get_command_list", **asked)
            except ClientError as error:
                self.waits.failed[f"list of commands: {type(error).__name__}"] += 1
                return
            unanswered = self._given - found["total_records"]
            self.waits.answered = self.waits.commands - unanswered
            if unanswered <= 0:
                return
            await asyncio.sleep(0.25)

    @asynccontextmanager
    async def _subscribed(self) -> AsyncIterator[Follower]:
        loop = asyncio.get_running_loop()
        platform, token = self._company.platform, self._company.tokens["viewer"]
        transport, follower = await loop.create_connection(
            lambda: Follower(token, int(self._object)), "127.0.0.1", platform.websocket
        )
        if not await asyncio.wait_for(follower.subscribed, PATIENCE_S):
            raise SystemExit("the subscriber could not subscribe")
        alive = asyncio.create_task(_say_alive(transport), name="subscriber")
        try:
            yield follower
        finally:
            alive.cancel()
            transport.close()

    async def _until_told(self, follower: Follower) -> None:
        before = -1
        while before < follower.frames < self.waits.reports:
            before = follower.frames
            await asyncio.sleep(QUIET_S)
        follower.finish()
        self.waits.frames = follower.frames

    def _missed(self, name: str, began_s: float, reason: str) -> None:
        getattr(self.waits, name).append((time.perf_counter() - began_s) * 1_000)
        self.waits.failed[reason] += 1


async def _say_alive(transport: asyncio.WriteTransport) -> None:
    """Sends the answers to pings of a WebSocket's server before it asks [RFC 6455, 5.5.3]; the follower reads none."""
    while True:
        transport.write(b"\x8a\x80" + bytes(4))
        await asyncio.sleep(ALIVE_S)


@contextmanager
def commanded(port: int) -> Iterator[None]:
    """A terminal that answers its commands, meanwhile."""

    def answer(client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = message.properties.CorrelationData
        client.publish(f"g/{COMMANDED}/n", b'{"Result": "ok"}', qos=1, properties=properties)

    client = paho.Client(paho.CallbackAPIVersion.VERSION2, COMMANDED, protocol=paho.MQTTv5)
    client.username_pw_set(f"u-{COMMANDED}", f"pin-{COMMANDED}"[:16])
    client.on_connect = lambda *_: client.subscribe(f"p2p/{COMMANDED}", qos=1)
    client.on_message = answer
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        yield
    finally:
        client.disconnect()
        client.loop_stop()
