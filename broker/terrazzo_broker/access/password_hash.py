"""Password hashes of ``mosquitto_passwd``: ``$6$`` (SHA-512 with a salt) and ``$7$`` (PBKDF2-HMAC-SHA512)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import NamedTuple

MAX_ITERATIONS = 1_000_000  # about half a second
MAX_SALT_BYTES = 1_024
_DIGEST_BYTES = 64


class PasswordHash(NamedTuple):
    """The hash of one password. ``iterations`` of PBKDF2; 0: SHA-512 of the password and the salt."""

    iterations: int
    salt: bytes
    digest: bytes

    def matches(self, password: bytes) -> bool:
        """Whether it is this password's; takes the same time for each password of a length."""
        return hmac.compare_digest(self._digest_of(password), self.digest)

    def _digest_of(self, password: bytes) -> bytes:
        if not self.iterations:
            return hashlib.sha512(password + self.salt).digest()
        return hashlib.pbkdf2_hmac("sha512", password, self.salt, self.iterations)


def parse_hash(text: str) -> PasswordHash:
    """Reads ``$6$<salt>$<hash>`` or ``$7$<iterations>$<salt>$<hash>``, salt and hash in base64.

    Raises:
        ValueError: says what is wrong, and nothing of the text.
    """
    empty, *parts = text.split("$")
    match [empty, *parts]:
        case ["", "6", salt, digest]:
            iterations = 0
        case ["", "7", count, salt, digest]:
            iterations = _iterations(count)
        case _:
            raise ValueError(
                "expected $6$<salt>$<hash> or $7$<iterations>$<salt>$<hash>, as mosquitto_passwd writes it"
            )
    found = PasswordHash(iterations, _decode("salt", salt), _decode("hash", digest))
    if not 0 < len(found.salt) <= MAX_SALT_BYTES:
        raise ValueError(f"salt: expected 1 to {MAX_SALT_BYTES} bytes")
    if len(found.digest) != _DIGEST_BYTES:
        raise ValueError(f"hash: expected {_DIGEST_BYTES} bytes, got {len(found.digest)}")
    return found


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 12) or not 0 < int(text) <= MAX_ITERATIONS:
        raise ValueError(f"iterations: expected 1 to {MAX_ITERATIONS}")
    return int(text)


def _decode(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name}: not base64") from None
