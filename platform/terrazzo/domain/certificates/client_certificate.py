"""``ClientCertificate``: what a terminal's certificate says, and what is wrong with it. Pure: times are passed.

It names one uid: the only DNS or URI name of Subject Alternative Name where it has such names, else its only common
name. A certificate that names two is nobody's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from terrazzo.domain.refusals import reasons
from terrazzo.domain.refusals.reasons import Reason

if TYPE_CHECKING:
    from cryptography import x509  # takes a while to load, and most platforms are shown no certificates

_BROKEN_DIGESTS = ("md5", "sha1")
_MOST_SHOWN = 64  # characters of a name that somebody else has written
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


class Flaw(NamedTuple):
    """What is wrong with a certificate; ``detail`` may quote it."""

    reason: Reason
    detail: str = ""


class ClientCertificate:
    """The leaf that a TLS client has shown, and whose private key it has.

    Attributes:
        names: the uids that it is for, one in a good one.
        issuer: who says that it has signed it; ``shown_issuer`` as an operator reads it.
        flaw: what makes it good for nobody, whoever has signed it.
    """

    __slots__ = ("_certificate", "flaw", "issuer", "names", "shown_issuer")

    def __init__(self, der: bytes) -> None:
        """Reads a certificate; one that can't be read has a flaw.

        The times are checked at each login, because a TLS session that is taken up again is not verified anew.
        """
        from cryptography import x509

        self.names: tuple[str, ...] = ()
        self.issuer: x509.Name | None = None
        self.shown_issuer = ""
        self._certificate: x509.Certificate | None = None
        try:
            certificate = x509.load_der_x509_certificate(der)
            self.names, self.issuer = _names(certificate), certificate.issuer
            self.shown_issuer = certificate.issuer.rfc4514_string()[:_MOST_SHOWN]
            self.flaw = _flaw_of_use(certificate)
            flaw_of_times(certificate, 0)  # they can be read
            self._certificate = certificate
        except (x509.DuplicateExtension, *_UNREADABLE) as error:
            self.flaw = Flaw(reasons.CERTIFICATE_UNUSABLE, f"it can't be read: {error}"[:_MOST_SHOWN])

    def is_signed_by(self, authority: x509.Certificate) -> bool:
        """Whether an authority has signed it: the names are compared, and the signature checked."""
        from cryptography import x509

        if self._certificate is None:
            return False
        try:
            self._certificate.verify_directly_issued_by(authority)
        except (InvalidSignature, x509.DuplicateExtension, *_UNREADABLE):
            return False
        return True

    def flaw_for(self, uid: str, now_s: float) -> Flaw | None:
        """Why it is not, at this time (unix seconds), the certificate of a terminal; None where it is."""
        if self.flaw is not None or self._certificate is None:
            return self.flaw
        flaw = flaw_of_times(self._certificate, now_s)
        if flaw is not None:
            return flaw
        if len(self.names) != 1:
            text = f"it names {', '.join(self.names)}"[:_MOST_SHOWN] if self.names else "it names nobody"
            return Flaw(reasons.CERTIFICATE_UNUSABLE, text)
        return (
            None if self.names[0] == uid else Flaw(reasons.CERTIFICATE_UID, f"it is for {self.names[0]}"[:_MOST_SHOWN])
        )


def flaw_of_times(certificate: x509.Certificate, now_s: float) -> Flaw | None:
    """Whether a certificate has expired, or isn't valid yet; ``now_s``: unix seconds."""
    now = datetime.fromtimestamp(now_s, UTC)
    if now > certificate.not_valid_after_utc:
        return Flaw(reasons.CERTIFICATE_EXPIRED, f"on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC")
    if now < certificate.not_valid_before_utc:
        text = f"until {certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
        return Flaw(reasons.CERTIFICATE_NOT_YET_VALID, text)
    return None


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternative = x509.SubjectAlternativeName([])
    names = [
        *alternative.get_values_for_type(x509.DNSName),
        *alternative.get_values_for_type(x509.UniformResourceIdentifier),
    ]
    common = [str(each.value) for each in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    return tuple(names or common)


def _flaw_of_use(certificate: x509.Certificate) -> Flaw | None:
    """Why a certificate is not that of a client, whatever its name and times; RFC 5280, section 4.2.1."""
    from cryptography import x509

    extensions = certificate.extensions
    for extension in extensions:
        value = extension.value
        if isinstance(value, x509.BasicConstraints) and value.ca:
            return Flaw(reasons.CERTIFICATE_UNUSABLE, "it is an authority's own")
        if isinstance(value, x509.KeyUsage) and not value.digital_signature:
            return Flaw(reasons.CERTIFICATE_UNUSABLE, "its key usage has no digitalSignature")
        if isinstance(value, x509.ExtendedKeyUsage) and not _is_for_clients(value):
            return Flaw(reasons.CERTIFICATE_UNUSABLE, "its extended key usage has no clientAuth")
    digest = certificate.signature_hash_algorithm  # None: Ed25519 has none of its own
    if digest is not None and digest.name in _BROKEN_DIGESTS:
        return Flaw(reasons.CERTIFICATE_UNUSABLE, f"it is signed with {digest.name}")
    return None


def _is_for_clients(usage: x509.ExtendedKeyUsage) -> bool:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    return ExtendedKeyUsageOID.CLIENT_AUTH in usage or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usage
