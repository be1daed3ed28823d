"""The certificate, key and client authorities of a TLS listener: read from files, and again on request.

Authorities may be given besides, in memory: all of them are trusted alike, and it is for the hooks to say for whom each
one may vouch.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..limited_log import limited_logger

log = limited_logger("terrazzo_broker.tls")


class CertificateError(ValueError):
    """A file of a TLS listener can't be used. ``setting``: ``tls_cert``, ``tls_key`` or ``tls_client_ca``."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")
        self.setting = setting
        self.reason = reason


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """PEM files: the certificate with its chain, its key, and the authority that signs client certificates (None: no
    client is asked for one)."""

    cert: str | Path
    key: str | Path
    client_ca: str | Path | None = None


class Certificates:
    """The TLS context for new connections; open ones keep the context that they were accepted with."""

    def __init__(self, files: TlsFiles, *, protocol: str, authorities: Sequence[bytes] = ()) -> None:
        """``protocol`` is announced by ALPN; ``authorities`` (DER) are trusted besides the file's.

        Raises:
            CertificateError: a file is missing, unreadable, no PEM, or doesn't belong to the others.
        """
        self.files = files
        self.authorities = authorities
        self._protocol = protocol
        self.context = self.read()

    def reload(self) -> None:
        """Reads the files again, for connections still to come.

        Raises:
            CertificateError: as at the start; then nothing has changed.
        """
        self.context = self.read()

    def read(self) -> ssl.SSLContext:
        """Makes a context of what the files hold now.

        Raises:
            CertificateError: as at the start.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols([self._protocol])
        _load_chain(context, _readable("tls_cert", self.files.cert), _readable("tls_key", self.files.key))
        if self.files.client_ca is not None:
            _load_authority(context, _readable("tls_client_ca", self.files.client_ca))
        if self.authorities:
            _trust(context, self.authorities)
        return context


def _readable(setting: str, path: str | Path) -> str:
    try:
        Path(path).read_bytes()
    except OSError as error:
        raise CertificateError(setting, f"{path}: {error.strerror or error}") from error
    return str(path)


def _load_chain(context: ssl.SSLContext, cert: str, key: str) -> None:
    if "-----BEGIN CERTIFICATE-----" not in Path(cert).read_text("latin-1"):
        raise CertificateError("tls_cert", f"{cert}: holds no PEM certificate")
    try:
        context.load_cert_chain(cert, key, password=lambda: b"")  # or OpenSSL asks at the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise CertificateError("tls_key", f"{key}: is not the key of {cert}") from error
        if "ENCRYPTED" in Path(key).read_text("latin-1"):
            raise CertificateError("tls_key", f"{key}: is encrypted; keep it without a passphrase") from error
        raise CertificateError("tls_key", f"{key}, with tls_cert {cert}: {_reason(error)}") from error


def _load_authority(context: ssl.SSLContext, client_ca: str) -> None:
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError as error:
        raise CertificateError("tls_client_ca", f"{client_ca}: holds no PEM certificate") from error
    context.verify_mode = ssl.CERT_OPTIONAL  # who shows a certificate shows a good one; who shows none may log in


def _trust(context: ssl.SSLContext, authorities: Sequence[bytes]) -> None:
    """Trusts authorities, each by itself: one that another has signed needs not be followed up to its root."""
    context.load_verify_locations(cadata=b"".join(authorities))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_OPTIONAL


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "not PEM").replace("_", " ").lower()
