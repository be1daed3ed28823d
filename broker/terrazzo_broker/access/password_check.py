"""Checks passwords: cheap hashes at once, dear ones in a few threads and a bounded number at a time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from .password_file import Passwords

THREADS = 2
MOST_WAITING = 1_024  # checks at the same time; more are refused
_CHEAP_ITERATIONS = 200  # of PBKDF2: about 0.2 ms


class TooManyChecks(Exception):
    """As many passwords are being checked as may be."""


class PasswordCheck:
    """Compares passwords with hashes, off the event loop where that takes long."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._waiting = 0

    async def is_right(self, passwords: Passwords, username: str, password: bytes) -> bool:
        """Whether the user is known and the password theirs; takes as long for an unknown one.

        Raises:
            TooManyChecks: ask again later.
        """
        expected, is_known = passwords.find(username)
        if expected.iterations <= _CHEAP_ITERATIONS:
            return expected.matches(password) and is_known
        if self._waiting >= MOST_WAITING:
            raise TooManyChecks
        self._waiting += 1
        try:
            return (
                await asyncio.get_running_loop().run_in_executor(self._threads, expected.matches, password) and is_known
            )
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Ends the threads; checks that wait are not made."""
        self._threads.shutdown(wait=False, cancel_futures=True)
