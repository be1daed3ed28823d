"""Answers with many records: of bounded size, made and encoded one by one, so that others have the loop between.

A handler that would have to make many records hands them over as ``Made``; each is then made when it is encoded, or
some together where they are known to be small.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec

from terrazzo.api.kernel.envelope import Answer
from terrazzo.errors import BadParameter, Throttled
from terrazzo.loop_pauses import LoopPauses
from terrazzo.memory_shares import Kept
from terrazzo.metadata.company_limits import Limit
from terrazzo.ports.store import RecordsTooLarge
from terrazzo.reasons import say

S = TypeVar("S")
T = TypeVar("T")

_FEW = 10  # records that are encoded at once, with all else in the answer
_MOST_TOGETHER = 256  # small records that are made and encoded at once, however small
SMALL_BYTES = 16 * 1024  # of what some records are made of, which are made and encoded at once
COUNTED_BYTES = 16 * 1024
"""Answers that aren't larger are not counted."""

_GROWS_BYTES = 64 * 1024  # of encoded records, after which they are counted
_COPIES = 3  # of each byte: as it was read, encoded, and in the answer
_RETRY_AFTER_S = 1.0
_encoder = msgspec.json.Encoder()
_encode = _encoder.encode
_decode_records = msgspec.json.Decoder(list[dict[str, Any]]).decode
_COMMA = ord(",")


Text = Callable[[Sequence[Any]], bytes]


class Made(Generic[T]):
    """Records that are made one by one, each time that they are gone through.

    ``size``: the bytes that one is made of, for ``pieces``; None where nobody knows. ``text``: makes an array of JSON
    of some sources, which says what their records would.
    """

    __slots__ = ("_make", "_size", "_sources", "_text", "on_encoded")

    def __init__(
        self,
        sources: Sequence[Any] | Made[Any],
        make: Callable[[Any], T],
        size: Callable[[Any], int] | None = None,
        text: Text | None = None,
    ) -> None:
        self._sources = sources
        self._make = make
        self._size = size
        self._text = text
        self.on_encoded: Callable[[msgspec.Raw], None] | None = None
        """Told of the array of JSON, once there is one."""

    def __len__(self) -> int:
        """How many."""
        return len(self._sources)

    def __iter__(self) -> Iterator[T]:
        """Makes them."""
        return map(self._make, self._sources)

    def pieces(self) -> Iterator[list[T]]:
        """Makes them, some small ones together."""
        make, sources = self._make, self._sources
        if isinstance(sources, Made):
            yield from ([*map(make, some)] for some in sources.pieces())
        elif self._size is None:
            yield from ([each] for each in self)
        else:
            yield from ([*map(make, some)] for some in _small_together(sources, self._size))

    def encoded(self) -> Iterator[list[T] | bytes]:
        """``pieces``, as arrays of JSON where they are made so."""
        text, sources, size = self._text, self._sources, self._size
        if text is None or size is None or isinstance(sources, Made):
            return self.pieces()
        return map(text, _small_together(sources, size))


class Encoded(Made[dict[str, Any]]):
    """Records of which there is an array of JSON already; whoever wants them otherwise has them decoded."""

    __slots__ = ("_count", "json")

    def __init__(self, json: msgspec.Raw, count: int) -> None:
        super().__init__((), dict)
        self.json = json
        self._count = count

    def __len__(self) -> int:
        """How many."""
        return self._count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Decodes them."""
        return iter(_decode_records(self.json))

    def pieces(self) -> Iterator[list[dict[str, Any]]]:
        """All of them."""
        yield list(self)


def _small_together(sources: Sequence[S], size: Callable[[S], int]) -> Iterator[Sequence[S]]:
    """All of them in order: some small ones together, each large one alone."""
    start = together = 0
    for place, each in enumerate(sources):
        of_each = size(each)
        together += of_each
        if place > start and (together > SMALL_BYTES or place - start >= _MOST_TOGETHER):
            yield sources[start:place]
            start, together = place, of_each
    if start < len(sources):
        yield sources[start:]


_LONG = (list, dict, Made)
_MANY = (list, dict, msgspec.Struct)


def made(
    sources: Sequence[S], make: Callable[[S], T], *, size: Callable[[S], int] | None = None, text: Text | None = None
) -> list[T]:
    """``Made``, for the field ``data`` of a result: it is gone through like a list, and not otherwise used.

    Args:
        size: the bytes that a record is made of, which what it costs to make and encode it goes by. A few records that
            have few bytes are made at once.
        text: as of ``Made``.
    """
    if size is not None and len(sources) <= _FEW and sum(map(size, sources)) <= SMALL_BYTES:
        return [*map(make, sources)]
    return cast("list[T]", Made(sources, make, size, text))


@cache
def long_parts(kind: type) -> tuple[str, ...]:
    """The fields of a kind of results that may have many records, or records that have; none for what is no struct."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple([field.name for field in msgspec.structs.fields(kind) if _may_be_long(field.type)])


