"""``connect_flooder.py PORT KIND``: connects from 127.0.0.2 again and again until standard input ends.

``connect`` sends a CONNECT and waits for what comes, ``silent`` nothing at all, ``large`` the start of a mebibyte.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import uvloop

from mqtt_bytes import login

AT_A_TIME = 400
PER_SECOND = 5_000


class Flood:
    """Keeps ``AT_A_TIME`` connections going, at most ``PER_SECOND`` new ones."""

    def __init__(self, port: int, kind: str) -> None:
        self._port = port
        whole = login("stranger", "u", "p")
        self._sent = {"connect": whole, "silent": b"", "large": b"\x10\xff\xff\x3f" + whole[2:] + bytes(8_000)}[kind]
        self._next_s = 0.0

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        await asyncio.gather(*(self._repeat() for _ in range(AT_A_TIME)))

    async def _repeat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._next_s = max(self._next_s + 1 / PER_SECOND, loop.time())
            await asyncio.sleep(self._next_s - loop.time())
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=("127.0.0.2", 0))
                try:
                    writer.write(self._sent)
                    await reader.read(4)
                finally:
                    writer.close()
            except OSError:
                continue


async def main() -> None:
    """Floods until standard input ends."""
    flood = asyncio.create_task(Flood(int(sys.argv[1]), sys.argv[2]).run())
    await asyncio.to_thread(sys.stdin.read)
    del flood
    os._exit(0)


if __name__ == "__main__":
    os.nice(10)
    uvloop.run(main())
