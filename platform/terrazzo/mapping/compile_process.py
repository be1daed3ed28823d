"""Compiles Python text in a process of its own: the interpreter has one lock, and compiling never lets go of it.

It is run as a script and imports nothing of ours, so that it starts in 15 ms. From its standard input it reads texts,
to its standard output it writes their code, each as its length (4 bytes, big-endian) and that many bytes: UTF-8, and
``marshal`` of the code. It ends with its input, and the system ends it beyond its share of memory or of time.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import sys

MOST_MEMORY_BYTES = 768 * 2**20
_MOST_S = 30  # for one text; the longest takes one, beside others some more


def main() -> None:
    """Answers until the input ends."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(4):
        text = source.read(int.from_bytes(head)).decode()
        signal.alarm(_MOST_S)  # which ends the process
        code = marshal.dumps(compile(text, "<plan>", "exec"))
        signal.alarm(0)
        target.write(len(code).to_bytes(4) + code)
        target.flush()


if __name__ == "__main__":
    main()
