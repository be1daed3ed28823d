"""Secrets at rest: AES-256-GCM with a key that is a file beside the database, or given by configuration.

While a key is being replaced there are two: what is written is sealed with the new one, what is read with either.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from terrazzo.crypto.key_file import KeyFile, load_key, read_key
from terrazzo.errors import Unavailable

KEY_FILE = "secrets-key"
OLD_KEY_FILE = "secrets-key.old"
"""The key that is being replaced: it exists until everything is sealed with the new one."""
KEY_BYTES = 32
_NONCE_BYTES = 12
_VERSION = "1:"


class SecretUnreadable(Unavailable):
    """A stored secret that can't be decrypted with the key at hand."""


class KeySource(Protocol):
    """Where keys come from that another process may replace."""

    def look(self) -> tuple[bytes, ...] | None:
        """The keys, newest first, where they have changed since the last look; else None."""


class Secrets:
    """Encrypts and decrypts texts; ``place`` (table and column) is authenticated with each.

    Args:
        keys: the first one seals, any of them opens.
        source: is asked before anything is sealed, and when a secret can't be opened.
    """

    def __init__(self, *keys: bytes, source: KeySource | None = None) -> None:
        self._ciphers = [AESGCM(key) for key in keys]
        self._source = source
        self._replaced = 0

    @classmethod
    def open(cls, data_dir: Path, *, key: str = "", old_key: str = "") -> Secrets:
        """Uses ``key`` (64 hexadecimal digits), else ``<data>/secrets-key``, made the first time with mode 0600.

        Args:
            old_key: opens what was sealed before ``key`` was in force.

        Raises:
            ValueError: a key is malformed.
        """
        if not key:
            source = SecretsKeyFiles(data_dir)
            return cls(*(source.look() or ()), source=source)
        try:
            return cls(*(bytes.fromhex(each) for each in (key, old_key) if each))
        except ValueError:
            raise ValueError(f"expected {2 * KEY_BYTES} hexadecimal digits") from None

    @property
    def is_replacing(self) -> bool:
        """Whether there is an older key too, so that some secrets may still be sealed with it."""
        return len(self._ciphers) > 1

    def look(self) -> int:
        """Reads the keys again if they were replaced; how often they have been. What was sealed before that is old."""
        self._look()
        return self._replaced

    def seal(self, text: str, place: str) -> str:
        """The encrypted form of a text; an empty text stays empty."""
        if not text:
            return ""
        self._look()
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, text.encode(), place.encode())
        return _VERSION + base64.b64encode(nonce + sealed).decode()

    def unseal(self, stored: str, place: str) -> str:
        """The clear text.

        Raises:
            SecretUnreadable: it was sealed with another key or for another place, or it was changed.
        """
        if not stored:
            return ""
        text = self._opened(stored, place, self._ciphers)
        if text is None and self._look():
            text = self._opened(stored, place, self._ciphers)
        if text is None:
            raise SecretUnreadable(
                f"{place}: a stored secret can't be opened with this key; restore {KEY_FILE} from a backup"
            )
        return text

    def unseal_all(self, stored: Sequence[str], place: str) -> list[str]:
        """The clear texts; raises as ``unseal`` does."""
        decrypt, where, start = self._ciphers[0].decrypt, place.encode(), len(_VERSION)
        texts = []
        for each in stored:
            try:
                data = binascii.a2b_base64(each[start:], strict_mode=True) if each else b""
                texts.append(decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], where).decode() if data else "")
            except (InvalidTag, ValueError):  # of another key, perhaps
                texts.append(self.unseal(each, place))
        return texts

    def is_newest(self, stored: str, place: str) -> bool:
        """Whether a stored secret is sealed with the newest key; an empty one needs none."""
        return not stored or self._opened(stored, place, self._ciphers[:1]) is not None

    def _look(self) -> bool:
        keys = None if self._source is None else self._source.look()
        if keys is not None:
            self._ciphers = [AESGCM(key) for key in keys]
            self._replaced += 1
        return keys is not None

    @staticmethod
    def _opened(stored: str, place: str, ciphers: list[AESGCM]) -> str | None:
        try:
            data = binascii.a2b_base64(stored.removeprefix(_VERSION), strict_mode=True)
        except (ValueError, binascii.Error):
            return None
        for cipher in ciphers:
            try:
                return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode()).decode()
            except (InvalidTag, ValueError):
                continue  # of another key
        return None


class SecretsKeyFiles:
    """``secrets-key`` and, while it is being replaced, ``secrets-key.old``; implements ``KeySource``."""

    def __init__(self, data_dir: Path) -> None:
        self._newest = data_dir / KEY_FILE
        self._old = data_dir / OLD_KEY_FILE
        self._files = KeyFile(self._newest), KeyFile(self._old)
        self._is_open = False

    def look(self) -> tuple[bytes, ...] | None:
        """See ``KeySource.look``; makes the key at the first look if there is no file.

        Raises:
            ValueError, OSError: a file holds something else; it can't be read or written.
        """
        changed = [file.has_changed() for file in self._files]
        if not any(changed) or (self._is_open and not self._newest.exists()):
            return None  # a key that is gone must not be made anew while the one in memory opens everything
        self._is_open = True
        keys = [load_key(self._newest, size=KEY_BYTES)]
        old = read_key(self._old, size=KEY_BYTES)
        if old is not None and old not in keys:
            keys.append(old)
        return tuple(keys)


def is_sealed(stored: str) -> bool:
    """Whether a text is one that ``seal`` has made; a column may have been in the clear before it was a secret."""
    return stored.startswith(_VERSION)
