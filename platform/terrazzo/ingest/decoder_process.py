"""Runs decoders in a process of their own: what one costs, or breaks, it costs and breaks nobody else.

It is run as a script, with the processor time that a payload may take (ms), and the most bytes of its memory and of an
answer. From its standard input it reads requests, to its standard output it writes answers, each as its length (4
bytes, big-endian) and that many bytes of MessagePack: ``[name, topic, payload]``, and ``[done, found]`` with a JSON
object of points or, where it is not done, the reason. It ends with its input.

Without a name it reads the points of a long payload itself: the topic is what ``read_points`` is asked, ``found`` is
MessagePack. With a space as the name ``found`` is a stored body as JSON.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import msgspec

GROUP = "terrazzo.decoders"

Decode = Callable[[bytes, tuple[str, ...]], Mapping[str, Any]]

_REASON_CHARS = 200
_PIECE = 2_000  # points, which whoever asks decodes in a millisecond or two


class TakesTooLong(BaseException):
    """A decoder has used up its processor time; no ``except Exception`` of its own keeps it going."""


class DecoderHost:
    """The decoders that were asked for.

    Args:
        cpu_s: processor time that one payload may take.
        answer_bytes: of the JSON of its points.
    """

    def __init__(self, cpu_s: float, answer_bytes: int) -> None:
        self._cpu_s = cpu_s
        self._answer_bytes = answer_bytes
        self._loaded: dict[str, Decode | str] = {}

    def answer(self, name: str, topic: tuple[str, ...], payload: bytes) -> tuple[bool, bytes]:
        """Whether a payload was decoded, and its points as JSON or the reason."""
        if not name.strip():
            return _make_or_fail(json_of_body, payload) if name else _make_or_fail(read_points, payload, topic)
        decode = self._loaded.get(name)
        if decode is None:
            decode = self._loaded[name] = load_decoder(name)
        if isinstance(decode, str):
            return False, decode.encode()
        try:
            found = self._run(decode, payload, topic)
        except TakesTooLong:
            return False, f"the decoder took more than {self._cpu_s:g} s of a processor".encode()
        except BaseException as error:  # noqa: BLE001 - whatever a decoder raises, sys.exit too
            return False, refusal_of(error)
        if len(found) > self._answer_bytes:
            return False, f"the decoder made {len(found)} bytes of points, at most {self._answer_bytes}".encode()
        return True, found

    def _run(self, decode: Decode, payload: bytes, topic: tuple[str, ...]) -> bytes:
        signal.setitimer(signal.ITIMER_PROF, self._cpu_s)
        try:
            found = decode(payload, topic)
            if not isinstance(found, Mapping):
                raise TypeError(f"the decoder returned {type(found).__name__}, not a mapping")
            return msgspec.json.encode(dict(found))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _make_or_fail(make: Callable[..., bytes], *given: Any) -> tuple[bool, bytes]:
    try:
        return True, make(*given)
    except BaseException as error:  # noqa: BLE001 - too little memory, say: then whoever asks reads it
        return False, type(error).__name__.encode()


def json_of_body(body: bytes) -> bytes:
    """A stored body as JSON."""
    from terrazzo.domain.payloads.stored import json_payload

    return msgspec.json.encode(json_payload(body))


def read_points(payload: bytes, asked: tuple[str, ...]) -> bytes:
    """``[Time, pieces, fault, text]``: the points in maps of some each, flat; a fault is the kind of a reject and its
    reason, also as code and parameters; the text is all of it as JSON, where it is told.

    ``asked``: the most characters of a name, points, and characters of a text; whether the points are mapped, and told
    (1 or 0); and then the names of the values, where the payload may be an array.
    """
    from terrazzo.domain.payload import PointLimits, Reject, check_nested, decode, flatten, shorten
    from terrazzo.domain.payloads.form import array_form
    from terrazzo.reasons import reason_of, told_by

    (name_chars, points, text_chars, is_mapped, is_told), names = map(int, asked[:5]), asked[5:]
    limits, encode = PointLimits(name_chars=name_chars, points=points, text_chars=text_chars), msgspec.msgpack.encode
    try:
        found = array_form(names).read_array(payload) if names else decode(payload)
        check_nested(found, limits)
        flat = list(shorten(flatten(found, limits), limits).items()) if is_mapped else []
    except Reject as error:
        told = told_by(error)
        reason = reason_of(told)
        return encode((None, (), (error.kind.value, str(told), None if reason is msgspec.UNSET else reason), b""))
    stamp = found.get("Time")
    pieces = [encode(dict(flat[at : at + _PIECE])) for at in range(0, len(flat), _PIECE)]
    return encode(
        ({} if isinstance(stamp, dict) else stamp, pieces, None, msgspec.json.encode(found) if is_told else b"")
    )


def load_decoder(name: str) -> Decode | str:
    """A decoder by the name of its entry point; a text says why there is none."""
    try:
        (found,) = entry_points(group=GROUP, name=name)
        decode = found.load()
    except ValueError:
        return f"there is no decoder {name}: no package, or more than one, has this entry point of {GROUP}"
    except BaseException as error:  # noqa: BLE001 - whatever happens in a package of others
        return f"the decoder {name} can't be loaded: {type(error).__name__}: {error}"[:_REASON_CHARS]
    return decode if callable(decode) else f"the decoder {name} is {type(decode).__name__}, not a function"


def refusal_of(error: BaseException) -> bytes:
    """What a decoder raised, in a line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception of others
        text = ""
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"the decoder refuses it: {said}"[:_REASON_CHARS].encode("utf-8", "backslashreplace")


def main() -> None:
    """Answers until the input ends."""
    cpu_ms, memory_bytes, answer_bytes = map(int, sys.argv[1:])
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    signal.signal(signal.SIGPROF, _on_time_over)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a decoder prints is no answer
    host, encode = DecoderHost(cpu_ms / 1_000, answer_bytes), msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(tuple[str, tuple[str, ...], bytes]).decode
    while head := source.read(4):
        found = encode(host.answer(*decode(source.read(int.from_bytes(head)))))
        target.write(len(found).to_bytes(4) + found)
        target.flush()


def _on_time_over(number: int, frame: object) -> None:
    raise TakesTooLong


if __name__ == "__main__":
    main()
