"""``honest_terminal.py PORT COUNT``: logs in so often from 127.0.0.3, and prints as JSON how many seconds each took."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from mqtt_bytes import login

ACCEPTED = b"\x20\x02\x00\x00"


def main() -> None:
    """Logs in, one after the other; ends where one is refused."""
    port, taken = int(sys.argv[1]), []
    for n in range(int(sys.argv[2])):
        began_s = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port), timeout=5, source_address=("127.0.0.3", 0)) as sock:
            sock.sendall(login(f"honest {n}", "u", "p"))
            answer = sock.recv(4)
        if answer != ACCEPTED:
            sys.exit(f"login {n}: {answer!r}")
        taken.append(time.perf_counter() - began_s)
        time.sleep(0.01)  # so that they spread over the flood
    print(json.dumps(sorted(taken)))


if __name__ == "__main__":
    main()
