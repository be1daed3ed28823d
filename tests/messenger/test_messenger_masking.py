"""What of a provider's or webhook's URL may stand in journals: the host, never what lets one call it."""

from __future__ import annotations

import pytest

from terrazzo.messenger.masking import MASK, Mask, secrets_of, shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example.com/services/T0/B0/xyz", f"https://hooks.example.com/{MASK}"),
        ("https://user:pass@h.example:8443/x?token=1", f"https://h.example:8443/{MASK}"),
        ("http://[2001:db8::1]:80/#secret", f"http://[2001:db8::1]:80/{MASK}"),
        ("http://h.example/", "http://h.example"),
        ("http://h.example:99999/secret", MASK),
        ("http://[secret/", MASK),
        ("secret", MASK),
    ],
)
def test_the_host_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_no_part_of_a_url_that_is_a_secret_stays_in_an_answer() -> None:
    url = "https://user:hush%20hush@h.example/bot123456:AAF-token/sendMessage?sig=q-secret"
    mask = Mask([url, *secrets_of(url, {}, {})])
    said = f"404 at {url}: no bot123456:AAF-token, /bot123456:AAF-token/sendMessage, q-secret, hush hush, sendMessage"
    hidden = mask.hide(said)
    for secret in ("AAF-token", "q-secret", "hush"):
        assert secret not in hidden
    assert hidden.endswith(", sendMessage"), "a word of the path is no secret"
