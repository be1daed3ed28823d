"""Which addresses are called: public and allowed ones, whatever a name resolves to and wherever a redirect leads."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from messenger_rig import LOOPBACK, Provider

from terrazzo.ports.providers import HttpAnswer, HttpCall, Outcome
from terrazzo_adapters.messenger import Guard, GuardedHttp
from terrazzo_adapters.messenger.addresses import AddressRefused, GuardedResolver

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="is not a public address"):
        Guard().check(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "name.example"])
def test_public_ones_are_not(address: str) -> None:
    Guard().check(address)


def test_allowed_networks() -> None:
    guard = Guard(["10.0.0.0/8", "fd00::/8"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1"):
        guard.check(address)
    for address in ("127.0.0.1", "192.168.0.1", "fc00::1"):
        with pytest.raises(AddressRefused):
            guard.check(address)


def call(url: str) -> HttpCall:
    return HttpCall(method="POST", url=url, headers={}, body=b"{}", timeout_s=5)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "0"]
)
async def test_no_spelling_of_loopback_gets_through(host: str) -> None:
    async with Provider().running() as provider:
        answer = await GuardedHttp(Guard()).call(call(f"http://{host}:{provider.port}/"))
    assert answer.outcome in (Outcome.FAILED, Outcome.LATER)
    assert provider.requests == []


async def test_allowed_ones_are_called_and_redirects_are_not_followed() -> None:
    async with Provider().running() as inner:
        headers = {"Location": f"http://127.0.0.1:{inner.port}/"}
        async with Provider(answers=[(307, {})], headers=headers).running() as outer:
            answer = await GuardedHttp(Guard(LOOPBACK)).call(call(outer.url))
    assert (answer.outcome, answer.status) == (Outcome.SENT, 307)
    assert (len(outer.requests), len(inner.requests)) == (1, 0)


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public when it is looked at and loopback a moment later is resolved only once."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: Any, *args: Any, **more: Any) -> list[Any]:
        asked.append(host)
        address = "192.0.2.1" if len(asked) > 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with Provider().running() as provider:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        answer = await GuardedHttp(Guard(LOOPBACK)).call(call(f"http://rebind.example:{provider.port}/"))
    assert answer.outcome is Outcome.SENT, answer
    assert asked == ["rebind.example"]


async def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(host: str, port: Any, *args: Any, **more: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        await GuardedResolver(Guard()).resolve("mixed.example", 80)
    answer = await GuardedHttp(Guard()).call(call("http://mixed.example/"))
    assert answer == HttpAnswer(
        outcome=Outcome.FAILED, reason="10.0.0.1 is not a public address (messenger.allow_private)"
    )
