"""Passwords as Argon2id hashes, computed off the event loop."""

from __future__ import annotations

import asyncio

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from terrazzo.errors import BadParameter
from terrazzo.reasons import say

MIN_CHARACTERS = 8
MAX_CHARACTERS = 256

# OWASP's parameters for Argon2id: 19 MiB and two passes keep a login light beside the data path.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

# A hash of nobody's password with the same parameters, so that unknown users cost the same time.
NOBODY = "$argon2id$v=19$m=19456,t=2,p=1$F8Onf1NTDE81suq9V9K6jQ$6Aek0NKhSopv1KWq4rAICZklFSt3AAEQ7hmYpQhqBmM"


NO_PASSWORD = "!"
"""The stored hash of users who log in otherwise; no password has it."""


def check_password(password: str) -> None:
    """Checks a new password's length: ``MIN_CHARACTERS`` to ``MAX_CHARACTERS``.

    Raises:
        BadParameter: naming ``password``.
    """
    if not MIN_CHARACTERS <= len(password) <= MAX_CHARACTERS:
        raise BadParameter(
            "password", say("expected_characters", least=MIN_CHARACTERS, most=MAX_CHARACTERS, got=len(password))
        )


async def hash_password(password: str) -> str:
    """The Argon2id hash to store, with its parameters and salt."""
    return await asyncio.to_thread(_hasher.hash, _encode(password))


async def verify_password(stored: str | None, password: str) -> bool:
    """Whether the password has this hash.

    For an unknown user (``stored`` None), and for one without a password, it takes the same time.
    """
    known = stored if stored is not None and stored != NO_PASSWORD else None
    matches = await asyncio.to_thread(_matches, known or NOBODY, password)
    return matches and known is not None


def _matches(stored: str, password: str) -> bool:
    try:
        return _hasher.verify(stored, _encode(password))
    except (VerificationError, InvalidHashError):
        return False


def _encode(password: str) -> bytes:
    """The password in UTF-8, cut beyond ``MAX_CHARACTERS``; works for unpaired surrogates too."""
    return password[: MAX_CHARACTERS + 1].encode("utf-8", "surrogatepass")
