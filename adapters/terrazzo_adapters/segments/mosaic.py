"""Bodies of mosaic records that follow from the values of their names: MessagePack maps as the mapping writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.segments.rendering import Column, render
from terrazzo_adapters.segments.values import FALSE, FLOAT, INTEGER, NULL, STRING, TRUE, Values

_encode = msgspec.msgpack.Encoder().encode
_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_decode = msgspec.msgpack.Decoder(dict[str, float | _Integer | str | bool | None]).decode

_SINGLE = {NULL: 0xC0, FALSE: 0xC2, TRUE: 0xC3}
_FLOAT = 0xCB
EMPTY_MAP = b"\x80"
_WIDE_STRING = 512  # bytes; longer ones are rendered one by one
_INTEGERS: tuple[tuple[int, int, int | None, str], ...] = (  # from, to (exclusive), byte in front, what follows
    (0, 1 << 7, None, "i1"),
    (-(1 << 5), 0, None, "i1"),
    (1 << 7, 1 << 8, 0xCC, ">u1"),
    (1 << 8, 1 << 16, 0xCD, ">u2"),
    (1 << 16, 1 << 32, 0xCE, ">u4"),
    (1 << 32, 1 << 63, 0xCF, ">u8"),
    (-(1 << 7), -(1 << 5), 0xD0, ">i1"),
    (-(1 << 15), -(1 << 7), 0xD1, ">i2"),
    (-(1 << 31), -(1 << 15), 0xD2, ">i4"),
    (-(1 << 63), -(1 << 31), 0xD3, ">i8"),
)


def read_bodies(bodies: Sequence[bytes]) -> tuple[Sequence[Mapping[str, Value]], NDArray[np.bool_]]:
    """What bodies say, and which are maps that ``render_maps`` may make: their values are exact, the others' points."""
    try:
        return list(map(_decode, bodies)), np.ones(len(bodies), np.bool_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = list(map(_read, bodies))
        points = [parse_points(body) if each is None else each for body, each in zip(bodies, found, strict=True)]
        return points, np.array([each is not None for each in found], np.bool_)


def _read(body: bytes) -> Mapping[str, Value] | None:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class Entry(NamedTuple):
    """A name in some records: where their values are among ``values``, and which of them carry it (None: all)."""

    name: str
    values: Values
    places: NDArray[np.int64]
    carried: NDArray[np.bool_] | None


def render_maps(entries: Sequence[Entry]) -> list[bytes]:
    """The bodies of records that carry names in this order, at least one; each record all of them or some."""
    count = len(entries[0].places)
    if any(entry.values.longest_text() > _WIDE_STRING for entry in entries):
        return _one_by_one(entries, count)
    pieces, columns = [b""], list[Column]()
    if all(entry.carried is None for entry in entries):
        pieces[0] = _header(len(entries))
    else:
        sizes = sum(np.ones(count, np.int64) if entry.carried is None else entry.carried for entry in entries)
        columns.append(_Headers(np.asarray(sizes, np.int64)))
        pieces.append(b"")
    for entry in entries:
        said, encoded = _encode(entry.name), _Encoded(entry.values, entry.places)
        if entry.carried is None:
            pieces[-1] += said
            columns.append(encoded)
        else:
            columns.append(_Optional(said, encoded, entry.carried))
        pieces.append(b"")
    return render(pieces, columns, np.arange(count))


def _one_by_one(entries: Sequence[Entry], count: int) -> list[bytes]:
    records: list[dict[str, Value]] = [{} for _ in range(count)]
    for entry in entries:
        carriers = np.arange(count) if entry.carried is None else np.flatnonzero(entry.carried)
        for record, value in zip(carriers.tolist(), entry.values.at(entry.places[carriers]), strict=True):
            records[record][entry.name] = value
    return list(map(_encode, records))


def _header(names: int) -> bytes:
    return bytes([0x80 | names]) if names < 16 else b"\xde" + names.to_bytes(2, "big")


class _Headers(NamedTuple):
    """The beginnings of maps of so many names each."""

    sizes: NDArray[np.int64]

    def most(self) -> int:
        return 3

    def at(self, places: NDArray[np.int64]) -> _Headers:
        return _Headers(self.sizes[places])

    def width(self) -> int:
        return 1 if self.sizes.max(initial=0) < 16 else 3

    def write(self, text: NDArray[np.uint8], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
        small = self.sizes < 16
        text[small, 0] = 0x80 | self.sizes[small]
        if not small.all():
            large = self.sizes[~small]
            text[~small] = np.stack((np.full(len(large), 0xDE), large >> 8, large & 0xFF), axis=1)
            counts[small, 1:] = False
        return np.where(small, 1, 3)


class _Optional(NamedTuple):
    """A name and its value in those records that carry it."""

    said: bytes
    encoded: _Encoded
    carried: NDArray[np.bool_]

    def most(self) -> int:
        return len(self.said) + self.encoded.most()

    def at(self, places: NDArray[np.int64]) -> _Some:
        there = self.carried[places]
        return _Some(self.said, self.encoded.at(places[there]), there)


class _Some(NamedTuple):
    said: bytes
    hole: _Floats | _Mixed
    there: NDArray[np.bool_]

    def width(self) -> int:
        return len(self.said) + self.hole.width()

    def write(self, text: NDArray[np.uint8], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
        front, found = len(self.said), int(np.count_nonzero(self.there))
        values = np.zeros((found, text.shape[1] - front), np.uint8)
        counted = np.ones(values.shape, np.bool_)
        lengths = np.zeros(len(text), np.int64)
        lengths[self.there] = front + self.hole.write(values, counted)
        text[:, :front] = np.frombuffer(self.said, np.uint8)
        text[self.there, front:] = values
        counts[:] = self.there[:, None]
        counts[self.there, front:] = counted
        return lengths


class _Encoded(NamedTuple):
    """Values as MessagePack. ``places``: of the records in the values."""

    values: Values
    places: NDArray[np.int64]

    def most(self) -> int:
        return max(9, 5 + self.values.longest_text())

    def at(self, places: NDArray[np.int64]) -> _Floats | _Mixed:
        chosen = self.places[places]
        if len(self.values.floats) == len(self.values):
            return _Floats(self.values.floats[chosen])
        return _Mixed(self.values.some(chosen))


class _Floats(NamedTuple):
    floats: NDArray[np.float64]

    def width(self) -> int:
        return 9

    def write(self, text: NDArray[np.uint8], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
        text[:, 0] = _FLOAT
        text[:, 1:] = _bytes_of(self.floats, ">f8")
        return np.full(len(text), 9, np.int64)


class _Mixed(NamedTuple):
    values: Values

    def width(self) -> int:
        words = self._words()
        return max(9, max(map(len, words), default=0))

    def _words(self) -> Sequence[bytes]:
        return list(map(_encode, self.values.texts.texts)) if len(self.values.texts.numbers) else []

    def write(self, text: NDArray[np.uint8], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
        lengths = np.ones(len(text), np.int64)
        for kind, byte in _SINGLE.items():
            text[self.values.kinds == kind, 0] = byte
        for rows, data in self._parts():
            text[rows, : data.shape[1]] = data
            lengths[rows] = data.shape[1]
        rows = np.flatnonzero(self.values.kinds == STRING)
        if len(rows):
            words = self._words()
            sizes = np.array(list(map(len, words)), np.int64)[self.values.texts.numbers]
            table = np.array(words, f"S{text.shape[1]}").view(np.uint8).reshape(len(words), -1)
            text[rows] = table[self.values.texts.numbers]
            lengths[rows] = sizes
        counts[:] = np.arange(text.shape[1]) < lengths[:, None]
        return lengths

    def _parts(self) -> Iterable[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        """Rows, and what stands in them: floats, and integers by how many bytes they take."""
        front = np.full((len(self.values.floats), 1), _FLOAT, np.uint8)
        yield np.flatnonzero(self.values.kinds == FLOAT), np.hstack((front, _bytes_of(self.values.floats, ">f8")))
        rows, integers = np.flatnonzero(self.values.kinds == INTEGER), self.values.integers
        for start, stop, byte, form in _INTEGERS if len(rows) else ():
            chosen = (integers >= start) & (integers <= stop - 1)
            data = _bytes_of(integers[chosen], form)
            front = np.full((len(data), 0 if byte is None else 1), byte or 0, np.uint8)
            yield rows[chosen], np.hstack((front, data))


def _bytes_of(numbers: NDArray[np.int64] | NDArray[np.float64], form: str) -> NDArray[np.uint8]:
    converted = numbers.astype(form)
    return converted.view(np.uint8).reshape(len(numbers), converted.dtype.itemsize)
