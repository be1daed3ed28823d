"""``Authorities``: those of all companies, and for whom each one may vouch.

TLS trusts all of them together, because a handshake doesn't say whose terminal begins it. What TLS has accepted proves
that somebody vouches for the peer; that it is its own company has to be asked here.
"""

from __future__ import annotations

from collections.abc import Iterator

from terrazzo.domain.certificates.authority import ClientAuthority
from terrazzo.domain.certificates.client_certificate import ClientCertificate, Flaw, flaw_of_times
from terrazzo.domain.refusals import reasons
from terrazzo.listeners import Listeners


class Authorities:
    """All authorities. ``changes`` tells, after the change, the one that is gone; None: one has come."""

    def __init__(self) -> None:
        self.changes: Listeners[ClientAuthority | None] = Listeners("client authorities")
        self._authorities: dict[int, ClientAuthority] = {}
        self._by_subject: dict[bytes, dict[int, ClientAuthority]] = {}

    def __len__(self) -> int:
        return len(self._authorities)

    def put(self, authority: ClientAuthority) -> None:
        """Adds or replaces an authority."""
        before = self._authorities.get(authority.id)
        if before == authority:
            return
        if before is not None:
            self.drop(authority.id)
        self._authorities[authority.id] = authority
        self._by_subject.setdefault(authority.subject, {})[authority.id] = authority
        self.changes.tell(None)

    def drop(self, record_id: int) -> None:
        """Removes an authority; an unknown one is ignored."""
        authority = self._authorities.pop(record_id, None)
        if authority is not None:
            same = self._by_subject[authority.subject]
            del same[record_id]
            if not same:
                del self._by_subject[authority.subject]
            self.changes.tell(authority)

    def trusted(self) -> Iterator[ClientAuthority]:
        """Those that TLS is to trust, each certificate once.

        OpenSSL looks for issuers by name and tries one: of authorities with one name only those of the company that
        came first are trusted, so that nobody gets in between another company and its terminals with a name like its
        authority's.
        """
        for same in self._by_subject.values():
            first = same[min(same)].company_id
            yield from {each.der: each for each in same.values() if each.company_id == first}.values()

    def vouching_for(self, certificate: ClientCertificate) -> list[ClientAuthority]:
        """The authorities, of whatever company, that have signed a certificate; whose it should be is not asked."""
        if certificate.issuer is None:
            return []
        named = [*self._by_subject.get(certificate.issuer.public_bytes(), {}).values()]
        distinct = {each.der: each.certificate for each in named}
        good = {der for der, authority in distinct.items() if certificate.is_signed_by(authority)}
        return [each for each in named if each.der in good]


def choose_authority(
    vouching: list[ClientAuthority], certificate: ClientCertificate, *, company_id: int, now_s: float
) -> ClientAuthority | Flaw:
    """The authority by which a certificate counts in a company, or why it doesn't; ``now_s``: unix seconds."""
    own = [each for each in vouching if each.company_id == company_id]
    valid = [each for each in own if flaw_of_times(each.certificate, now_s) is None]
    if valid:
        return valid[0]
    if own:
        return Flaw(reasons.CERTIFICATE_AUTHORITY, "the authority itself is not valid now")
    whose = "an authority of another company" if vouching else "nobody who is registered"
    return Flaw(reasons.CERTIFICATE_AUTHORITY, f"signed by {whose} ({certificate.shown_issuer})")
