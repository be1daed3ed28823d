"""Which address a connection counts for, alone and behind proxies."""

from __future__ import annotations

import pytest

from terrazzo_broker.peer_address import TrustedProxies, share_of


@pytest.mark.parametrize(
    ("address", "share"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("somewhere", "somewhere"),
    ],
)
def test_the_share_of_an_address(address: str, share: str) -> None:
    assert share_of(address) == share


PROXIES = TrustedProxies(["10.0.0.0/8", "2001:db8::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("::ffff:10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("2001:db8::1", ["192.0.2.7, 10.1.1.1"], "192.0.2.7"),
        ("10.0.0.1", ["1.1.1.1, 192.0.2.7"], "192.0.2.7"),  # what the client itself has sent before
        ("10.0.0.1", ["1.1.1.1", "192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["[2001:db8::7]:1234"], "2001:db8::7"),
        ("10.0.0.1", ["192.0.2.7:1234"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, unknown"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("192.0.2.9", ["192.0.2.7"], "192.0.2.9"),  # not trusted
        ("", ["192.0.2.7"], ""),
    ],
)
def test_the_client_behind_proxies(peer: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.client_of(peer, forwarded) == client


def test_a_chain_without_end_is_cut() -> None:
    assert PROXIES.client_of("10.0.0.1", ["192.0.2.7" + ", 10.0.0.1" * 100]).startswith("10.")


def test_what_is_no_network_is_named() -> None:
    with pytest.raises(ValueError, match=r"'10\.0\.0\.0/64' is no address and no network"):
        TrustedProxies(["10.0.0.0/64"])


def test_nobody_is_trusted_unless_named() -> None:
    assert not TrustedProxies()
    assert TrustedProxies().client_of("10.0.0.1", ["192.0.2.7"]) == "10.0.0.1"
