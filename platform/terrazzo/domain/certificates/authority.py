"""``ClientAuthority``: a certificate authority that vouches for a company's terminals. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from terrazzo.reasons import say, told_by

if TYPE_CHECKING:
    from cryptography import x509  # takes a while to load, and most platforms have no authorities

PEM_CHARS = 16_384
MIN_RSA_BITS = 2_048
MAX_RSA_BITS = 8_192  # checking a signature takes a millisecond then

E = TypeVar("E", bound="x509.ExtensionType")

_BEGIN = "-----BEGIN CERTIFICATE-----"


class ClientAuthority(msgspec.Struct, frozen=True):
    """One authority of one company; its certificate is public, its private key stays with the company."""

    id: int
    company_id: int
    certificate: x509.Certificate

    @property
    def der(self) -> bytes:
        """The certificate, DER."""
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def subject(self) -> bytes:
        """The name that certificates have as their issuer, DER."""
        return self.certificate.subject.public_bytes()


def parse_authority(pem: str) -> x509.Certificate:
    """Reads the certificate of an authority from PEM text; what stands around it is left out.

    Raises:
        ValueError: it is none that may vouch for clients, or is not alone; says why.
    """
    from cryptography import x509

    if "PRIVATE KEY" in pem:
        raise ValueError(say("certificate_with_private_key"))
    if len(pem) > PEM_CHARS:
        raise ValueError(say("too_many_characters", most=f"{PEM_CHARS:,}", got=f"{len(pem):,}"))
    count = pem.count(_BEGIN)
    if count != 1:
        raise ValueError(say("expected_one_certificate", got=count))
    try:
        certificate = x509.load_pem_x509_certificate(pem[pem.index(_BEGIN) :].encode())
        _check_authority(certificate)
    except (ValueError, TypeError, x509.DuplicateExtension, UnsupportedAlgorithm) as error:
        raise ValueError(told_by(error) or say("certificate_unreadable")) from None
    return certificate


def fingerprint_of(certificate: x509.Certificate) -> str:
    """The SHA-256 of a certificate, hexadecimal."""
    return hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()


def subject_hash_of(certificate: x509.Certificate) -> str:
    """The SHA-256 of an authority's name, hexadecimal: OpenSSL finds authorities by name."""
    return hashlib.sha256(certificate.subject.public_bytes()).hexdigest()


def expires_us(certificate: x509.Certificate) -> int:
    """When a certificate ends, UTC microseconds."""
    return int(certificate.not_valid_after_utc.timestamp()) * 1_000_000


def _check_authority(certificate: x509.Certificate) -> None:
    """RFC 5280, sections 4.2.1.3 and 4.2.1.9. Raises ``ValueError``."""
    from cryptography import x509

    if not [*certificate.subject]:
        raise ValueError(say("certificate_without_subject"))
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise ValueError(say("certificate_not_ca"))
    usage = _extension(certificate, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        raise ValueError(say("certificate_no_cert_sign"))
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
            raise ValueError(say("expected_rsa_bits", least=MIN_RSA_BITS, most=MAX_RSA_BITS, got=key.key_size))
    elif not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise ValueError(say("expected_key_kind"))


def _extension(certificate: x509.Certificate, kind: type[E]) -> E | None:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
