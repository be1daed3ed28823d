"""Which addresses are called: public and allowed ones, whatever a name resolves to and wherever a redirect leads."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pytest
from messenger_rig import LOOPBACK, Provider

from terrazzo.ports.providers import HttpAnswer, HttpCall, SendOutcome
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


REGISTERED = {
    # IANA IPv4 Special-Purpose Address Registry: first and last address of each block, and its RFC
    "0.0.0.0 0.255.255.255": "RFC 791",
    "10.0.0.0 10.255.255.255": "RFC 1918",
    "100.64.0.0 100.127.255.255": "RFC 6598",
    "127.0.0.0 127.255.255.255": "RFC 1122",
    "169.254.0.0 169.254.255.255": "RFC 3927",
    "172.16.0.0 172.31.255.255": "RFC 1918",
    "192.0.0.0 192.0.0.255": "RFC 6890",
    "192.0.0.8 192.0.0.11": "RFC 7600, 7723, 8155",
    "192.0.0.170 192.0.0.171": "RFC 7050",
    "192.0.2.0 192.0.2.255": "RFC 5737",
    "192.31.196.0 192.31.196.255": "RFC 7535",
    "192.52.193.0 192.52.193.255": "RFC 7450",
    "192.88.99.0 192.88.99.255": "RFC 7526",
    "192.168.0.0 192.168.255.255": "RFC 1918",
    "192.175.48.0 192.175.48.255": "RFC 7534",
    "198.18.0.0 198.19.255.255": "RFC 2544",
    "198.51.100.0 198.51.100.255": "RFC 5737",
    "203.0.113.0 203.0.113.255": "RFC 5737",
    "224.0.0.0 239.255.255.255": "RFC 5771",
    "240.0.0.0 255.255.255.255": "RFC 1112, 919",
    # IANA IPv6 Special-Purpose Address Registry, and what is not given out
    "::1 ::1": "RFC 4291",
    ":: ::": "RFC 4291",
    "64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff": "RFC 8215",
    "100:: 100::ffff:ffff:ffff:ffff": "RFC 6666",
    "100:0:0:1:: 100::1:ffff:ffff:ffff:ffff": "RFC 9780",
    "2001:1::1 2001:1::3": "RFC 7723, 8155, 9665",
    "2001:2:: 2001:2:0:ffff:ffff:ffff:ffff:ffff": "RFC 5180",
    "2001:3:: 2001:3:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 7450",
    "2001:4:112:: 2001:4:112:ffff:ffff:ffff:ffff:ffff": "RFC 7535",
    "2001:10:: 2001:1f:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 4843",
    "2001:20:: 2001:2f:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 7343",
    "2001:30:: 2001:3f:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 9374",
    "2001:40:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 2928",
    "2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 3849",
    "2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff": "RFC 7534",
    "3ffe:: 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 3701",
    "3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 9637",
    "5f00:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 9602",
    "fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 4193",
    "fe80:: febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 4291",
    "fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 3879",
    "ff00:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "RFC 4291",
    "4000:: 4000::1": "not given out: RFC 4291, 2.4",
}


@pytest.mark.parametrize("block", REGISTERED, ids=REGISTERED.get)
def test_every_block_of_the_special_registries_is_refused_from_its_first_address_to_its_last(block: str) -> None:
    first, last = block.split()
    middle = ip_address((int(ip_address(first)) + int(ip_address(last))) // 2)
    if ":" in first:  # small numbers are IPv4 to ip_address
        middle = IPv6Address((int(IPv6Address(first)) + int(IPv6Address(last))) // 2)
    for address in (first, last, str(middle)):
        with pytest.raises(AddressRefused):
            Guard().check(address)


def _teredo(server: str, client: str) -> str:
    value = (0x20010000 << 96) | (int(IPv4Address(server)) << 64) | (int(IPv4Address(client)) ^ 0xFFFFFFFF)
    return str(IPv6Address(value))


FORMS = {
    "mapped": "::ffff:{}",
    "compatible": "::{}",
    "translated": "::ffff:0:{}",
    "nat64": "64:ff9b::{}",
    "6to4": "2002:{hex}::1",
}


@pytest.mark.parametrize("form", FORMS)
def test_an_ipv4_address_inside_an_ipv6_one_is_what_counts(form: str) -> None:
    def inside(ipv4: str) -> str:
        digits = f"{int(IPv4Address(ipv4)):08x}"
        return FORMS[form].format(ipv4, hex=f"{digits[:4]}:{digits[4:]}")

    for refused in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.0.0.8", "100.64.0.1", "224.0.0.1", "0.1.2.3"):
        with pytest.raises(AddressRefused):
            Guard().check(inside(refused))
    Guard().check(inside("8.8.8.8"))
    Guard(["10.0.0.0/8"]).check(inside("10.0.0.1"))


def test_of_teredo_the_server_and_the_client_count() -> None:
    Guard().check(_teredo("8.8.8.8", "9.9.9.9"))
    for server, client in (("127.0.0.1", "9.9.9.9"), ("8.8.8.8", "10.0.0.1")):
        with pytest.raises(AddressRefused):
            Guard().check(_teredo(server, client))


def test_nothing_is_asked_of_the_version_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (IPv4Address, IPv6Address):
        for name in ("is_global", "is_private", "is_reserved"):
            monkeypatch.setattr(kind, name, property(lambda self: pytest.fail("asked")))
    Guard().check("8.8.8.8")
    Guard().check("2606:4700::1111")
    with pytest.raises(AddressRefused):
        Guard().check("10.0.0.1")


PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
    "191.255.255.255", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1", "2606:4700::1111",
    "2a00::1", "3fff:1000::1", "::ffff:8.8.8.8", "name.example",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_are_not(address: str) -> None:
    Guard().check(address)


def test_a_zone_makes_no_address_public() -> None:
    for address in ("fe80::1%2", "2606:4700::1111%eth0", "::1%lo", "::ffff:8.8.8.8%lo"):
        with pytest.raises(AddressRefused):
            Guard().check(address)
    Guard(["fe80::/10"]).check("fe80::1%2")


@pytest.mark.parametrize("host", ["2130706433", "127.1", "localhost", ""])
def test_no_socket_is_made_for_what_the_system_would_resolve_once_more(host: str) -> None:
    with pytest.raises(AddressRefused, match="is not an address"):
        Guard().new_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)))
    with pytest.raises(AddressRefused, match="not a public"):
        Guard().new_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)))


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
    assert answer.outcome in (SendOutcome.FAILED, SendOutcome.LATER)
    assert provider.requests == []


async def test_allowed_ones_are_called_and_redirects_are_not_followed() -> None:
    async with Provider().running() as inner:
        headers = {"Location": f"http://127.0.0.1:{inner.port}/"}
        async with Provider(answers=[(307, {})], headers=headers).running() as outer:
            answer = await GuardedHttp(Guard(LOOPBACK)).call(call(outer.url))
    assert (answer.outcome, answer.status) == (SendOutcome.SENT, 307)
    assert (len(outer.requests), len(inner.requests)) == (1, 0)


@pytest.mark.parametrize(
    "media_type",
    ["a/]x;D*", "text/html; charset=none", "text/plain; charset=punycode", "text/plain; charset=utf-8\u00e9"],
)
async def test_an_answer_may_say_anything_of_itself(media_type: str) -> None:
    """What the message's outcome hangs on has come with the status."""
    async with Provider(headers={"Content-Type": media_type}).running() as provider:
        answer = await GuardedHttp(Guard(LOOPBACK)).call(call(provider.url))
    assert (answer.outcome, answer.status) == (SendOutcome.SENT, 200)
    assert answer.body == '{"code": 0, "msg": "taken"}'


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
    assert answer.outcome is SendOutcome.SENT, answer
    assert asked == ["rebind.example"]


async def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(host: str, port: Any, *args: Any, **more: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        await GuardedResolver(Guard()).resolve("mixed.example", 80)
    answer = await GuardedHttp(Guard()).call(call("http://mixed.example/"))
    assert answer == HttpAnswer(
        outcome=SendOutcome.FAILED, reason="10.0.0.1 is not a public address (messenger.allow_private)"
    )
