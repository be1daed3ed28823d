"""Messages one at a time from one connection to another: how long each takes."""

from __future__ import annotations

import time

from terrazzo_bench.packets import connect, exactly, publish, subscribe

_PAYLOAD = b"x" * 110


def time_one_by_one(port: int, count: int) -> list[float]:
    """Microseconds from PUBLISH to its arrival at another connection, at QoS 1, the next when all is acknowledged."""
    publisher, receiver = connect(port, "one-out"), connect(port, "one-in")
    subscribe(receiver, "one/t")
    took_us = []
    for number in range(count):
        packet = publish("one/t", _PAYLOAD, packet_id=number % 60_000 + 1)
        began = time.perf_counter()
        publisher.sendall(packet)
        came = exactly(receiver, len(packet))
        took_us.append((time.perf_counter() - began) * 1e6)
        at = 4 + came[3]
        receiver.sendall(b"\x40\x02" + came[at : at + 2])
        exactly(publisher, 4)
    publisher.close()
    receiver.close()
    return took_us
