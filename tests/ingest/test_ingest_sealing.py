"""Sealed payloads: opened with the right key and algorithm only. The sealing side is the simulators' own code."""

from __future__ import annotations

import base64
import json
import os
import time

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.sealing import Seal, derive_key, parse_private_key
from terrazzo_simulators.sealing import Seal as TerminalSeal

PLAIN = b'{"temperature":21.5}'
TERMINAL = Terminal(
    id=1, uid="t-1", name="t", company_id=1, type="Other", mode="pwd", username="u", pin="päss", encryption=True
)


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def rsa_terminal(rsa_key):
    pem = rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return msgspec.structs.replace(TERMINAL, rsa_privatekey=pem)


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def seal_with(header: object, key: bytes, payload: bytes = PLAIN, encrypted_key: bytes = b"") -> bytes:
    protected = b64(json.dumps(header).encode())
    iv = os.urandom(12)
    sealed = AESGCM(key).encrypt(iv, payload, protected)
    return b".".join((protected, b64(encrypted_key), b64(iv), b64(sealed[:-16]), b64(sealed[-16:])))


def test_a_terminal_without_rsa_key_seals_with_the_key_of_its_pin():
    sealed = TerminalSeal(pin=TERMINAL.pin, uid=TERMINAL.uid).seal(PLAIN)
    assert Seal(TERMINAL).open(sealed) == PLAIN


def test_a_terminal_with_an_rsa_key_seals_with_it(rsa_terminal, rsa_key):
    sealed = TerminalSeal(pin="other", uid="other", rsa_publickey=public_pem(rsa_key)).seal(PLAIN)
    assert Seal(rsa_terminal).open(sealed) == PLAIN


def test_commands_are_sealed_with_the_key_of_the_pin(rsa_terminal):
    for terminal in (TERMINAL, rsa_terminal):
        assert TerminalSeal(pin=terminal.pin, uid=terminal.uid).open(Seal(terminal).seal(PLAIN)) == PLAIN


def test_a_payload_of_a_mebibyte_opens():
    large = json.dumps({"a": "x" * 2**20}).encode()
    assert Seal(TERMINAL).open(TerminalSeal(pin=TERMINAL.pin, uid=TERMINAL.uid).seal(large)) == large


@pytest.mark.parametrize("payload", [PLAIN, b"", b"\x81\xa1a\x01", b"....", b"a.b.c.d.e", b"\xff.\xff.\xff.\xff.\xff"])
def test_what_is_not_sealed_is_refused(payload):
    refuse(Seal(TERMINAL), payload)


def test_another_pin_or_another_terminals_uid_does_not_open():
    refuse(Seal(TERMINAL), TerminalSeal(pin="wrong", uid=TERMINAL.uid).seal(PLAIN))
    refuse(Seal(TERMINAL), TerminalSeal(pin=TERMINAL.pin, uid="t-2").seal(PLAIN))


def test_no_other_algorithm_is_accepted(rsa_terminal, rsa_key):
    key = derive_key(TERMINAL)
    assert Seal(TERMINAL).open(seal_with({"alg": "dir", "enc": "A256GCM"}, key)) == PLAIN
    refuse(Seal(TERMINAL), seal_with({"alg": "dir", "enc": "A128GCM"}, key[:16]), "A128GCM")
    refuse(Seal(TERMINAL), seal_with({"alg": "none", "enc": "A256GCM"}, key), "none")
    refuse(Seal(TERMINAL), seal_with({"alg": "dir", "enc": "A256GCM", "zip": "DEF"}, key), "DEF")
    refuse(Seal(TERMINAL), seal_with({"alg": "dir", "enc": "A256GCM", "crit": ["x"], "x": 1}, key))
    refuse(Seal(TERMINAL), TerminalSeal(pin="", uid="", rsa_publickey=public_pem(rsa_key)).seal(PLAIN), "RSA")
    refuse(Seal(rsa_terminal), seal_with({"alg": "dir", "enc": "A256GCM"}, key), "dir")


def test_a_record_with_an_unreadable_rsa_key_rejects_and_still_seals_commands():
    seal = Seal(msgspec.structs.replace(TERMINAL, rsa_privatekey="not a key"))
    refuse(seal, seal_with({"alg": "dir", "enc": "A256GCM"}, derive_key(TERMINAL)), "rsa_privatekey")
    assert TerminalSeal(pin=TERMINAL.pin, uid=TERMINAL.uid).open(seal.seal(PLAIN)) == PLAIN


def test_reading_a_long_key_takes_no_time():
    """The interpreter's lock isn't released there: proving that a key's factors are primes took everybody's 300 ms."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=4096)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    began_s = time.thread_time()
    parse_private_key(pem)
    assert time.thread_time() - began_s < 0.05


@pytest.mark.parametrize(
    "text", ["", "no key", "päss", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_private_key_is_refused(text):
    with pytest.raises(ValueError, match="rsa_privatekey: not a PEM private key"):
        parse_private_key(text)


def test_a_public_key_and_a_short_one_are_refused(rsa_key):
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    with pytest.raises(ValueError, match="not a PEM private key"):
        parse_private_key(public_pem(rsa_key))
    with pytest.raises(ValueError, match="at least 2048 bits"):
        parse_private_key(short.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


headers = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["dir", "A256GCM", "DEF", "alg", "enc"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["alg", "enc", "zip", "crit", "epk", "kid", "apu"]), inner, max_size=4)
    ),
)


@given(headers, st.binary(max_size=20), st.binary(max_size=20))
@settings(max_examples=300)
def test_no_header_raises_anything_but_a_reject(header, encrypted_key, noise):
    token = seal_with(header, derive_key(TERMINAL), noise, encrypted_key)
    outcome = outcome_of(token)
    assert outcome == noise if isinstance(outcome, bytes) else outcome.kind is RejectKind.SEALED


@given(st.data())
@settings(max_examples=300)
def test_no_changed_byte_opens(data):
    token = bytearray(seal_with({"alg": "dir", "enc": "A256GCM"}, derive_key(TERMINAL)))
    at = data.draw(st.integers(0, len(token) - 1))
    token[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != token[at]))
    outcome = outcome_of(bytes(token))
    assert isinstance(outcome, Reject) or outcome == PLAIN  # the last character of a base64url part may have spare bits


def outcome_of(token: bytes):
    try:
        return Seal(TERMINAL).open(token)
    except Reject as reject:
        return reject


def refuse(seal: Seal, token: bytes, reason: str = ".") -> None:
    with pytest.raises(Reject, match=reason) as caught:
        seal.open(token)
    assert caught.value.kind is RejectKind.SEALED
