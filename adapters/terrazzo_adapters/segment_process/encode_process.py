"""Makes segments in a process of its own: the interpreter has one lock, and much of the work never lets go of it.

From its standard input it reads requests, to its standard output it writes answers, each as its length (8 bytes,
big-endian) and that many bytes of MessagePack. It ends with its input, and the system ends it beyond its share of
memory.
"""

from __future__ import annotations

import os
import resource
import sys

import msgspec

from terrazzo_adapters.segment_process.chunk import Chunk

MOST_MEMORY_BYTES = 2 << 30


class Request(msgspec.Struct, array_like=True):
    """A chunk's orders and bodies, and how it is to be packed."""

    orders: bytes
    bodies: list[bytes]
    mosaic: bool
    tight: bool


class Answer(msgspec.Struct, array_like=True):
    """The parts of a segment by their names; ``error``: why there are none."""

    parts: dict[bytes, bytes]
    error: str


def make(request: Request) -> Answer:
    """The answer to a request."""
    from terrazzo_adapters.segments import Packing, encode

    packing = Packing.TIGHT if request.tight else Packing.CHEAP
    try:
        records = Chunk(request.orders, request.bodies).records()
        return Answer(encode(records, mosaic=request.mosaic, packing=packing), "")
    except Exception as error:  # noqa: BLE001 - the process goes on; who asked is told
        return Answer({}, f"{type(error).__name__}: {error}")


def main() -> None:
    """Answers until the input ends."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    decode, encode = msgspec.msgpack.Decoder(Request).decode, msgspec.msgpack.encode
    while head := source.read(8):
        answer = encode(make(decode(source.read(int.from_bytes(head)))))
        target.write(len(answer).to_bytes(8) + answer)
        target.flush()


if __name__ == "__main__":
    main()
