"""300,000 messages of QoS 0 from 50 publishers to one subscriber at full speed: how many arrive, and how soon.

``python benchmarks/broker_burst.py [--messages 300000] [--rounds 3] [--pace BYTES_PER_S] [--stalled]``

Terrazzo beside Mosquitto with its default queues and with unlimited ones. ``--pace`` slows the subscriber down;
``--stalled`` adds a second subscriber that never reads.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker_clients import connect, subscribe
from broker_peers import Peer, running

from mqtt_bytes import field, frame
from running import Mosquitto
from support import free_port

PUBLISHERS = 50
PAYLOAD = b"x" * 110
BLOCK = 100  # packets a write
QUIET_S = 2.0  # nothing has come for so long: it is over
UNLIMITED = ("allow_anonymous true", "persistence false", "log_dest none", "max_queued_messages 0")


def main() -> None:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pace", type=int, default=0, help="bytes a second that the subscriber reads; 0: all it can")
    parser.add_argument("--stalled", action="store_true")
    parser.add_argument("--peers", default="terrazzo,mosquitto,unlimited")
    options = parser.parse_args()
    print("| peer | delivered | publishers done | all delivered | messages/s |\n| --- | ---: | ---: | ---: | ---: |")
    for _ in range(options.rounds):
        for name in options.peers.split(","):
            with tempfile.TemporaryDirectory() as folder, _peer(name, Path(folder)) as port:
                print(_row(name, port, options), flush=True)


@contextmanager
def _peer(name: str, folder: Path) -> Iterator[int]:
    if name != "unlimited":
        with running(name, folder) as peer:
            yield _port(peer)
        return
    port = free_port()
    with Mosquitto(folder, lines=UNLIMITED, port=port) as server:
        try:
            yield port
        finally:
            server.kill()


def _port(peer: Peer) -> int:
    return peer.port


def _row(name: str, port: int, options: argparse.Namespace) -> str:
    subscriber = connect(port, "subscriber")
    subscribe(subscriber, "t", 0)
    stalled = connect(port, "stalled") if options.stalled else None
    if stalled is not None:
        subscribe(stalled, "t", 0)
    each = options.messages // PUBLISHERS
    packets = frame(0x30, field("t"), PAYLOAD) * BLOCK
    began_s = time.monotonic()
    done: multiprocessing.Queue[float] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_publish, args=(port, packets, each // BLOCK, done))
    process.start()
    received, last_s = _receive(subscriber, options.pace)
    publishers_s = done.get(timeout=60) - began_s
    process.join()
    count = received // (len(packets) // BLOCK)
    took_s = last_s - began_s
    share = count / (each // BLOCK * BLOCK * PUBLISHERS)
    return f"| {name} | {share:.1%} | {publishers_s:.2f} s | {took_s:.2f} s | {count / took_s:,.0f} |"


def _receive(sock: socket.socket, pace: int) -> tuple[int, float]:
    """The bytes that came, and when the last did."""
    received, last_s = 0, time.monotonic()
    sock.settimeout(QUIET_S)
    while True:
        try:
            data = sock.recv(1 << 18)
        except TimeoutError:
            return received, last_s
        received, last_s = received + len(data), time.monotonic()
        if pace:
            time.sleep(len(data) / pace)


def _publish(port: int, packets: bytes, blocks: int, done: multiprocessing.Queue[float]) -> None:
    asyncio.run(_publish_all(port, packets, blocks))
    done.put(time.monotonic())


async def _publish_all(port: int, packets: bytes, blocks: int) -> None:
    async def publish(sock: socket.socket) -> None:
        _, writer = await asyncio.open_connection(sock=sock)
        for _ in range(blocks):
            writer.write(packets)
            await writer.drain()
        writer.write(b"\xe0\x00")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    sockets = [connect(port, f"p{number}") for number in range(PUBLISHERS)]
    await asyncio.gather(*map(publish, sockets))


if __name__ == "__main__":
    main()
