"""Authorities of companies, and certificates of terminals that are right, or wrong in one way."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Shown:
    """A certificate with its key, and the chain that is sent with it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """The files of certificate and key, PEM."""
        folder.mkdir(parents=True, exist_ok=True)
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        cert.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in (self.certificate, *self.chain)))
        key.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return cert, key

    def context(self, folder: Path, ca: Path) -> ssl.SSLContext:
        """A client's context that trusts ``ca`` of the server, and shows this."""
        context = ssl.create_default_context(cafile=str(ca))
        context.load_cert_chain(*self.write(folder, self.certificate.serial_number.to_bytes(20, "big").hex()))
        return context


class ClientCa:
    """An authority, its own unless another has signed it."""

    def __init__(
        self,
        name: str,
        *,
        signed_by: ClientCa | None = None,
        key: ec.EllipticCurvePrivateKey | None = None,
        days: tuple[int, int] = (-1, 30),
        usage: Sequence[x509.ObjectIdentifier] = (),
    ) -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = signed_by or self
        builder = _builder(self.name, issuer.name, self.key, days)
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        self.certificate = builder.sign(issuer.key, hashes.SHA256())

    def as_shown(self) -> Shown:
        """Its own certificate and key, for their files."""
        return Shown(self.certificate, self.key)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        name: str | None = None,
        *,
        dns: Sequence[str] = (),
        uris: Sequence[str] = (),
        usage: Sequence[x509.ObjectIdentifier] = (CLIENT,),
        days: tuple[int, int] = (-1, 2),
        is_ca: bool = False,
        chain: tuple[x509.Certificate, ...] = (),
    ) -> Shown:
        """A certificate with this common name and these alternative names; ``days`` from now that it is valid."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([] if name is None else [x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, self.name, key, days)
        alternative = [*map(x509.DNSName, dns), *map(x509.UniformResourceIdentifier, uris)]
        if alternative:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=name is None)
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        if is_ca:
            builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        return Shown(builder.sign(self.key, hashes.SHA256()), key, chain)


def self_signed(name: str) -> Shown:
    """A certificate that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return Shown(_builder(subject, subject, key, (-1, 2)).sign(key, hashes.SHA256()), key)


def signed_by_leaf(leaf: Shown, name: str) -> Shown:
    """A certificate that a terminal has signed with the key of its own, with that in the chain."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = _builder(subject, leaf.certificate.subject, key, (-1, 2)).sign(leaf.key, hashes.SHA256())
    return Shown(certificate, key, (leaf.certificate,))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: tuple[int, int]
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now + days[0] * DAY).not_valid_after(now + days[1] * DAY)
