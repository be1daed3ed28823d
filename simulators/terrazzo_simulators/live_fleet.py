"""``LiveFleet``: a fleet for programs without asyncio (tests, scripts, a Python prompt)."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from .command import Command
from .device import Device
from .fleet import Fleet, FleetOptions
from .link import DROPPED
from .spec import TerminalSpec, parse_spec
from .statistics import Statistics

_T = TypeVar("_T")
_REMEMBERED = 1_000
_REFUSED = 0x80


class NotConnected(TimeoutError):
    """Not all terminals were connected in time; the text names them and gives the reason."""


class PublishRefused(Exception):
    """The broker did not accept a message; ``reason`` is its MQTT 5 reason code, -1 if it was never sent."""

    def __init__(self, *, uid: str, topic: str, reason: int) -> None:
        said = "was not sent" if reason == DROPPED else f"was refused with reason 0x{reason:02x}"
        super().__init__(f"{uid}: the message on {topic} {said}")
        self.uid, self.topic, self.reason = uid, topic, reason


class LiveFleet:
    """A fleet on an event loop in a thread of its own. All methods may be called from any other thread."""

    def __init__(self, terminals: Sequence[TerminalSpec | Mapping[str, Any]], options: FleetOptions) -> None:
        specs = [
            item if isinstance(item, TerminalSpec) else parse_spec(item, f"terminals[{index}]")
            for index, item in enumerate(terminals)
        ]
        self._received: dict[str, deque[Command]] = {spec.uid: deque(maxlen=_REMEMBERED) for spec in specs}
        self._handed_out = dict.fromkeys(self._received, 0)
        self._arrivals = dict.fromkeys(self._received, 0)
        self._arrived = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="terrazzo-fleet", daemon=True)
        self._thread.start()
        self._running = True
        try:
            self._fleet = self._call(self._start(specs, options), timeout_s=10)
        except BaseException:  # interrupted too: the thread must not outlive the attempt
            self._end_loop()
            raise

    @property
    def statistics(self) -> Statistics:
        """A copy of the fleet's counters."""
        return replace(self._fleet.statistics)

    def wait_connected(self, timeout_s: float = 15.0) -> None:
        """Waits until all terminals are connected and subscribed. Raises ``NotConnected``."""
        try:
            self._call(self._fleet.connected(), timeout_s=timeout_s)
        except TimeoutError:
            raise NotConnected(f"not connected within {timeout_s:g} s: {self._absent()}") from None

    def publish(
        self, uid: str, channel: str, points: Mapping[str, Any], *, qos: int | None = None, timeout_s: float = 10.0
    ) -> None:
        """Publishes points on ``g/<uid>/<channel>`` in the terminal's format, and waits for the acknowledgement.

        At QoS 0 it only waits until the message is written. Raises PublishRefused, TimeoutError.
        """
        payload = self._device(uid).codec.encode(points)
        self.publish_payload(uid, f"g/{uid}/{channel}", payload, qos=qos, timeout_s=timeout_s)

    def publish_payload(
        self, uid: str, topic: str, payload: bytes, *, qos: int | None = None, timeout_s: float = 10.0
    ) -> None:
        """Publishes bytes as they are on any topic, for tests of malformed payloads. Raises as ``publish``."""
        reason = self._call(_publish(self._device(uid), topic, payload, qos), timeout_s=timeout_s)
        if reason == DROPPED or reason >= _REFUSED:
            raise PublishRefused(uid=uid, topic=topic, reason=reason)

    def commands(self, uid: str) -> list[Command]:
        """The commands that the terminal has received, oldest first; a repeated one counts once."""
        with self._arrived:
            return list(self._received[uid])

    def wait_command(self, uid: str, timeout_s: float = 10.0) -> Command:
        """The oldest command that this method has not returned yet. Raises TimeoutError."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._arrivals[uid] > self._handed_out[uid], timeout_s):
                raise TimeoutError(f"{uid}: no command within {timeout_s:g} s")
            behind = self._arrivals[uid] - self._handed_out[uid]
            received = self._received[uid]
            behind = min(behind, len(received))
            self._handed_out[uid] = self._arrivals[uid] - behind + 1
            return received[-behind]

    def cut(self, uid: str) -> None:
        """Ends the terminal's connection without DISCONNECT, as a power cut does; it reconnects by itself."""
        self._call(_cut(self._device(uid)), timeout_s=10)

    def stop(self) -> None:
        """Disconnects all terminals and ends the thread. May be called twice."""
        if not self._running:
            return
        self._running = False
        try:
            self._call(self._fleet.stop(), timeout_s=60)
        finally:
            self._end_loop()

    def __enter__(self) -> LiveFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _start(self, specs: list[TerminalSpec], options: FleetOptions) -> Fleet:
        fleet = Fleet(specs, options)
        for device in fleet.devices.values():
            device.on_command = self._listener(device.spec.uid)
        fleet.start()
        return fleet

    def _listener(self, uid: str) -> Any:
        def listen(command: Command) -> None:
            with self._arrived:
                self._received[uid].append(command)
                self._arrivals[uid] += 1
                self._arrived.notify_all()

        return listen

    def _device(self, uid: str) -> Device:
        try:
            return self._fleet.devices[uid]
        except KeyError:
            raise ValueError(f"uid: no terminal {uid!r} in this fleet") from None

    def _absent(self) -> str:
        absent = [device for device in self._fleet.devices.values() if not device.connected.is_set()]
        return "; ".join(f"{device.spec.uid}: {device.last_error or 'no answer'}" for device in absent[:5])

    def _call(self, work: Coroutine[Any, Any, _T], *, timeout_s: float) -> _T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the fleet has been stopped")
        future: Future[_T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        finally:
            future.cancel()  # without effect on one that is done

    def _end_loop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._loop.shutdown_default_executor(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


async def _publish(device: Device, topic: str, payload: bytes, qos: int | None) -> int:
    settled: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def settle(reason: int) -> None:
        if not settled.done():
            settled.set_result(reason)

    device.send_payload(topic, payload, qos=qos, settled=settle)
    return await settled


async def _cut(device: Device) -> None:
    device.cut()
