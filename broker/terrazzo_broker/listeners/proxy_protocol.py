"""The PROXY protocol, versions 1 and 2: a load balancer names the client whose connection it forwards.

Source: https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, sections 2.1 and 2.2.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import NamedTuple

SIGNATURE_1 = b"PROXY "
SIGNATURE_2 = b"\r\n\r\n\0\r\nQUIT\n"
_LINE_BYTES = 107  # of version 1, its end included
_FIXED_BYTES = 16  # of version 2
_BODY_BYTES = 4096  # addresses and type-length-value fields; a balancer sends a few hundred
_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21
_PORTLESS = (0x00, 0x31)  # unspecified, or a Unix socket at the balancer: no address that means anything here
_FAMILIES = {b"TCP4": ipaddress.IPv4Address, b"TCP6": ipaddress.IPv6Address}

Address = tuple[str, int]


class ProxyError(Exception):
    """The connection doesn't start with a PROXY protocol header that is supported."""


class ProxyHeader(NamedTuple):
    """A header: its length in bytes, and the client's address and port; None where the balancer speaks for itself or
    doesn't know."""

    size: int
    source: Address | None


def parse_header(start: bytes | bytearray) -> ProxyHeader | None:
    """The header that a connection starts with, of either version; None: it isn't all there yet.

    Raises:
        ProxyError: it can't become a header that is supported.
    """
    if start[:1] == SIGNATURE_1[:1]:
        return _parse_line(bytes(start[:_LINE_BYTES]))
    if start.startswith(SIGNATURE_2[: len(start)]):
        return _parse_binary(start)
    raise ProxyError("no PROXY protocol header")


# Version 1


def _parse_line(start: bytes) -> ProxyHeader | None:
    if not SIGNATURE_1.startswith(start[: len(SIGNATURE_1)]):
        raise ProxyError("no PROXY protocol header")
    line, end, _ = start.partition(b"\r\n")
    if not end:
        if len(start) == _LINE_BYTES:
            raise ProxyError(f"a version 1 header of more than {_LINE_BYTES} bytes")
        return None
    return ProxyHeader(len(line) + len(end), _line_source(line))


def _line_source(line: bytes) -> Address | None:
    fields = line.split(b" ")
    if fields[1] == b"UNKNOWN":
        return None
    if len(fields) != 6 or fields[1] not in _FAMILIES:
        raise ProxyError("a version 1 header that is not understood")
    family = _FAMILIES[fields[1]]
    try:
        source, _ = (family(each.decode("ascii")) for each in fields[2:4])
    except ValueError:  # UnicodeDecodeError among them
        raise ProxyError("a version 1 header with an address that is none") from None
    port, _ = _port(fields[4]), _port(fields[5])
    if isinstance(source, ipaddress.IPv6Address) and source.scope_id:
        raise ProxyError("a version 1 header with an address that is none")
    return str(source), port


def _port(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 5 or int(digits) > 65_535:
        raise ProxyError("a version 1 header with a port that is none")
    return int(digits)


# Version 2


def _parse_binary(start: bytes | bytearray) -> ProxyHeader | None:
    if len(start) < _FIXED_BYTES:
        return None
    command, family, length = start[12], start[13], int.from_bytes(start[14:16], "big")
    if command not in (_LOCAL, _PROXY):
        raise ProxyError(f"version and command 0x{command:02x}")
    if length > _BODY_BYTES:
        raise ProxyError(f"a header of {_FIXED_BYTES + length} bytes")
    size = _FIXED_BYTES + length
    if len(start) < size:
        return None
    return ProxyHeader(size, _binary_source(command, family, bytes(start[_FIXED_BYTES:size])))


def _binary_source(command: int, family: int, body: bytes) -> Address | None:
    if command == _LOCAL or family in _PORTLESS:
        return None
    if family not in (_TCP4, _TCP6):
        raise ProxyError(f"address family and protocol 0x{family:02x}")
    size = 4 if family == _TCP4 else 16
    if len(body) < 2 * size + 4:
        raise ProxyError(f"{len(body)} bytes of addresses instead of {2 * size + 4}")
    address = ipaddress.ip_address(body[:size])
    return str(address), int.from_bytes(body[2 * size : 2 * size + 2], "big")


# Reading


async def starts_with_header(sock: socket.socket) -> bool:
    """Whether the first byte on a non-blocking socket is that of a header, and not of HTTP's GET or of TLS.

    Raises:
        ProxyError: the connection ended.
        OSError: the connection broke.
    """
    return await _peek(sock, 1) in (SIGNATURE_1[:1], SIGNATURE_2[:1])


async def read_source(sock: socket.socket) -> Address | None:
    """Reads exactly the header from a non-blocking socket, what follows it stays unread; the source it names.

    Raises:
        ProxyError: no header that can be honoured.
        OSError: the connection broke.
    """
    start = bytearray()
    while True:
        seen = await _peek(sock, _FIXED_BYTES + _BODY_BYTES - len(start))
        before = len(start)
        start += seen
        header = parse_header(start)
        if header is not None:
            sock.recv(header.size - before)
            return header.source
        sock.recv(len(seen))


async def _peek(sock: socket.socket, most: int) -> bytes:
    """What has come next, without taking it off the socket; waits until there is something."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            seen = sock.recv(most, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            readable = loop.create_future()
            loop.add_reader(sock, _wake, readable)
            try:
                await readable
            finally:
                loop.remove_reader(sock)
        else:
            if not seen:
                raise ProxyError("the connection ended before or inside the PROXY protocol header")
            return seen


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
