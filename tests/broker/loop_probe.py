"""How long the event loop works in one turn, by the CPU time of its thread; and peers in threads of their own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from garbage import set_aside
from mqtt_bytes import field, frame
from turns_of_loop import WorkClock

LONGEST_S = 0.06  # a turn may take 5 ms, and some more beside other load
_LAST = b"\xab\xcd"  # a packet identifier
_ANSWER = b"\x90\x04" + _LAST + b"\0"


class LoopProbe:
    """Looks at the loop that it is started in once a turn. ``longest_s``: CPU seconds of the longest turn."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.turns = 0
        self._clock = WorkClock()
        self._loop = asyncio.get_running_loop()
        self._last_s = self._clock.now_s()
        self._handle = self._loop.call_soon(self._look)

    def _look(self) -> None:
        now_s = self._clock.now_s()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._last_s = now_s
        self.turns += 1
        self._handle = self._loop.call_soon(self._look)

    def stop(self) -> None:
        self._handle.cancel()
        self._clock.stop()


@contextmanager
def probed() -> Iterator[LoopProbe]:
    """The probe over the running loop; no turn may have been longer than ``LONGEST_S``."""
    set_aside()
    probe = LoopProbe()
    try:
        yield probe
    finally:
        probe.stop()
    assert probe.longest_s < LONGEST_S, f"one turn of the loop took {probe.longest_s * 1_000:.0f} ms of CPU"


def connect_5(client_id: str, *, clean: bool = True, properties: bytes = b"\x17\0") -> bytes:
    """A CONNECT of MQTT 5; without further properties it wants no problem information, and each answer is short."""
    head = field("MQTT") + bytes((5, 2 * clean)) + b"\0\0"
    return frame(0x10, head, bytes((len(properties),)), properties, field(client_id))


class ThreadPeer:
    """A peer in threads of its own: sends everything, and reads. ``is_answered``: what it has sent last is."""

    def __init__(self, port: int, data: bytes) -> None:
        self.received = 0
        self.is_answered = False
        self._data = data + frame(0x82, _LAST, b"\0", field("$share/last/last"), b"\0")
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._send, self._read)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        try:
            self._socket.sendall(self._data)
        except OSError:
            return  # the broker has had enough

    def _read(self) -> None:
        try:
            rest = b""
            while data := self._socket.recv(1 << 16):
                self.received += len(data)
                self.is_answered |= _ANSWER in rest + data
                rest = data[-len(_ANSWER) :]
        except OSError:
            return

    def close(self) -> None:
        """Ends it."""
        with suppress(OSError):  # the broker was faster
            self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._socket.close()
