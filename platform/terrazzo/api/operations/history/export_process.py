"""Makes the rows of exports in a process of its own: the interpreter has one lock, which this work never lets go of.

From its standard input it reads requests, to its standard output it writes answers, each as its length (4 bytes,
big-endian) and that many bytes of MessagePack. It ends with its input, and the system ends it beyond its share of
memory or time.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Sequence

import msgspec

from terrazzo.api.operations.history.export_rows import FileForm, encode_records
from terrazzo.ports.store import Record

COMMAND = (sys.executable, "-I", "-m", "terrazzo.api.operations.history.export_process")
MOST_MEMORY_BYTES = 768 * 2**20
_MOST_S = 60  # for one request; one of 512 KiB takes a tenth of a second


class EncodingFailed(Exception):
    """Records could not be made rows of; says why."""


class Answer(msgspec.Struct, array_like=True):
    """A file's bytes; ``error``: why there are none."""

    data: bytes
    error: str = ""


_Request = tuple[FileForm, list[Record]]
_decode = msgspec.msgpack.Decoder(_Request).decode
_decode_answer = msgspec.msgpack.Decoder(Answer).decode
_encode = msgspec.msgpack.Encoder().encode


def request_of(form: FileForm, records: Sequence[Record]) -> bytes:
    """What the process is asked."""
    return _encode((form, records))


def data_of(answer: bytes) -> bytes:
    """The bytes of the rows in an answer.

    Raises:
        EncodingFailed: a record has a name that the file has no column for.
    """
    found = _decode_answer(answer)
    if found.error:
        raise EncodingFailed(found.error)
    return found.data


def answer_to(request: bytes) -> bytes:
    """The answer to a request."""
    try:
        return _encode(Answer(encode_records(*_decode(request))))
    except Exception as error:  # noqa: BLE001 - the process goes on; who asked is told
        return _encode(Answer(b"", f"{type(error).__name__}: {error}"))


def main() -> None:
    """Answers until the input ends."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(4):
        signal.alarm(_MOST_S)  # which ends the process
        answer = answer_to(source.read(int.from_bytes(head)))
        target.write(len(answer).to_bytes(4))
        target.write(answer)
        target.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
