"""Random values: sound ones, strange ones, and sound ones with something wrong. Equal seeds make equal values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

import msgspec
from parser_kinds import strange

T = TypeVar("T")

LONG = 60_000  # characters or bytes of what is long
_GRAMMAR = (
    *("x > 10", "x * 0.1", "rate(TEMP)", "duration(a==1)", "TEMP > 0 and HOT", "sum(x for x in y)", "p0 if p1 else p2"),
    *("2026-01-05 08:00:00", "0 3 * * *", "2026-13-40", "24:00", "-1d", "1e308"),
    *("g/#", "+/+/r", "$share/a/g/#", "p2p/#", "g/pump-7/r", "#", "$SYS/#", "a//b/"),
    *("uid,name\n1,2\n", '"a\nb",', "=cmd()", "<b>", "%s%n", "../../etc/passwd", "' or 1=1 --", "${x}"),
)
_NUMBERS = (0, 1, -1, 2, 10, 100, 1_000, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**40, 0.1, -0.0, 1e308, 5e-324)


class Values:
    """Makes them of one source of chance.

    Args:
        known: texts that mean something to the platform: ids, names.
    """

    def __init__(self, random: Random, known: Sequence[str] = ()) -> None:
        self.random = random
        self.known = list(known) or ["a"]
        self.pick = random.choice

    def chance(self, share: float) -> bool:
        """Whether something happens that does so in this share of all cases."""
        return self.random.random() < share

    def text(self) -> str:
        """Often short, now and then long."""
        match self.random.randrange(8):
            case 0 | 1 | 2:
                return self.pick(self.known)
            case 3:
                return self.pick(_GRAMMAR)
            case 4:
                return strange("", self.random)
            case 5:
                return "".join(map(chr, (self.random.randrange(0x2FFF) for _ in range(self.random.randrange(20)))))
            case 6:
                return self.pick(self.known) + self.pick((*"\0/+#\ud800 .,", "'", "\n")) + self.pick(_GRAMMAR)
        return self.pick('a[{"(+/,\n\u0301') * self.random.randrange(LONG) if self.chance(0.1) else ""

    def value(self, depth: int = 3) -> Any:
        """Whatever JSON can say, and some that it can't."""
        match self.random.randrange(9 if depth else 5):
            case 0:
                return self.pick((None, True, False, float("nan"), float("inf")))
            case 1 | 2:
                return self.pick(_NUMBERS)
            case 3 | 4:
                return self.text()
            case 5 | 6:
                return [self.value(depth - 1) for _ in range(self._many())]
        return {self.text(): self.value(depth - 1) for _ in range(self._many())}

    def _many(self) -> int:
        return self.random.randrange(1_000) if self.chance(0.01) else self.random.randrange(5)

    def changed(self, example: Any) -> Any:
        """An example in which about one value in six is another."""
        if self.chance(0.1):
            return self.value()
        match example:
            case dict():
                found = {name: self.changed(each) for name, each in example.items() if not self.chance(0.05)}
                return {**found, self.text(): self.value()} if self.chance(0.1) else found
            case list():
                found = [self.changed(each) for each in example]
                return found * self.random.randrange(40) if self.chance(0.05) else found
            case str() if self.chance(0.2):
                return self.pick(
                    (self.text(), example + self.text(), example[: self.random.randrange(len(example) + 1)])
                )
        return example

    def json(self, value: Any) -> bytes:
        """A value as JSON, most often sound."""
        text = json.dumps(value, ensure_ascii=self.chance(0.5)).encode("utf-8", "surrogatepass")
        return self.damaged(text) if self.chance(0.1) else text

    def payload(self, points: Sequence[str]) -> bytes:
        """What a terminal might report: JSON or MessagePack with some of the points, or anything."""
        match self.random.randrange(6):
            case 0 | 1:
                return self.json({name: self.value(0) for name in points if self.chance(0.5)})
            case 2:
                return self.json({self.pick(points): self.value(), **{self.text(): self.value() for _ in range(3)}})
            case 3:
                try:
                    return self._perhaps_damaged(msgspec.msgpack.encode({self.pick(points): self.value(), "n": [1, 2]}))
                except (UnicodeError, OverflowError):  # it has no way to say this
                    return b"\x81\xa1n\xcf" + self.bytes(8)
            case 4:
                return self.json(self.value())
        return self.bytes(200)

    def bytes(self, most: int) -> bytes:
        """Any bytes."""
        return self.random.randbytes(self.random.randrange(most))

    def damaged(self, data: bytes) -> bytes:
        """With something missing, repeated, turned over or put in."""
        for _ in range(self.random.randrange(1, 4)):
            start = self.random.randrange(len(data) + 1)
            end = min(len(data), start + self.random.randrange(1, 9))
            match self.random.randrange(5):
                case 0:
                    data = data[:start] + data[end:]
                case 1:
                    data = data[:start] + data[start:end] * self.pick((2, 3, 40, 1_000)) + data[end:]
                case 2:
                    data = (
                        data[:start]
                        + bytes(each ^ 1 << self.random.randrange(8) for each in data[start:end])
                        + data[end:]
                    )
                case 3:
                    data = data[:start] + strange(b"", self.random) + data[end:]
                case _:
                    data = data[:start]
        return data

    def _perhaps_damaged(self, data: bytes) -> bytes:
        return self.damaged(data) if self.chance(0.3) else data
