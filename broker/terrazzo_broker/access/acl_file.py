"""Access rights on topics from a file in Mosquitto's format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntFlag
from pathlib import Path
from typing import NamedTuple

from ..topics.names import is_topic_filter, matches
from .errors import bad_line, numbered_lines

_MOST_LEVELS = 200


class Access(IntFlag):
    """What may be done on a topic."""

    DENY = 0
    READ = 1  # be sent messages
    WRITE = 2  # publish
    READWRITE = 3


class AclEntry(NamedTuple):
    """One line: what may be done on topics that a filter matches."""

    access: Access
    pattern: str


class Acl:
    """The rights of a file.

    Args:
        anonymous: entries of clients without a user name.
        users: entries by user name.
        patterns: entries of everybody, with ``%c`` for the client id and ``%u`` for the user name.
    """

    def __init__(
        self, anonymous: Iterable[AclEntry], users: Mapping[str, Iterable[AclEntry]], patterns: Iterable[AclEntry]
    ) -> None:
        self._anonymous = _denials_first(anonymous)
        self._users = {name: _denials_first(entries) for name, entries in users.items()}
        self._patterns = _denials_first(patterns)

    def allows(self, access: Access, topic: str, *, username: str | None, client_id: str) -> bool:
        """Whether a client may read from or write to a topic: the first entry that matches and says something decides.

        The client's own entries come before the patterns; nothing is allowed that no entry allows.
        """
        own = self._anonymous if username is None else self._users.get(username, ())
        for entry in own:
            if matches(entry.pattern, topic):
                if not entry.access:
                    return False
                if entry.access & access:
                    return True
        if not self._patterns or _has_wildcards(username) or _has_wildcards(client_id):
            return False
        for entry in self._patterns:
            pattern = _substitute(entry.pattern, username, client_id)
            if pattern is not None and matches(pattern, topic):
                if not entry.access:
                    return False
                if entry.access & access:
                    return True
        return False


def read_acl(path: Path) -> Acl:
    """Reads lines ``topic [access] <filter>``, ``user <name>``, ``pattern [access] <filter>`` and comments (#).

    ``access`` is read, write, readwrite (where none is given) or deny; a filter with blanks in it needs one.

    Raises:
        AccessFileError: the file or a line can't be used.
    """
    users: dict[str | None, list[AclEntry]] = {None: []}
    patterns: list[AclEntry] = []
    user: str | None = None
    for number, line in numbered_lines(path):
        word, _, rest = line.lstrip(" ").partition(" ")
        rest = rest.lstrip(" ")
        try:
            if word == "user":
                user = _user(rest)
                users.setdefault(user, [])
            elif word == "topic":
                users[user].append(_entry(rest))
            elif word == "pattern":
                patterns.append(_entry(rest))
            else:
                raise ValueError("expected topic, user or pattern")
        except ValueError as error:
            raise bad_line(path, number, str(error)) from None
    anonymous = users.pop(None)
    return Acl(anonymous, {name: entries for name, entries in users.items() if name is not None}, patterns)


def _user(name: str) -> str:
    if not name:
        raise ValueError("user: no name")
    return name


def _entry(text: str) -> AclEntry:
    first, blank, rest = text.partition(" ")
    access, pattern = Access.READWRITE, first
    if blank:
        pattern = rest.lstrip(" ")
        if first.upper() not in Access.__members__ or not first.islower():
            raise ValueError(f"expected read, write, readwrite or deny, got {first[:64]!r}")
        access = Access[first.upper()]
    if not pattern:
        raise ValueError("no topic")
    if not is_topic_filter(pattern, levels=_MOST_LEVELS):
        raise ValueError(f"{pattern[:64]!r} is not a topic filter")
    return AclEntry(access, pattern)


def _denials_first(entries: Iterable[AclEntry]) -> tuple[AclEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.access is not Access.DENY))


def _has_wildcards(name: str | None) -> bool:
    """Whether a name would widen a pattern that it is put into; then no pattern counts."""
    return name is not None and ("+" in name or "#" in name)


def _substitute(pattern: str, username: str | None, client_id: str) -> str | None:
    """The filter of a pattern for one client; None where it needs a user name and there is none."""
    if "%u" in pattern and username is None:
        return None
    parts = pattern.split("%")
    filled = [parts[0]]
    for part in parts[1:]:
        name = {"c": client_id, "u": username}.get(part[:1])
        filled.append("%" + part if name is None else name + part[1:])
    return "".join(filled)
