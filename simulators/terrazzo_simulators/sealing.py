"""Encrypted payloads: JWE compact serialization (RFC 7516) with content encryption A256GCM."""

from __future__ import annotations

import base64
import binascii
import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import load_pem_public_key

KEY_BYTES = 32
_IV_BYTES = 12  # RFC 7518, 5.3
_TAG_BYTES = 16
_OAEP_256 = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)


class SealError(ValueError):
    """A sealed payload that cannot be opened, or a key that cannot be used."""


def derive_key(*, pin: str, uid: str) -> bytes:
    """A terminal's key for JWE ``dir``: HKDF-SHA256 (RFC 5869) of the pin, empty salt, info = uid, 32 bytes."""
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=b"", info=uid.encode()).derive(pin.encode())


class Seal:
    """Seals what a terminal publishes and opens what it is sent."""

    def __init__(self, *, pin: str, uid: str, rsa_publickey: str = "") -> None:
        self._key = derive_key(pin=pin, uid=uid)
        self._rsa = _load_rsa(rsa_publickey) if rsa_publickey else None

    def seal(self, payload: bytes) -> bytes:
        """The payload as a JWE: RSA-OAEP-256 if the terminal has a public key, otherwise ``dir``."""
        if self._rsa is None:
            return _encrypt(payload, alg="dir", content_key=self._key, encrypted_key=b"")
        content_key = os.urandom(KEY_BYTES)
        encrypted_key = self._rsa.encrypt(content_key, _OAEP_256)
        return _encrypt(payload, alg="RSA-OAEP-256", content_key=content_key, encrypted_key=encrypted_key)

    def open(self, token: bytes) -> bytes:
        """The payload of a JWE that was sealed with the ``dir`` key. Raises ``SealError``."""
        header, encrypted_key, iv, ciphertext, tag = _split(token)
        _require_dir(header)
        if encrypted_key or len(iv) != _IV_BYTES or len(tag) != _TAG_BYTES:
            raise SealError("a JWE of dir and A256GCM has no encrypted key, a 96-bit IV and a 128-bit tag")
        try:
            return AESGCM(self._key).decrypt(iv, ciphertext + tag, token.split(b".", 1)[0])
        except InvalidTag as error:
            raise SealError("sealed with another key, or changed on its way") from error


def _load_rsa(pem: str) -> rsa.RSAPublicKey:
    try:
        key = load_pem_public_key(pem.encode())
    except ValueError as error:
        raise SealError(f"rsa_publickey is not a PEM public key: {error}") from error
    if not isinstance(key, rsa.RSAPublicKey):
        raise SealError("rsa_publickey is not an RSA key")
    return key


def _encrypt(payload: bytes, *, alg: str, content_key: bytes, encrypted_key: bytes) -> bytes:
    header = _b64(json.dumps({"alg": alg, "enc": "A256GCM"}, separators=(",", ":")).encode())
    iv = os.urandom(_IV_BYTES)
    sealed = AESGCM(content_key).encrypt(iv, payload, header)  # the header is authenticated too, RFC 7516 5.1
    parts = (encrypted_key, iv, sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])
    return b".".join((header, *map(_b64, parts)))


def _split(token: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    parts = token.split(b".")
    if len(parts) != 5:
        raise SealError("not a JWE in compact serialization")
    try:
        header, key, iv, ciphertext, tag = map(_unb64, parts)
    except (binascii.Error, ValueError) as error:
        raise SealError(f"not base64url: {error}") from error
    return header, key, iv, ciphertext, tag


def _require_dir(header: bytes) -> None:
    try:
        fields = json.loads(header)
    except ValueError as error:
        raise SealError("the JWE header is not JSON") from error
    if not isinstance(fields, dict) or (fields.get("alg"), fields.get("enc")) != ("dir", "A256GCM"):
        raise SealError("commands are sealed with dir and A256GCM")


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _unb64(data: bytes) -> bytes:
    return base64.b64decode(data + b"=" * (-len(data) % 4), altchars=b"-_", validate=True)
