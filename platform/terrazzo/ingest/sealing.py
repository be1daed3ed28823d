"""Sealed payloads: JWE compact serialization between a terminal and the platform (docs/terminals.md, "Encryption").

A terminal with an RSA key seals with RSA-OAEP-256; one without seals with the key that both sides derive from its pin
(``dir``). Content is always A256GCM. No other algorithm is accepted, nor compression.
"""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey, RSAKey

from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.domain.terminal import Terminal
from terrazzo.reasons import say

_CONTENT = "A256GCM"


class _Registry(jwe.JWERegistry):
    """The library's limits, with room for the largest payload that the broker lets in."""

    max_ciphertext_length = 64 * 1024 * 1024  # base64url text; the broker's packet limit is the one that counts


_dir = _Registry(algorithms=["dir", _CONTENT])
_rsa = _Registry(algorithms=["RSA-OAEP-256", _CONTENT])


def derive_key(terminal: Terminal) -> bytes:
    """The 32-byte ``dir`` key: HKDF-SHA256 of the pin, no salt, the uid as info, both in UTF-8."""
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=terminal.uid.encode())
    return derivation.derive(terminal.pin.encode())


def parse_private_key(text: str) -> RSAKey:
    """An ``rsa_privatekey`` as it is recorded: PEM.

    That its factors are primes is not proven: it takes up to seconds for a long key, in which the interpreter's lock
    is held, and a key that isn't what it says harms the terminal's own company alone.

    Raises:
        ValueError: it is not an RSA private key; the message says so without showing it.
    """
    try:
        key = load_pem_private_key(text.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(say("seal_key_no_pem")) from None
    if not isinstance(key, RSAPrivateKey) or key.key_size < 2048:
        raise ValueError(say("seal_key_no_rsa"))
    return RSAKey(key, key)


class Seal:
    """Decrypts what one terminal sends, and encrypts what is sent to it.

    ``is_slow``: a payload takes up to tens of milliseconds to open: not for the event loop. ``before``: the seal of the
    record as it was; the key that it has read is taken over.
    """

    __slots__ = ("_key", "_open_key", "_registry", "_text", "is_slow")

    def __init__(self, terminal: Terminal, before: Seal | None = None) -> None:
        self._key = OctKey.import_key(derive_key(terminal))
        self._text = terminal.rsa_privatekey
        self.is_slow = bool(self._text)
        self._registry = _rsa if self.is_slow else _dir
        self._open_key: OctKey | RSAKey | None = None if self.is_slow else self._key
        if before is not None and self.is_slow and before._text == self._text:
            self._open_key = before._open_key

    def open(self, sealed: bytes) -> bytes:
        """The payload inside a JWE.

        Raises:
            Reject: it is not a JWE, of another algorithm, or sealed with another key.
        """
        if sealed.count(b".") != 4:
            raise Reject(RejectKind.SEALED, say("payload_not_sealed"))
        key = self._find_key()
        try:
            plaintext = jwe.decrypt_compact(sealed, key, registry=self._registry).plaintext
        except (JoseError, ValueError, TypeError, KeyError, AssertionError) as error:
            raise Reject(RejectKind.SEALED, say("seal_does_not_open", why=_reason(error))) from None
        return plaintext or b""

    def _find_key(self) -> OctKey | RSAKey:
        if self._open_key is None:
            try:
                self._open_key = parse_private_key(self._text)
            except ValueError:
                raise Reject(RejectKind.SEALED, say("seal_key_unreadable")) from None
        return self._open_key

    def seal(self, payload: bytes) -> bytes:
        """A command's payload as a JWE, encrypted with the ``dir`` key."""
        return jwe.encrypt_compact({"alg": "dir", "enc": _CONTENT}, payload, self._key, registry=_dir).encode()


def _reason(error: Exception) -> str:
    return error.description[:120] if isinstance(error, JoseError) and error.description else type(error).__name__
