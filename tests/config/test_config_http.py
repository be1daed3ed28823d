"""The keys of [http] that a type can't check: proxies and origins."""

from __future__ import annotations

import pytest

from terrazzo.config.sections import ConfigError, load_config


def test_proxies_and_origins_are_taken() -> None:
    environ = {
        "TERRAZZO_HTTP__TRUSTED_PROXIES": '["10.0.0.0/8", "2001:db8::1"]',
        "TERRAZZO_HTTP__ALLOWED_ORIGINS": '["https://app.example.com:8443"]',
    }
    http = load_config(None, environ).http
    assert http.trusted_proxies == ("10.0.0.0/8", "2001:db8::1")
    assert http.allowed_origins == ("https://app.example.com:8443",)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (
            "TRUSTED_PROXIES",
            '["10.0.0.1", "10.0.0.0/77"]',
            r"http\.trusted_proxies\[2\]: '10\.0\.0\.0/77' is no",
        ),
        ("ALLOWED_ORIGINS", '["https://x.example/"]', r"http\.allowed_origins\[1\]: expected an origin such as"),
        ("ALLOWED_ORIGINS", '["*"]', r"http\.allowed_origins\[1\]: expected an origin such as"),
    ],
)
def test_what_is_no_network_or_origin_is_fatal(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        load_config(None, {f"TERRAZZO_HTTP__{key}": value})
