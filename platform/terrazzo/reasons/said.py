"""Sentences of the catalogue, filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from terrazzo.reasons.catalogue import CATALOGUE

SEVERAL: Final = "several"
"""The code of what is wrong with several fields: ``faults`` has the reason of each."""


class Said(str):
    """A sentence that knows its code and what it was filled with.

    ``str()`` of it, what is cut out of it and what it stands in is plain text, which is what encoders take.
    """

    __slots__ = ("code", "values")
    code: str
    values: Mapping[str, Any]

    def again(self, **values: object) -> Said:
        """The same sentence, filled with other values where some are given."""
        filled = {**self.values, **values}
        return _said(CATALOGUE[self.code].format(**filled), self.code, filled)

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors go to other processes and back."""
        return _said, (self[:], self.code, {name: _plain(value) for name, value in self.values.items()})


def say(code: str, /, **values: object) -> Said:
    """The sentence of a code.

    Args:
        code: one of the catalogue's.
        values: what its places are filled with, all of them.
    """
    return _said(CATALOGUE[code].format(**values), code, values)


def say_each(faults: Sequence[tuple[str, str]], *, named: bool = False) -> str:
    """What is wrong with the first field, then with each other one behind its name: ``is required; name: is required``.

    Args:
        faults: field and reason, one at least.
        named: the first one's name is said, too.
    """
    (_, first), *others = faults
    if not others and not named:
        return first
    texts = [f"{field}: {reason}" for field, reason in faults]
    return _said("; ".join(texts if named else [first, *texts[1:]]), SEVERAL, {"faults": faults})


def _said(text: str, code: str, values: Mapping[str, Any]) -> Said:
    made = Said(text)
    made.code, made.values = code, values
    return made


def told_by(error: BaseException) -> str:
    """What an error was given, or the one that it repeats: a sentence that knows its code, or its text."""
    given = error.args[0] if error.args else None
    if isinstance(given, str) and given.__class__ is not str:  # a ``Said``, or one that is told again
        return given
    text, cause = str(error), error.__cause__
    return told_by(cause) if cause is not None and str(cause) == text else text


def _plain(value: Any) -> Any:
    """A value that another process can read."""
    if isinstance(value, BaseException):
        return told_by(value)
    return value if isinstance(value, str | int | float | list) else str(value)
