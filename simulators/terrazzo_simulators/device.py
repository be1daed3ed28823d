"""``Device``: a terminal on its connection. It logs in, reports, carries out commands, and reconnects."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, islice

from .claim import Claim
from .clock import Clock
from .command import Command, CommandError, parse_command
from .download import Download, DownloadError
from .faults import Fate, FaultPlan, Faults
from .gate import Gate
from .kept import kept_messages
from .link import DROPPED, Inbound, Link, LinkError, LoginRefused
from .login import Credentials
from .payload import Codec, PayloadError
from .spec import TerminalSpec
from .statistics import Statistics
from .terminal import Message, Terminal

_WRONG_CREDENTIALS = 0x86  # of MQTT 5; the return code 4 of 3.1.1
_KEPT_AT_ONCE = 40  # reports on their way to the broker; the next ones follow when all are acknowledged
_REFUSED = 0x80  # reason codes from here on are failures [MQTT-2.4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How the terminals of a fleet behave: intervals, QoS, delays, faults."""

    interval_s: float | None = 5.0  # between reports; None: none by itself
    qos: int = 1
    seed: int = 1
    reboot_s: float = 2.0
    upgrade_s: float = 3.0
    download_bytes: int = 0  # fetch firmware over http in pieces of so many bytes; 0: only pretend to
    backoff_s: float = 0.5  # after the first failure; doubles
    backoff_most_s: float = 30.0
    faults: Faults = field(default_factory=Faults)


