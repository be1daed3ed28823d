"""Compiles Python text in a process of its own: the interpreter has one lock, and compiling never lets go of it.

It is run as a script and imports nothing of ours, so that it starts in 15 ms. From its standard input it reads texts,
to its standard output it writes their code, each as its length (4 bytes, big-endian) and that many bytes: UTF-8, and
``marshal`` of the code. It ends with its input, and the system ends it beyond its share of memory.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys

MOST_MEMORY_BYTES = 768 * 2**20


def main() -> None:
    """Answers until the input ends."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(4):
        text = source.read(int.from_bytes(head)).decode()
        code = marshal.dumps(compile(text, "<plan>", "exec"))
        target.write(len(code).to_bytes(4) + code)
        target.flush()


if __name__ == "__main__":
    main()
