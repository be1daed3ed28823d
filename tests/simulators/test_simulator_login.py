"""The passwords of mode ``auto`` against a known answer and an independent computation."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from terrazzo_simulators.login import Credentials, auto_password
from terrazzo_simulators.spec import TerminalSpec


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104 by its definition."""
    key = hashlib.sha256(key).digest() if len(key) > 64 else key
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()


def test_known_answer() -> None:
    # printf 'sim-1.1767225600' | openssl dgst -sha256 -hmac 'secret'
    assert auto_password(uid="sim-1", pin="secret", unix_s=1_767_225_600) == (
        "1767225600.b9ec4f9700d4c87b677012ebe379b1f615167072648e59196bf5a4f9b17c5232"
    )


@given(uid=st.text(min_size=1, max_size=64), pin=st.text(min_size=1, max_size=80), unix_s=st.integers(0, 2**40))
def test_it_is_the_hmac_of_uid_and_second(uid: str, pin: str, unix_s: int) -> None:
    digest = hmac_sha256(pin.encode(), f"{uid}.{unix_s}".encode()).hex()
    assert auto_password(uid=uid, pin=pin, unix_s=unix_s) == f"{unix_s}.{digest}"


def test_no_second_serves_twice() -> None:
    credentials = Credentials(TerminalSpec(uid="a", username="a", pin="p", mode="auto"))
    seconds = [int(credentials.password(1_000.5).split(".")[0]) for _ in range(3)]
    assert seconds == [1_000, 1_001, 1_002]


def test_mode_pwd_sends_the_pin() -> None:
    assert Credentials(TerminalSpec(uid="a", username="a", pin="p")).password(5) == "p"
