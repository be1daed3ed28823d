"""Secrets at rest: AES-256-GCM with a key that is a file beside the database, or given by configuration."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from terrazzo.crypto.key_file import load_key
from terrazzo.errors import Unavailable

KEY_FILE = "secrets-key"
KEY_BYTES = 32
_NONCE_BYTES = 12
_VERSION = "1:"


class SecretUnreadable(Unavailable):
    """A stored secret that can't be decrypted with the key at hand."""


class Secrets:
    """Encrypts and decrypts texts; ``place`` (table and column) is authenticated with each."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    @classmethod
    def open(cls, data_dir: Path, *, key: str = "") -> Secrets:
        """Uses ``key`` (64 hexadecimal digits), else ``<data>/secrets-key``, made the first time with mode 0600.

        Raises:
            ValueError: the key is malformed.
        """
        if not key:
            return cls(load_key(data_dir / KEY_FILE, size=KEY_BYTES))
        try:
            return cls(bytes.fromhex(key))
        except ValueError:
            raise ValueError(f"expected {2 * KEY_BYTES} hexadecimal digits") from None

    def seal(self, text: str, place: str) -> str:
        """The encrypted form of a text; an empty text stays empty."""
        if not text:
            return ""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, text.encode(), place.encode())
        return _VERSION + base64.b64encode(nonce + sealed).decode()

    def unseal(self, stored: str, place: str) -> str:
        """The clear text.

        Raises:
            SecretUnreadable: it was sealed with another key or for another place, or it was changed.
        """
        if not stored:
            return ""
        try:
            data = binascii.a2b_base64(stored.removeprefix(_VERSION), strict_mode=True)
            return self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode()).decode()
        except (InvalidTag, ValueError, binascii.Error):
            raise SecretUnreadable(
                f"{place}: a stored secret can't be opened with this key; restore {KEY_FILE} from a backup"
            ) from None
