"""Files of keys in backups: encrypted with a passphrase, by scrypt and AES-256-GCM.

A sealed file is ``TZK1``, a salt (16 bytes), a nonce (12), and the ciphertext with its tag; the path is authenticated
with it, so that nobody puts one file in the place of another.
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

KEY_FILES = frozenset(
    {
        "secrets-key",
        "secrets-key.old",
        "token-key",
        "firmware-key",
        "admin-password",
        "demo-passwords",
        "demo-curl-headers",
        "demo-fleet.json",
    }
)
"""Files of the data folder by whose content somebody gets in, or reads sealed secrets."""

LEAST_PASSPHRASE = 12
_MAGIC = b"TZK1"
_SALT, _NONCE = 16, 12
_COST = 1 << 15


class PassphraseUnusable(ValueError):
    """The passphrase is none, too short, or not the one that a file was sealed with; ``str()`` says which."""


class KeySealer:
    """Seals and opens with one passphrase; each salt is derived once."""

    def __init__(self, passphrase: bytes) -> None:
        if len(passphrase) < LEAST_PASSPHRASE:
            raise PassphraseUnusable(f"backup.passphrase_file: expected at least {LEAST_PASSPHRASE} bytes")
        self._passphrase = passphrase
        self._salt = os.urandom(_SALT)
        self._ciphers: dict[bytes, AESGCM] = {}

    @classmethod
    def read(cls, path: str) -> KeySealer:
        """With the passphrase in a file; line ends around it don't count.

        Raises:
            PassphraseUnusable: it can't be read, or is too short; names the key of the configuration.
        """
        try:
            return cls(Path(path).expanduser().read_bytes().strip(b"\r\n"))
        except OSError as error:
            raise PassphraseUnusable(f"backup.passphrase_file: {path}: {error.strerror}") from None

    def seal(self, content: bytes, path: str) -> bytes:
        """The content of the file ``path``, sealed."""
        nonce = os.urandom(_NONCE)
        return _MAGIC + self._salt + nonce + self._cipher(self._salt).encrypt(nonce, content, path.encode())

    def open(self, sealed: bytes, path: str) -> bytes:
        """The content that was sealed as the file ``path``.

        Raises:
            PassphraseUnusable: it was sealed with another passphrase, or is damaged.
        """
        head = len(_MAGIC) + _SALT + _NONCE
        if not sealed.startswith(_MAGIC) or len(sealed) < head:
            raise PassphraseUnusable(f"{path}: is not sealed in a way that this version knows")
        salt, nonce = sealed[len(_MAGIC) : len(_MAGIC) + _SALT], sealed[len(_MAGIC) + _SALT : head]
        try:
            return self._cipher(salt).decrypt(nonce, sealed[head:], path.encode())
        except InvalidTag:
            raise PassphraseUnusable(f"{path}: was sealed with another passphrase, or is damaged") from None

    def _cipher(self, salt: bytes) -> AESGCM:
        if salt not in self._ciphers:
            derived = Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(self._passphrase)
            self._ciphers[salt] = AESGCM(derived)
        return self._ciphers[salt]
