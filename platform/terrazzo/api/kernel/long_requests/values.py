"""Long requests: how many values they have, known before any is made, and work on them a turn of the loop at a time."""

from __future__ import annotations

from terrazzo.domain.payload import extreme_numbers, has_many_extremes
from terrazzo.loop_pauses import Steps, T, next_turn

LONG = 16 * 1024
"""Characters of a request that is read field by field; shorter ones are read in a millisecond or two, but for extreme
numbers (see ``takes_long``)."""

MOST_VALUES = 30_000
"""Of one field, unless ``limits.field_values`` says otherwise: they are read in some 4 ms, whatever they are."""

SHORT = 1_000  # characters, which are read in a millisecond or two, whatever they are
_TEXTS_AT_ONCE = 1_000
_EXTREME_VALUES = 200  # what such a number costs, of some 10 us: msgspec reads it digit by digit beyond 1e288
_PIECE = 64 * 1024
_OF_VALUES = (b"[", b"{", b"\\")  # how a text begins that is JSON itself, perhaps


def takes_long(text: str | bytes) -> bool:
    """Whether a request, or a field of one, is read in turns of the loop, and what is in it is counted before."""
    if len(text) > LONG or len(text) <= SHORT:
        return len(text) > LONG
    return has_many_extremes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)


def separators(text: bytes, begin: int = 0, end: int | None = None) -> int:
    """Commas and opening brackets, at least as many as there are values."""
    return text.count(b",", begin, end) + text.count(b"[", begin, end) + text.count(b"{", begin, end)


def values_in(text: bytes, most: int) -> Steps[int]:
    """How many values there are in well-formed JSON, roughly; of more than ``most`` only that there are more.

    Commas within texts don't count, unless the text may be JSON that is read further. Numbers with exponents of three
    digits count as many.
    """
    extreme = 0
    for begin in range(0, len(text), _PIECE):
        yield
        extreme += _EXTREME_VALUES * extreme_numbers(text, begin, begin + _PIECE)
    if extreme > most or separators(text) + extreme <= most:
        return separators(text) + extreme
    found, at, looked = extreme, 0, 0
    while found <= most and (begin := text.find(b'"', at)) >= 0:
        found += separators(text, at, begin)
        last = begin
        while (end := text.find(b'"', last + 1)) >= 0 and _is_escaped(text, last, end):
            last, looked = end, looked + 1
            if not looked % _TEXTS_AT_ONCE:
                yield
        if end < 0:
            break
        if text[begin + 1 : end].lstrip(b" ").startswith(_OF_VALUES):
            found += separators(text, begin, end) + text.count(b"\\u00", begin, end)
        at, looked = end + 1, looked + 1
        if not looked % _TEXTS_AT_ONCE:
            yield
    return found if found > most else found + separators(text, at)


def _is_escaped(text: bytes, last: int, quote: int) -> bool:
    """Whether an odd number of backslashes stands before a quote, since the one before it."""
    stretch = text[last + 1 : quote]
    return (len(stretch) - len(stretch.rstrip(b"\\"))) % 2 == 1


async def turn_by_turn(steps: Steps[T]) -> T:
    """Does the steps, each in a turn of its own."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        await next_turn()
