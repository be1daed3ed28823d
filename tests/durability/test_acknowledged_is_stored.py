"""Acknowledged means stored: ``kill -9`` in the middle of a load of QoS 1 publishes loses no acknowledged message."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path

from length import rounds
from mqtt_bytes import login, publish
from running import Platform, wait_for

ROUNDS = rounds(5, 50)
TERMINALS = ("kill-1", "kill-2", "kill-3")
WINDOW = 100  # publishes in flight on a connection
PAGE = 1000


class Publisher:
    """Publishes 0, 1, 2, ... on a thread until the connection breaks; ``acknowledged`` is what was promised."""

    def __init__(self, port: int, uid: str, first: int) -> None:
        self.uid = uid
        self.next = first
        self.acknowledged: set[int] = set()
        self.silent_s = 0.0  # the longest without a PUBACK
        self._in_flight: dict[int, int] = {}  # packet id -> number
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert self._socket.recv(4) == b"\x20\x02\x00\x00"
        self.thread = threading.Thread(target=self._run, name=f"publisher {uid}")
        self.thread.start()

    def _run(self) -> None:
        try:
            while self._exchange():
                pass
        except ConnectionError:
            return
        finally:
            self._socket.close()

    def _exchange(self) -> bool:
        blank = [number for number in range(1, WINDOW + 1) if number not in self._in_flight]
        self._socket.sendall(b"".join(self._publish(packet_id) for packet_id in blank))
        asked_s = time.monotonic()
        answer = self._socket.recv(4096)
        if answer:
            self.silent_s = max(self.silent_s, time.monotonic() - asked_s)
        while len(answer) % 4:
            answer += self._socket.recv(4096)
        for start in range(0, len(answer), 4):
            assert answer[start : start + 2] == b"\x40\x02", answer
            (packet_id,) = struct.unpack_from(">H", answer, start + 2)
            self.acknowledged.add(self._in_flight.pop(packet_id))
        return bool(answer)

    def _publish(self, packet_id: int) -> bytes:
        number, self.next = self.next, self.next + 1
        self._in_flight[packet_id] = number
        return publish(f"g/{self.uid}/r", b'{"n":%d}' % number, packet_id=packet_id)


def stored_numbers(platform: Platform, uid: str) -> list[int]:
    """All numbers of a terminal, read back through ``get_grid_list``."""
    span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": PAGE}
    numbers: list[int] = []
    index = 1
    while True:
        page = platform.call("get_grid_list", terminal_id=uid, topic=["r"], page_index=index, **span)
        numbers += [record["payload"]["n"] for record in page["data"]]
        if index >= page["total_pages"]:
            assert len(numbers) == page["total_records"]
            return numbers
        index += 1


def test_ten_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    promised: dict[str, set[int]] = {uid: set() for uid in TERMINALS}
    following = dict.fromkeys(TERMINALS, 0)
    platform = Platform(tmp_path / "data")
    try:
        platform.login()
        config = platform.add_config()
        for uid in TERMINALS:
            platform.add_terminal(uid, config)
        for round_number in range(ROUNDS):
            publishers = [Publisher(platform.mqtt, uid, following[uid]) for uid in TERMINALS]
            enough = 300 * (round_number + 1)
            wait_for(lambda: all(len(p.acknowledged) >= enough for p in publishers), "a load under way")  # noqa: B023
            platform.kill()
            for publisher in publishers:
                publisher.thread.join(10)
                assert not publisher.thread.is_alive()
                promised[publisher.uid] |= publisher.acknowledged
                following[publisher.uid] = publisher.next
            platform = platform.again().login()
            for uid in TERMINALS:
                numbers = stored_numbers(platform, uid)
                assert promised[uid] <= set(numbers), f"round {round_number}: {sorted(promised[uid] - set(numbers))}"
                assert len(numbers) == len(set(numbers)), "stored twice"
    finally:
        platform.kill()
    assert all(len(numbers) >= 300 * ROUNDS for numbers in promised.values())
