"""``Tls``: connections over TLS, and the client certificates of terminals, which may be made here."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .spec import SpecError

_DAY = datetime.timedelta(days=1)
_DAYS = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What connections over TLS need.

    Attributes:
        ca: PEM file with who has signed the server's certificate.
        certificates: the folder with ``<uid>.pem`` and ``<uid>.key`` of terminals; None: they show none.
    """

    ca: Path
    certificates: Path | None = None

    def context(self, uid: str | None) -> ssl.SSLContext:
        """A context for the connections of one terminal, which shows its certificate; None: it shows none.

        Raises:
            OSError: a file is missing, or none that TLS can use.
        """
        context = ssl.create_default_context(cafile=str(self.ca))
        context.sslsocket_class = _Socket
        if self.certificates is not None and uid is not None:
            context.load_cert_chain(self.certificates / f"{uid}.pem", self.certificates / f"{uid}.key")
        return context


class _Socket(ssl.SSLSocket):
    """Closes itself where the handshake fails, which paho leaves to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


class CertificateMaker:
    """Makes certificates of terminals with an authority's certificate and key (PEM files, the key unencrypted)."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Reads the authority.

        Raises:
            SpecError: a file can't be read, or is not what it should be.
        """
        try:
            self._certificate = x509.load_pem_x509_certificate(certificate.read_bytes())
            private = load_pem_private_key(key.read_bytes(), password=None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise SpecError(f"--cert-authority: {certificate}, {key}: {error}") from error
        if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise SpecError(f"--cert-authority-key: {key}: expected a key of ECDSA or RSA")
        self._key = private

    def make_missing(self, folder: Path, uids: list[str]) -> int:
        """Makes the certificates that the folder has not, named by uid as common name; returns how many.

        Raises:
            SpecError: the folder can't be written.
        """
        made = 0
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for uid in uids:
                if not (folder / f"{uid}.pem").exists():
                    self._make(folder, uid)
                    made += 1
        except OSError as error:
            raise SpecError(f"--certificates: {folder}: {error.strerror or error}") from error
        return made

    def _make(self, folder: Path, uid: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder(
                subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, uid)]),
                issuer_name=self._certificate.subject,
                public_key=key.public_key(),
            )
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAYS * _DAY)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        private = folder / f"{uid}.key"
        private.touch(mode=0o600)
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (folder / f"{uid}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
