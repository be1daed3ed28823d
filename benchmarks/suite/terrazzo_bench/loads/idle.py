"""Connections that do nothing.

Run as ``python -m terrazzo_bench.loads.idle PORT COUNT``: says ``ready`` once all are connected, and holds them until
its standard input ends.
"""

from __future__ import annotations

import sys

from terrazzo_bench.packets import connect


def main(port: int, count: int) -> None:
    """Connects, waits."""
    held = [connect(port, f"idle-{number}") for number in range(count)]
    print("ready", flush=True)
    sys.stdin.readline()
    for sock in held:
        sock.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
