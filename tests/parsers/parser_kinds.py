"""What the table of parsers says of each: what it runs, what it may raise, and which inputs are its worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

Text = TypeVar("Text", str, bytes)

SIZES = (2**14, 2**16, 2**18, 2**20)
"""Characters or bytes of the worst inputs; the last is the largest body of a request."""


@dataclass(frozen=True, kw_only=True)
class Parser(Generic[Text]):
    """A parser of what others wrote.

    Attributes:
        covers: ``module:name`` of each function and pattern that a run goes through.
        run: parses one input.
        raises: its declared errors.
        worst: each makes an input of about so many characters that is hard on a careless parser.
        samples: sound inputs, from which the fuzz test makes others.
        most: the largest input that can reach it, where that is less than the largest body.
        floor_s: a tenth of what any input may take; less where inputs come before proof.
    """

    covers: tuple[str, ...]
    run: Callable[[Text], object]
    raises: tuple[type[Exception], ...] = ()
    worst: tuple[Callable[[int], Text], ...]
    samples: tuple[Text, ...]
    most: int = SIZES[-1]
    floor_s: float = 0.2

    @property
    def name(self) -> str:
        """The first of ``covers``."""
        return self.covers[0]

    @property
    def sizes(self) -> Iterator[int]:
        """The lengths with which its growth is looked at."""
        yield from (size for size in SIZES if size < self.most)
        yield self.most

    def fuzzed(self, random: Random) -> Text:
        """A sound input with some of it deleted, repeated, exchanged with another's, or strange."""
        text = random.choice(self.samples)
        for _ in range(random.randrange(1, 6)):
            text = self._changed(text, random)
        return text[: 2**16]

    def _changed(self, text: Text, random: Random) -> Text:
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.randrange(1, 9))
        match random.randrange(5):
            case 0:
                return text[:start] + text[end:]
            case 1:
                return text[:start] + text[start:end] * random.choice((2, 3, 40, 1_000)) + text[end:]
            case 2:
                other = random.choice(self.samples)
                return text[:start] + other[random.randrange(len(other) + 1) :]
            case 3:
                return text[:start] + strange(text, random) + text[end:]
        return text[:end] + strange(text, random) + text[end:]


def strange(like: Text, random: Random) -> Text:
    """A piece that parsers stumble over."""
    if isinstance(like, bytes):
        plain = (random.randbytes(1), random.randbytes(4), b"\0", b"\xff\xff", b"\xc3\x28", b"9" * 400)
        return random.choice((*plain, _nested(random).encode()))
    return random.choice((*_STRANGE, _nested(random)))


def _nested(random: Random) -> str:
    """JSON of a depth about which decoders and those behind them may disagree."""
    depth, inner = random.choice((20, 63, 64, 65, random.randrange(1, 1_100))), random.choice(("", "1", '"a"'))
    return random.choice(("[" * depth + inner + "]" * depth, '{"a":' * depth + (inner or "0") + "}" * depth))


_STRANGE = (
    *"\0\t\n\r\x1f\x85 \"'\\()[]{}<>=,.:;/+-*#$%&?!@|~_",
    *("\u2028", "\ufeff", "\u0660", "\u00b2", "\u216b", "\U0001f600", "e\u0301"),
    *("-1", "1e999", "NaN", "-0", "0x", "1_000", "9" * 400, "null", "==", "//", "..", "--", "$share/", "[" * 1_200),
)
"""Signs, digits that are none in ASCII, numbers beyond all kinds, and deep nesting."""
