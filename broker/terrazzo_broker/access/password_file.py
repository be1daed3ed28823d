"""Users and their passwords from a file, checked in the same time for each name, known or not."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from .errors import bad_line, numbered_lines
from .password_hash import PasswordHash, parse_hash

_NOBODY = PasswordHash(101, bytes(12), bytes(64))  # whose password nobody has


class Passwords:
    """The users of a file. ``hashes`` by user name."""

    def __init__(self, hashes: Mapping[str, PasswordHash]) -> None:
        self._hashes = hashes
        self._costs = [(each.iterations, each.salt) for each in hashes.values()]
        self._key = secrets.token_bytes(16)

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, username: str) -> tuple[PasswordHash, bool]:
        """The user's hash, and whether there is such a user.

        For a name that isn't known, the hash that nobody's password has: of the cost of one of the file's users, always
        the same for the same name, so that the time says nothing.
        """
        known = self._hashes.get(username)
        if known is not None:
            return known, True
        if not self._costs:
            return _NOBODY, False
        chosen = hmac.digest(self._key, username.encode("utf-8", "surrogatepass"), "sha256")
        iterations, salt = self._costs[int.from_bytes(chosen[:8], "big") % len(self._costs)]
        return PasswordHash(iterations, salt, _NOBODY.digest), False

    def proof(self, username: str | None) -> PasswordHash | None:
        """What a user has proved by logging in; another one where the password was set anew since."""
        return None if username is None else self._hashes.get(username)


def read_passwords(path: Path) -> Passwords:
    """Reads lines ``user:hash``; lines that start with # are comments.

    Raises:
        AccessFileError: the file or a line can't be used.
    """
    hashes: dict[str, PasswordHash] = {}
    for number, line in numbered_lines(path):
        name, colon, text = line.partition(":")
        name = name.strip()
        if not colon or not name:
            raise bad_line(path, number, "expected <user>:<hash>")
        if name in hashes:
            raise bad_line(path, number, f"user {name[:64]!r} stands there twice")
        try:
            hashes[name] = parse_hash(text.strip())
        except ValueError as error:
            raise bad_line(path, number, str(error)) from None
    return Passwords(hashes)
