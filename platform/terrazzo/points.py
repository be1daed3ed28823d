"""Points as mapping and control tables name them: ``$AdapterID-<n>.<point>`` or ``<terminal_uid>.<point>``.

Without ``.<point>`` the terminal itself is meant (section 2, Pusher, rule 2). Uids may contain dots, and so may points:
the terminals that exist decide where a uid ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from terrazzo.reasons import say

MAX_UID = 64  # characters of a terminal's uid
_POSITION = re.compile(r"\$AdapterID-([0-9]{1,6})(?:\.(.*))?", re.DOTALL)


class Point(NamedTuple):
    """A terminal (by uid) and a key of its reports or commands; an empty ``key`` is the terminal itself."""

    terminal_id: str
    key: str


class PointText(NamedTuple):
    """A reference as it is written, not yet resolved to a terminal."""

    position: int | None  # from 1, None where the terminal is named
    rest: str  # the key after a position; uid, or uid and key, where the terminal is named


def parse_point(text: str) -> PointText:
    """Reads a reference; terminals are looked up by ``find_point``.

    Raises:
        ValueError: it is malformed; says how.
    """
    text = text.strip()
    found = _POSITION.fullmatch(text)
    if found is None:
        if text.startswith("$"):
            raise ValueError(say("point_expected_adapter", text=text))
        if not text:
            raise ValueError(say("point_empty"))
        return PointText(None, text)
    position, key = int(found[1]), found[2]
    if position < 1:
        raise ValueError(say("point_from_1", text=text))
    if key == "":
        raise ValueError(say("point_ends_in_dot", text=text))
    return PointText(position, key or "")


def find_point(text: str, terminals: Sequence[str], is_known: Callable[[str], bool]) -> Point:
    """The point that a reference means for one object.

    Args:
        terminals: the object's ``terminal_list``.
        is_known: whether another terminal with this uid exists; the object's own come first.

    Raises:
        ValueError: it is malformed, or there is no such terminal.
    """
    position, rest = parse_point(text)
    if position is not None:
        if position > len(terminals):
            raise ValueError(say("point_beyond_terminals", text=text, terminals=len(terminals)))
        return Point(terminals[position - 1], rest)
    splits = _splits(rest)
    for knows in (terminals.__contains__, is_known):
        for split in splits:
            if knows(split.terminal_id):
                return split
    raise ValueError(say("point_names_no_terminal", text=text))


class Reference:
    """A reference that is resolved for many lists of terminals.

    Raises:
        ValueError: it is malformed.
    """

    __slots__ = ("_position", "_splits")

    def __init__(self, text: str) -> None:
        self._position, rest = parse_point(text)
        self._splits = _splits(rest) if self._position is None else [Point("", rest)]

    def among(self, terminals: Sequence[str], listed: Set[str]) -> Point | None:
        """The point that it means for one object; None where none of the object's terminals is named.

        ``listed``: the terminals once more, as a set.
        """
        if self._position is not None:
            named = self._position <= len(terminals)
            return Point(terminals[self._position - 1], self._splits[0].key) if named else None
        return next((split for split in self._splits if split.terminal_id in listed), None)


def _splits(text: str) -> list[Point]:
    """Every way to cut a uid off, longest first; there are no more than a uid has characters."""
    dots = [dot for dot in range(min(len(text) - 1, MAX_UID), -1, -1) if text[dot] == "." and text[dot + 1 :]]
    whole = [Point(text, "")] if len(text) <= MAX_UID else []
    return whole + [Point(text[:dot], text[dot + 1 :]) for dot in dots]
