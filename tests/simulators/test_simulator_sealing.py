"""Sealed payloads, checked with another JWE library and another HKDF."""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe
from joserfc.jwk import OctKey, RSAKey

from terrazzo_simulators.payload import Codec, PayloadError, decode
from terrazzo_simulators.sealing import Seal, SealError, derive_key
from terrazzo_simulators.spec import TerminalSpec

PINS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=16)


def hkdf_sha256(*, material: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 by its definition."""
    extracted = hmac.new(salt or bytes(32), material, hashlib.sha256).digest()
    block, expanded = b"", b""
    for index in range(1, length // 32 + 2):
        block = hmac.new(extracted, block + info + bytes([index]), hashlib.sha256).digest()
        expanded += block
    return expanded[:length]


def test_the_hkdf_above_gives_the_answer_of_rfc_5869_case_3() -> None:
    answer = hkdf_sha256(material=b"\x0b" * 22, salt=b"", info=b"", length=42)
    assert answer.hex().startswith("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d")


@given(pin=PINS, uid=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=64))
def test_the_key_is_hkdf_of_the_pin_with_the_uid_as_info(pin: str, uid: str) -> None:
    expected = hkdf_sha256(material=pin.encode(), salt=b"", info=uid.encode(), length=32)
    assert derive_key(pin=pin, uid=uid) == expected


@given(payload=st.binary(max_size=500), pin=PINS)
def test_another_library_opens_what_was_sealed_with_dir(payload: bytes, pin: str) -> None:
    token = Seal(pin=pin, uid="sim-1").seal(payload)
    key = OctKey.import_key(derive_key(pin=pin, uid="sim-1"))
    opened = jwe.decrypt_compact(token, key, algorithms=["dir", "A256GCM"])
    assert opened.plaintext == payload
    assert opened.headers() == {"alg": "dir", "enc": "A256GCM"}


@given(payload=st.binary(min_size=1, max_size=500))
def test_what_another_library_sealed_is_opened(payload: bytes) -> None:
    key = OctKey.import_key(derive_key(pin="1234", uid="sim-1"))
    token = jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, payload, key, algorithms=["dir", "A256GCM"])
    assert Seal(pin="1234", uid="sim-1").open(token.encode()) == payload


def test_another_library_opens_what_was_sealed_with_the_rsa_key() -> None:
    private = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    token = Seal(pin="1234", uid="sim-1", rsa_publickey=pem.decode()).seal(b'{"A":1}')
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    opened = jwe.decrypt_compact(token, RSAKey.import_key(secret), algorithms=["RSA-OAEP-256", "A256GCM"])
    assert opened.plaintext == b'{"A":1}'


def test_a_changed_token_another_key_or_no_token_is_refused() -> None:
    seal = Seal(pin="1234", uid="sim-1")
    token = seal.seal(b"x" * 40)
    parts = token.split(b".")
    changed = b".".join((*parts[:3], parts[3][:-2] + b"AA", parts[4]))
    other = Seal(pin="4321", uid="sim-1").seal(b"x")
    for bad in (changed, other, b"", b"a.b.c", b"....", b"!.!.!.!.!", token + b".x", token[:-4]):
        with pytest.raises(SealError):
            seal.open(bad)


def test_a_key_that_is_no_rsa_key_is_refused_by_name() -> None:
    with pytest.raises(SealError, match="rsa_publickey"):
        Seal(pin="1", uid="a", rsa_publickey="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----")


@pytest.mark.parametrize("payload_format", ["json", "msgpack"])
@pytest.mark.parametrize("encryption", [False, True])
def test_a_codec_reads_what_it_wrote(payload_format: str, encryption: bool) -> None:
    spec = TerminalSpec(uid="a", username="a", pin="p", format=payload_format, encryption=encryption)
    points = {"A": 1.5, "B": {"C": True}, "D": None, "E": "ü"}
    assert Codec(spec).decode(Codec(spec).encode(points)) == points


def test_a_terminal_that_encrypts_takes_no_plain_command() -> None:
    codec = Codec(TerminalSpec(uid="a", username="a", pin="p", encryption=True))
    with pytest.raises(PayloadError, match="JWE"):
        codec.decode(b'{"Act":"Reboot"}')


@given(
    st.one_of(st.binary(max_size=60), st.text(max_size=30).map(lambda text: ("{" + text).encode("utf-8", "replace")))
)
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    with suppress(PayloadError):
        assert isinstance(decode(payload), dict)