class Device:
    """One simulated terminal that is running. ``commands``: those that it received, oldest first."""

    def __init__(
        self,
        spec: TerminalSpec,
        *,
        habits: Habits,
        clock: Clock,
        link: Link,
        gate: Gate,
        statistics: Statistics,
        claim: Claim | None = None,
    ) -> None:
        self._claim = claim
        self._is_claiming = claim is not None  # until it has logged in
        self._has_credentials = False
        self.spec = spec
        self.on_command: Callable[[Command], None] = _unheard
        self.link = link
        self.connected = asyncio.Event()
        self.last_error: Exception | None = None
        self._habits, self._clock, self._gate, self._statistics = habits, clock, gate, statistics
        self._terminal = Terminal(spec, seed=habits.seed, upgrade_failure=habits.faults.upgrade_failure)
        self._plan = FaultPlan(habits.faults, seed=habits.seed, uid=spec.uid)
        self._credentials = Credentials(spec)
        self.codec = Codec(spec)
        self._random = random.Random(f"{habits.seed}:{spec.uid}")  # made-up readings  # nosec B311
        self._settled = asyncio.Event()
        self._settled.set()
        self._kept = kept_messages(spec, self._terminal, self._wall_s)
        self._is_delivering = False
        self._postponed: list[Inbound] = []
        self._interval_s = habits.interval_s if spec.interval_s is None else spec.interval_s
        self._tick = 0
        self._message = 0
        self._failures = 0
        self._rebooting = False
        self._started = False
        self._timers: set[asyncio.TimerHandle] = set()
        self._download: Download | None = None
        self._downloads = 0
        self._upgrading: asyncio.Task[None] | None = None
        link.on_message = self._on_message

    async def run(self) -> None:
        """Runs until cancelled; reconnects whenever the connection ends."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await self._gate.enter()
                if await self._connect():
                    await self._stay()
                await self._rest()
        finally:
            self.hush()
            await self._stop_upgrading()

    def hush(self) -> None:
        """Stops everything that the terminal sends by itself."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    async def drained(self) -> None:
        """Waits until all messages are acknowledged, if there is a connection for it."""
        if self.connected.is_set():
            await self._settled.wait()

    def send(self, message: Message, settled: Callable[[int], None] | None = None) -> None:
        """Publishes a message of the terminal; ``settled`` as in ``send_payload``."""
        topic = message.topic or f"g/{self.spec.uid}/{message.channel}"
        self.send_payload(topic, self.codec.encode(message.points), correlation=message.correlation, settled=settled)

    def send_payload(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int | None = None,
        correlation: bytes | None = None,
        settled: Callable[[int], None] | None = None,
    ) -> None:
        """Publishes bytes as they are; ``settled`` receives the reason code, DROPPED if it was never sent."""
        qos = self._habits.qos if qos is None else qos
        self._statistics.published += 1
        self._settled.clear()

        def count(reason: int) -> None:
            self._count(reason, qos)
            if self.link.outstanding == 0:
                self._settled.set()
            if settled is not None:
                settled(reason)

        self.link.publish(topic, payload, qos=qos, correlation=correlation, settled=count)

    def cut(self) -> None:
        """Ends the connection without DISCONNECT, as a power cut does."""
        self.link.cut()

    def cut_power(self) -> None:
        """Ends the connection and everything in progress; the terminal starts again and reports its information."""
        self._terminal.lose_upgrades()
        if self._upgrading is not None:
            self._upgrading.cancel()
        self._reboot()

    async def _connect(self) -> bool:
        try:
            await self._be_provisioned()
            granted = await self.link.open(self._credentials.password(self._wall_s()))
        except (LinkError, OSError, TimeoutError) as error:
            self.last_error = error
            self._failures += 1
            if isinstance(error, LoginRefused):
                self._statistics.login_refused += 1
                if error.reason == _WRONG_CREDENTIALS:
                    self._has_credentials = False  # they may have expired: ask for others
            else:
                self._statistics.unreachable += 1
            return False
        self._failures = 0
        self._is_claiming = False
        self._statistics.connects += 1
        self._statistics.connected += 1
        self._statistics.subscribe_refused += not granted
        return True

    async def _be_provisioned(self) -> None:
        """With a claim key: asks for credentials, unless there are some that may be good."""
        if self._claim is None or not self._is_claiming or self._has_credentials:
            return
        self.spec = await self._claim.ask(self.spec)
        self.link.username = self.spec.username
        self._credentials, self.codec = Credentials(self.spec), Codec(self.spec)
        self._has_credentials = True
        self._statistics.claims += 1

    async def _stay(self) -> None:
        """Uses one connection, from the CONNACK until it ends."""
        self.connected.set()
        try:
            if not self._started:
                await self._deliver_kept()
            if self.connected.is_set() and not self.link.closed.is_set() and (not self._started or self._rebooting):
                self._rebooting = False
                self._come_up()
            await self.link.closed.wait()
            self._statistics.disconnects += 1  # those of stopping do not count
        finally:
            self.connected.clear()
            self._statistics.connected -= 1

    async def _deliver_kept(self) -> None:
        """Delivers what was kept, as far as this connection goes; the next one goes on there. Commands wait."""
        self._is_delivering = True
        while not self.link.closed.is_set() and (reports := list(islice(self._kept, _KEPT_AT_ONCE))):
            for message in chain.from_iterable(reports):
                self.send(message)
            await self._settled_or_closed()
        if self.link.closed.is_set():
            return
        self._is_delivering = False
        postponed, self._postponed = self._postponed, []
        for inbound in postponed:
            self._on_message(inbound)

    async def _settled_or_closed(self) -> None:
        waiting = [asyncio.create_task(event.wait()) for event in (self._settled, self.link.closed)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    def _come_up(self) -> None:
        first, self._started = not self._started, True
        if self._habits.interval_s is None and not self._habits.download_bytes:
            return
        for message in self._terminal.start(self._time_s()):
            self.send(message)
        if first and self._interval_s:
            self._later(self._random.uniform(0, self._interval_s), self._report)

    async def _rest(self) -> None:
        """Pauses before the next attempt, longer after each failure, and with a jitter of each terminal's own."""
        if self._rebooting and self._failures == 0:
            await asyncio.sleep(self._habits.reboot_s)
            return
        if self.spec.retry_s and self._failures:
            await asyncio.sleep(self.spec.retry_s)
            return
        most_s = min(self._habits.backoff_most_s, self._habits.backoff_s * 2 ** min(self._failures, 16))
        await asyncio.sleep(self._random.uniform(most_s / 2, most_s))

    def _report(self) -> None:
        assert self._interval_s
        self._later(self._interval_s, self._report)
        if self._rebooting:
            return
        messages = self._terminal.report(self._time_s())
        self._tick += 1
        for message in messages:
            self._send_with_faults(message)

    def _send_with_faults(self, message: Message) -> None:
        self._message += 1
        fate = self._plan.fate(self._message)
        if fate is Fate.SEND:
            self.send(message)
        elif fate is Fate.GARBLE:
            self._statistics.malformed += 1
            payload = self._plan.garble(self.codec.encode(message.points), self._message)
            self.send_payload(f"g/{self.spec.uid}/{message.channel}", payload)
        else:
            self._statistics.lost += 1
            if fate is Fate.CUT:
                self.link.cut()

    def _on_message(self, inbound: Inbound) -> None:
        if self._is_delivering:
            self._postponed.append(inbound)
            return
        self._statistics.commands += 1
        command = Command(
            act="", correlation=inbound.correlation, response_topic=inbound.response_topic, payload=inbound.payload
        )
        try:
            points = self.codec.decode(inbound.payload)
            command = parse_command(
                points,
                correlation=inbound.correlation,
                response_topic=inbound.response_topic,
                payload=inbound.payload,
            )
        except (PayloadError, CommandError) as error:
            self._statistics.unreadable += 1
            self.send(self._terminal.refuse(command, str(error), self._time_s()))
            return
        self._obey(command)

    def _obey(self, command: Command) -> None:
        reaction = self._terminal.obey(command, self._time_s())
        if reaction.repeated:
            self._statistics.repeated += 1
        else:
            self.on_command(command)
        for message in reaction.messages[1:]:
            self.send(message)
        answer = reaction.messages[0]
        if reaction.reboots:
            # Off only when the answer has arrived, or it would be lost with the connection.
            self.send(answer, settled=lambda reason: self._later(0.05, self._reboot))
        else:
            self.send(answer)
        if reaction.upgrades:
            self._begin_upgrade(str(command.values["URL"]))

    def _begin_upgrade(self, url: str) -> None:
        if not self._habits.download_bytes or not url.startswith("http"):
            self._later(self._habits.upgrade_s, self._finish_upgrade)
            return
        if self._download is not None and self._download.is_of(url):
            self._statistics.resumed += not self._download.is_complete
            self._download.take_up(url)
        else:
            self._download = Download(url, piece_bytes=self._habits.download_bytes)
        if self._upgrading is not None:
            self._upgrading.cancel()
        self._downloads += 1
        self._upgrading = asyncio.create_task(
            self._upgrade(self._download, self._plan.cut_after(self._downloads)), name=f"upgrade {self.spec.uid}"
        )

    async def _upgrade(self, download: Download, cut_after: int | None) -> None:
        """Downloads the file, installs it, and reports the version; or loses its power after ``cut_after`` pieces."""
        before = download.pieces

        def watch(pieces: int) -> None:
            if cut_after is not None and pieces - before >= cut_after and not download.is_complete:
                self._statistics.power_cuts += 1
                self.cut_power()

        try:
            await download.run(watch)
            self._statistics.downloads += 1
            await asyncio.sleep(self._habits.upgrade_s)
        except DownloadError as error:
            messages = self._terminal.fail_upgrade(str(error), self._time_s())
        else:
            if self._plan.is_defective:
                messages = self._terminal.fail_upgrade("the new program does not start", self._time_s())
            else:
                messages = self._terminal.finish_upgrade(self._time_s())
        for message in messages:
            self.send(message)

    async def _stop_upgrading(self) -> None:
        if self._upgrading is not None:
            self._upgrading.cancel()
            await asyncio.gather(self._upgrading, return_exceptions=True)

    def _reboot(self) -> None:
        self._rebooting = True
        self.link.cut()

    def _finish_upgrade(self) -> None:
        for message in self._terminal.finish_upgrade(self._time_s()):
            self.send(message)

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        def act() -> None:
            self._timers.discard(timer)
            action()

        timer = self._loop.call_later(delay_s, act)
        self._timers.add(timer)

    def _count(self, reason: int, qos: int) -> None:
        if reason == DROPPED:
            self._statistics.dropped += 1
        elif reason >= _REFUSED:
            self._statistics.refused += 1
        elif qos > 0:
            self._statistics.acknowledged += 1

    def _time_s(self) -> float:
        return self._clock.time_s(self._tick) + self._plan.skew_s

    def _wall_s(self) -> float:
        """The time for mode ``auto``: the machine's plus the terminal's skew; the platform compares it with its own."""
        return time.time() + self._plan.skew_s


def _unheard(command: Command) -> None:
    """The default listener for commands: does nothing."""
