"""The address that counts, and whose word about it is taken."""

import pytest

from terrazzo_broker.peer_address import TrustedProxies, share_of


@pytest.mark.parametrize(
    ("address", "share"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("not:an:address", "not:an:address"),
    ],
)
def test_what_an_address_counts_as(address, share):
    assert share_of(address) == share


class TestTrustedProxies:
    proxies = TrustedProxies(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"])

    def test_without_any_nobody_is_trusted(self):
        assert not TrustedProxies()
        assert "127.0.0.1" not in TrustedProxies()
        assert TrustedProxies().client_of("127.0.0.1", ["192.0.2.1"]) == "127.0.0.1"

    @pytest.mark.parametrize("address", ["10.1.2.3", "192.0.2.7", "2001:db8::1", "::ffff:10.1.2.3"])
    def test_listed_ones_are(self, address):
        assert address in self.proxies

    @pytest.mark.parametrize("address", ["192.0.2.8", "2001:db9::1", "", "text"])
    def test_others_are_not(self, address):
        assert address not in self.proxies

    @pytest.mark.parametrize("network", ["10.0.0.1/8", "300.1.1.1", "example.com", ""])
    def test_what_is_no_network_is_named(self, network):
        with pytest.raises(ValueError, match=network.partition("/")[0] or "''"):
            TrustedProxies([network])

    @pytest.mark.parametrize(
        ("forwarded_for", "client"),
        [
            ([], "10.1.1.1"),
            (["198.51.100.1"], "198.51.100.1"),
            (["198.51.100.1, 10.2.2.2"], "198.51.100.1"),
            (["198.51.100.1", "10.2.2.2"], "198.51.100.1"),
            (["203.0.113.9, 198.51.100.1, 10.2.2.2"], "198.51.100.1"),  # the left one is the client's own word
            (["unknown"], "10.1.1.1"),
            (["198.51.100.1, unknown, 10.2.2.2"], "10.2.2.2"),
            (["198.51.100.1:4711"], "198.51.100.1"),
            (["[2001:db9::1]:4711"], "2001:db9::1"),
            (["2001:db9::1"], "2001:db9::1"),
            (["::ffff:198.51.100.1"], "198.51.100.1"),
            ([""], "10.1.1.1"),
        ],
    )
    def test_of_a_trusted_peer_the_first_address_from_the_right_that_is_none_counts(self, forwarded_for, client):
        assert self.proxies.client_of("10.1.1.1", forwarded_for) == client

    def test_of_others_nothing_is_believed(self):
        assert self.proxies.client_of("198.51.100.2", ["203.0.113.9"]) == "198.51.100.2"

    def test_a_long_chain_is_looked_at_to_a_bound(self):
        chain = ", ".join(["203.0.113.9"] + ["10.2.2.2"] * 100_000)
        assert self.proxies.client_of("10.1.1.1", [chain]) == "10.2.2.2"
