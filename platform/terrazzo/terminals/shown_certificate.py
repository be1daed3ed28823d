"""``ShownCertificate``: the certificate that a connection showed at its TLS handshake, and for whom it counts."""

from __future__ import annotations

from terrazzo.domain.certificates.authorities import Authorities, choose_authority
from terrazzo.domain.certificates.authority import ClientAuthority
from terrazzo.domain.certificates.client_certificate import ClientCertificate, Flaw
from terrazzo.domain.refusals import reasons
from terrazzo.domain.terminal import Terminal
from terrazzo_broker.hooks import ConnectRequest


class ShownCertificate:
    """Reads and checks it before anybody looks for whose it should be: the work says nothing of who exists.

    Args:
        der: the certificate; None: none was shown.
        authorities: those of all companies, as they are now.
    """

    def __init__(self, der: bytes | None, authorities: Authorities) -> None:
        self._certificate = None if der is None else ClientCertificate(der)
        self._vouching = [] if self._certificate is None else authorities.vouching_for(self._certificate)

    @property
    def company_id(self) -> int:
        """The company that alone vouches for who has shown it; 0: none, or several."""
        companies = {each.company_id for each in self._vouching}
        return companies.pop() if len(companies) == 1 else 0

    def authority_for(self, terminal: Terminal, now_s: float) -> ClientAuthority | Flaw:
        """The authority by which a terminal may log in with it, or why it may not; ``now_s``: unix seconds."""
        if self._certificate is None:
            return Flaw(reasons.CERTIFICATE_MISSING)
        found = choose_authority(self._vouching, self._certificate, company_id=terminal.company_id, now_s=now_s)
        if isinstance(found, Flaw):
            return found
        return self._certificate.flaw_for(terminal.uid, now_s) or found


def names_another(request: ConnectRequest) -> bool:
    """Whether a certificate was shown, where none is needed, that names another than the client id."""
    if request.certificate_name in (None, request.client_id):
        return False
    return request.certificate is None or request.client_id not in ClientCertificate(request.certificate).names
