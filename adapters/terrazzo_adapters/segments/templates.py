"""Templates: texts alike but for numbers, literals and short texts, as pieces with a column for each hole between them.

A template takes JSON payloads as they came, not their values: what is rendered again is compared with what was there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.head import MOST_TEMPLATES
from terrazzo_adapters.segments.numerals import NumberColumn, Numbers, decode_numbers, encode_numbers, make_numbers
from terrazzo_adapters.segments.packing import Damaged, Packing
from terrazzo_adapters.segments.rendering import render
from terrazzo_adapters.segments.template_names import DECODED, Hole, NamedHole, name_holes
from terrazzo_adapters.segments.tokens import MARK, RESERVED, Found, find_tokens
from terrazzo_adapters.segments.words import Words, decode_words, encode_words, make_words

_LONGEST = 8_192  # bytes of a text
_LEAST_RECORDS = 8  # of a template
_MOST_SKELETONS = 512  # more that differ have texts that hardly repeat
_MOST_HOLES = 4_096
_WORD = 5  # the byte that stands for a short text
_STRING = re.compile(rb'"([^"\\]*)"(\s*:)?')
_RESERVED = re.compile(b"[" + re.escape(RESERVED) + b"]")


Column = NumberColumn | Words
"""What stands in a hole in each record, to be rendered for some."""


class Template(NamedTuple):
    """One more piece than holes. ``holes``: each with one element for each record."""

    pieces: Sequence[bytes]
    holes: Sequence[Hole]


class Taken(NamedTuple):
    """A template and the records that it takes."""

    template: Template
    records: NDArray[np.int64]


def find_templates(bodies: Sequence[bytes]) -> list[Taken]:
    """The templates of the bodies; those that no template takes are kept otherwise."""
    fit = [place for place, body in enumerate(bodies) if body[:1] == b"{" and len(body) <= _LONGEST]
    texts = [bodies[place] for place in fit]
    if len(fit) < _LEAST_RECORDS:
        return []
    if (np.frombuffer(b"".join(texts), np.uint8) < len(RESERVED)).any():
        fit = [place for place in fit if not _RESERVED.search(bodies[place])]
        texts = [bodies[place] for place in fit]
    found = find_tokens(texts)
    places = np.array(fit, np.int64)
    every: list[Taken] = []
    for form, members in _by_form(found.skeletons).items():
        taken = _taken(form, members, found)
        if taken is not None:
            every.append(Taken(taken.template, places[taken.records]))
    return every


class _Members(NamedTuple):
    """The records of a form, and the texts of each in its holes for texts."""

    records: list[int]
    words: list[Sequence[bytes]]


def _by_form(skeletons: Sequence[bytes]) -> dict[bytes, _Members]:
    """The records of the forms that occur often: skeletons without the texts in them."""
    records: dict[bytes, list[int]] = {}
    for place, skeleton in enumerate(skeletons):
        records.setdefault(skeleton, []).append(place)
    if len(records) > _MOST_SKELETONS:
        often = sorted(records, key=lambda skeleton: -len(records[skeleton]))[:_MOST_SKELETONS]
        records = {skeleton: records[skeleton] for skeleton in often}
    forms: dict[bytes, _Members] = {}
    for skeleton, places in records.items():
        form, words = _without_words(skeleton)
        members = forms.setdefault(form, _Members([], []))
        members.records.extend(places)
        members.words.extend([words] * len(places))
    often = sorted(forms, key=lambda form: -len(forms[form].records))[:MOST_TEMPLATES]
    return {form: forms[form] for form in often if len(forms[form].records) >= _LEAST_RECORDS}


def _without_words(skeleton: bytes) -> tuple[bytes, list[bytes]]:
    """The skeleton with a mark for each text that is a value and has no number in it, and these texts."""
    words: list[bytes] = []
    if b"\\" in skeleton:
        return skeleton, words

    def marked(string: re.Match[bytes]) -> bytes:
        if string[2] is not None or bytes([MARK]) in string[1]:
            return string[0]
        words.append(string[1])
        return b'"%c"' % _WORD

    return _STRING.sub(marked, skeleton), words


def _taken(form: bytes, members: _Members, found: Found) -> Taken | None:
    order = np.argsort(np.array(members.records, np.int64), kind="stable")
    records = np.array(members.records, np.int64)[order]
    marks = re.findall(rb"[\x04\x05]", form)
    if len(marks) > _MOST_HOLES:
        return None
    pieces = re.split(rb"[\x04\x05]", form)
    first = found.first[records]
    columns = list(zip(*members.words, strict=True))
    holes: list[Hole] = []
    numbers = words = 0
    for mark in marks:
        if mark[0] == _WORD:
            holes.append(make_words([columns[words][place] for place in order.tolist()]))
            words += 1
            continue
        try:
            holes.append(make_numbers(found.tokens, first + numbers))
        except ValueError:
            return None
        numbers += 1
    return Taken(_folded(pieces, holes), records)


def _folded(pieces: Sequence[bytes], holes: Sequence[Hole]) -> Template:
    """The template without the holes in which the same stands in each record."""
    kept: list[bytes] = [pieces[0]]
    varying: list[Hole] = []
    for hole, piece in zip(holes, pieces[1:], strict=True):
        if _is_constant(hole):
            kept[-1] += render([b"", b""], [hole], np.zeros(1, np.int64))[0] + piece
        else:
            varying.append(hole)
            kept.append(piece)
    return Template(kept, varying)


def _is_constant(hole: Hole) -> bool:
    if isinstance(hole, Words):
        return len(hole.words) == 1
    return all(bool((each == each[0]).all()) for each in hole[:5])


class _Stored(msgspec.Struct, array_like=True):
    """``holes``: for each whether it is a number, and its column."""

    pieces: list[bytes]
    holes: list[tuple[bool, bytes]]
    names: list[NamedHole] | None


_decoder = msgspec.msgpack.Decoder(_Stored)


def encode_template(template: Template, times_us: NDArray[np.int64], packing: Packing) -> bytes:
    """The template as bytes; ``times_us``: of its records."""
    holes = [
        (True, encode_numbers(hole, times_us, packing))
        if isinstance(hole, Numbers)
        else (False, encode_words(hole, packing))
        for hole in template.holes
    ]
    names = name_holes(template.pieces, template.holes)
    return msgspec.msgpack.encode(_Stored(list(template.pieces), holes, names))


class StoredTemplate:
    """A template as it is stored, and which names its records carry (see ``name_holes``).

    Its holes are decoded when they are needed first, and raise ``Damaged`` then.
    """

    def __init__(self, stored: _Stored, times_us: NDArray[np.int64]) -> None:
        """Use ``decode_template`` instead."""
        self.names = stored.names
        self._pieces = stored.pieces
        self._stored = stored.holes
        self._times_us = times_us
        self._holes: dict[int, Column] = {}

    def column(self, place: int) -> Column:
        """What stands in one hole."""
        if place not in self._holes:
            is_number, data = self._stored[place]
            decoded = decode_numbers(data, self._times_us) if is_number else decode_words(data, len(self._times_us))
            self._holes[place] = decoded
        return self._holes[place]

    def render(self, places: NDArray[np.int64] | None = None) -> list[bytes]:
        """The texts of some records, by their numbers among those of the template; None: all."""
        columns = [self.column(place) for place in range(len(self._stored))]
        return render(self._pieces, columns, np.arange(len(self._times_us)) if places is None else places)


def decode_template(data: bytes, times_us: NDArray[np.int64]) -> StoredTemplate:
    """The reverse of ``encode_template``.

    Raises:
        Damaged: it is none of as many records.
    """
    try:
        stored = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Damaged(f"template: {error}") from error
    if len(stored.pieces) != len(stored.holes) + 1 or not len(times_us):
        raise Damaged("template: pieces and holes that don't fit")
    if any(not DECODED <= each.hole < len(stored.holes) for each in stored.names or ()):
        raise Damaged("template: a name's hole beyond the last")
    return StoredTemplate(stored, times_us)