def _may_be_long(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        return _may_be_long(get_args(hint)[0])
    if origin in (Union, UnionType):
        return any(map(_may_be_long, get_args(hint)))
    if origin is dict and get_args(hint)[1] in (int, float):
        return False  # some hundred figures
    found = origin or hint
    return not isinstance(found, type) or issubclass(found, _MANY)


def is_few(result: Any) -> bool:
    """Whether a result is a struct of some records at the most, in whichever field, which are encoded at once."""
    parts = long_parts(result.__class__)
    for name in parts:
        if is_long(getattr(result, name)):
            return False
    return bool(parts)


def is_long(result: Any) -> bool:
    """Whether a result has to be encoded by ``encode_long``."""
    if isinstance(result, _LONG):
        return len(result) > _FEW or isinstance(result, Made)
    return any(is_long(getattr(result, name)) for name in long_parts(result.__class__))


async def encode_long(result: Any, *, most_bytes: int, grow: Callable[[int], object]) -> Any:
    """A result whose records are encoded already, where there are many; the envelope takes them as they are.

    Args:
        grow: told of the bytes of memory that the records take, as they are encoded; what it raises ends that.

    Raises:
        BadParameter: they take more than ``most_bytes``.
    """
    if isinstance(result, Encoded):
        return result.json
    if isinstance(result, Made):
        found = await _encode_pieces(result.encoded(), most_bytes, grow)
        if result.on_encoded is not None:
            result.on_encoded(found)
        return found
    if isinstance(result, list):
        return await _encode_pieces(([each] for each in result), most_bytes, grow)
    if isinstance(result, dict):
        return await _encode_named(result, most_bytes, grow)
    encoded, left = {}, most_bytes

    def grow_of_all(size: int) -> None:
        nonlocal left
        left -= size // _COPIES
        grow(size)

    for name in long_parts(result.__class__):
        if is_long(part := getattr(result, name)):
            encoded[name] = await encode_long(part, most_bytes=left, grow=grow_of_all)
    return msgspec.structs.replace(result, **encoded)


@contextmanager
def answer_within(most_bytes: int) -> Iterator[None]:
    """Records of at most so many bytes are read inside, which is said as the limit's name where they have more."""
    try:
        yield
    except RecordsTooLarge:
        raise too_large(most_bytes) from None


class AnswerTooLarge(BadParameter):
    """An answer is over ``limits.answer_bytes``."""


def too_large(most_bytes: int) -> AnswerTooLarge:
    """The error of an answer over ``limits.answer_bytes``."""
    return AnswerTooLarge("answer", say("answer_too_large", most=most_bytes))


class AnswerStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    too_large: int = 0  # over ``limits.answer_bytes``
    untaken: int = 0  # refused, as the company had too many bytes of others to take


class UnreadAnswers:
    """Counts the bytes of answers that are not taken yet, by company: from when they are made until they are sent.

    Args:
        most_bytes: of one answer.
        of_company: of all that a company's users have not taken, by its id; it always may have one.
        stats: counts what is refused.
    """

    def __init__(
        self, *, most_bytes: int, of_company: Callable[[int], Limit], stats: AnswerStats | None = None
    ) -> None:
        self.most_bytes = most_bytes
        self.stats = stats or AnswerStats()
        self._of_company = of_company
        self._bytes: Counter[int] = Counter()

    def keep(self, answer: Answer, company_id: int) -> None:
        """Counts an answer for as long as it is there.

        Raises:
            BadParameter: it is too large.
            Throttled: with what the company has not taken it would be too much.
        """
        size = len(answer.body)
        if size <= COUNTED_BYTES:
            return
        if size > self.most_bytes:
            raise too_large(self.most_bytes)
        kept = self._bytes[company_id]
        limit = self._of_company(company_id)
        if kept and kept + size > limit.most:
            self.stats.untaken += 1
            raise Throttled(say("answers_to_take", bytes=kept, key=limit.key), _RETRY_AFTER_S)
        self._bytes[company_id] += size
        weakref.finalize(answer, self._forget, company_id, size)

    def kept(self) -> Mapping[int, Kept]:
        """Bytes of answers that are there, by company."""
        return {company_id: Kept(size) for company_id, size in self._bytes.items()}

    def _forget(self, company_id: int, size: int) -> None:
        self._bytes[company_id] -= size
        if not self._bytes[company_id]:
            del self._bytes[company_id]


async def _encode_pieces(
    pieces: Iterable[list[Any] | bytes], most_bytes: int, grow: Callable[[int], object]
) -> msgspec.Raw:
    """All records, piece by piece, in one buffer: the envelope has to copy it only once."""
    pauses, encoded, counted = LoopPauses(), bytearray(), 0
    for piece in pieces:
        end = max(0, len(encoded) - 1)
        if isinstance(piece, bytes):
            encoded[end:] = piece
        else:
            _encoder.encode_into(piece, encoded, end)
        if end:
            encoded[end] = _COMMA  # where the pieces before ended with a bracket, and this one begins with one
        counted = _counted(encoded, counted, most_bytes, grow)
        await pauses.pause()
    return msgspec.Raw(encoded or b"[]")


async def _encode_named(found: dict[Any, Any], most_bytes: int, grow: Callable[[int], object]) -> msgspec.Raw:
    """The same for records that have names."""
    pauses, encoded, counted = LoopPauses(), bytearray(b"{"), 0
    for name, record in found.items():
        encoded += _encode(str(name)) + b":"
        encoded += _encode(record)
        encoded += b","
        counted = _counted(encoded, counted, most_bytes, grow)
        await pauses.pause()
    encoded[-1:] = b"}"
    return msgspec.Raw(encoded)


def _counted(encoded: bytearray, counted: int, most_bytes: int, grow: Callable[[int], object]) -> int:
    """How many bytes have been counted now. Raises ``BadParameter`` where there are too many."""
    size = len(encoded)
    if size > most_bytes:
        raise too_large(most_bytes)
    if size - counted <= _GROWS_BYTES:
        return counted
    grow(_COPIES * (size - counted))
    return size
