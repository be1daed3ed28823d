"""What a certificate says, and for whom it counts: without a handshake, which refuses some of this before."""

from __future__ import annotations

import time

import pytest
from cryptography import x509

from client_certificates import SERVER, ClientCa, Shown, self_signed
from terrazzo.domain.certificates.authorities import Authorities
from terrazzo.domain.certificates.authority import ClientAuthority
from terrazzo.domain.certificates.client_certificate import ClientCertificate, Flaw
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.terminals.login import TerminalLogin
from terrazzo.terminals.shown_certificate import ShownCertificate
from terrazzo_broker.hooks import Accept, ConnectRequest, Refuse

DAY_S = 86_400
OURS, THEIRS = ClientCa("Ours"), ClientCa("Theirs")


def terminal(uid: str = "t1", company_id: int = 1) -> Terminal:
    return Terminal(id=7, uid=uid, name=uid, company_id=company_id, type="", mode="cert", username="u", pin="p")


def authorities(*registered: tuple[ClientCa, int]) -> Authorities:
    made = Authorities()
    for number, (ca, company_id) in enumerate(registered, 1):
        made.put(ClientAuthority(number, company_id, ca.certificate))
    return made


BOTH = authorities((OURS, 1), (THEIRS, 2))


def flaw(shown: Shown | None, *, uid: str = "t1", days: float = 0, known: Authorities = BOTH) -> str:
    """Why a terminal may not log in with it, so many days from now; empty where it may."""
    certificate = ShownCertificate(None if shown is None else shown.der, known)
    found = certificate.authority_for(terminal(uid), time.time() + days * DAY_S)
    return f"{found.reason.name}: {found.detail}" if isinstance(found, Flaw) else ""


def test_a_good_one() -> None:
    for shown in (OURS.issue("t1"), OURS.issue(dns=["t1"]), OURS.issue(uris=["t1"]), OURS.issue("x", dns=["t1"])):
        assert flaw(shown) == ""
    assert flaw(OURS.issue("t1", usage=())) == ""
    assert flaw(OURS.issue("Pumpe 7 – Süd"), uid="Pumpe 7 – Süd") == ""


def test_what_is_wrong_with_it() -> None:
    assert flaw(None) == "certificate_missing: "
    assert flaw(THEIRS.issue("t1")).startswith("certificate_authority: signed by an authority of another company")
    assert flaw(ClientCa("Ours").issue("t1")).startswith("certificate_authority: signed by nobody who is registered")
    assert flaw(self_signed("t1")).startswith("certificate_authority: signed by nobody")
    assert flaw(OURS.issue("t1"), days=3).startswith("certificate_expired: on 20")
    assert flaw(OURS.issue("t1"), days=-2).startswith("certificate_authority: the authority itself is not valid now")
    assert flaw(OURS.issue("t1", days=(5, 9))).startswith("certificate_not_yet_valid: until 20")
    assert flaw(OURS.issue("t1", usage=[SERVER])) == "certificate_unusable: its extended key usage has no clientAuth"
    assert flaw(OURS.issue("t1", is_ca=True)) == "certificate_unusable: it is an authority's own"
    assert flaw(OURS.issue(dns=["t1", "t2"])) == "certificate_unusable: it names t1, t2"
    assert flaw(OURS.issue(dns=["t1"], uris=["t1"])) == "certificate_unusable: it names t1, t1"
    assert flaw(OURS.issue()) == "certificate_unusable: it names nobody"
    assert flaw(OURS.issue("T1")) == "certificate_uid: it is for T1"
    assert flaw(OURS.issue("t1", dns=["t2"])) == "certificate_uid: it is for t2"


@pytest.mark.parametrize("der", [b"", b"\x30", b"x" * 5_000])
def test_what_can_not_be_read(der: bytes) -> None:
    found = ShownCertificate(der, BOTH).authority_for(terminal(), time.time())
    assert isinstance(found, Flaw)
    assert found.reason.name == "certificate_authority"
    assert ShownCertificate(der, BOTH).company_id == 0


def test_a_flipped_bit_is_nobodys() -> None:
    shown = OURS.issue("t1")
    for place in range(8, len(shown.der), 37):
        der = bytearray(shown.der)
        der[place] ^= 1
        found = ShownCertificate(bytes(der), BOTH).authority_for(terminal(), time.time())
        assert isinstance(found, Flaw), place


def test_who_vouches_is_known_also_where_nobody_has_the_uid() -> None:
    shared = authorities((OURS, 1), (THEIRS, 2), (OURS, 3))
    assert ShownCertificate(THEIRS.issue("t1").der, shared).company_id == 2
    assert ShownCertificate(OURS.issue("t1").der, shared).company_id == 0
    assert ShownCertificate(OURS.issue("t1").der, BOTH).company_id == 1


def test_of_one_name_the_first_companys_are_trusted() -> None:
    twin, renewed = ClientCa("Ours"), ClientCa("Ours")
    known = authorities((OURS, 1), (twin, 2), (renewed, 1), (OURS, 3), (THEIRS, 2))
    assert [each.id for each in known.trusted()] == [1, 3, 5]
    assert flaw(renewed.issue("t1"), known=known) == ""
    known.drop(1)
    assert [each.id for each in known.trusted()] == [2, 5]
    for number in (2, 3, 4, 5, 5):
        known.drop(number)
    assert (len(known), [*known.trusted()]) == (0, [])


async def test_the_login_does_the_same_for_whoever_shows_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature is checked once, whether the uid is the company's, another's, or nobody's."""
    registry = Registry()
    registry.authorities = BOTH
    registry.put_terminal(terminal("ours", 1))
    registry.put_terminal(terminal("theirs", 2))
    login = TerminalLogin(registry, limiter=LoginLimiter(0, 1))
    checked: list[ClientCertificate] = []
    original = ClientCertificate.is_signed_by

    def is_signed_by(certificate: ClientCertificate, authority: x509.Certificate) -> bool:
        checked.append(certificate)
        return original(certificate, authority)

    monkeypatch.setattr(ClientCertificate, "is_signed_by", is_signed_by)
    told = []
    for uid in ("theirs", "nobody"):
        request = ConnectRequest(client_id=uid, certificate=OURS.issue(uid).der, certificate_name=uid)
        verdict = await login.authenticate(request)
        assert isinstance(verdict, Refuse)
        told.append((verdict.reason, verdict.message))
    assert told[0] == told[1]
    assert len(checked) == 2
    request = ConnectRequest(client_id="ours", certificate=OURS.issue("ours").der, certificate_name="ours")
    verdict = await login.authenticate(request)
    assert isinstance(verdict, Accept)
    assert verdict.identity.authority_id == 1


async def test_scram_opens_no_terminal_of_certificates() -> None:
    registry = Registry()
    registry.put_terminal(terminal("ours", 1))
    login = TerminalLogin(registry, limiter=LoginLimiter(0, 1))
    answers = []
    for uid in ("ours", "nobody"):
        request = ConnectRequest(client_id=uid, auth_method="SCRAM-SHA-256", auth_data=b"n,,n=u,r=abcdefgh")
        challenge = await login.authenticate(request)
        nonce = challenge.data.split(b",")[0].removeprefix(b"r=")  # type: ignore[union-attr]
        final = await challenge.proceed(b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"=")  # type: ignore[union-attr]
        assert isinstance(final, Refuse)
        answers.append((final.reason, final.message))
    assert answers[0] == answers[1]
