"""The PROXY protocol, version 2: a load balancer names the client whose connection it forwards.

Source: https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, section 2.2.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
HEADER_BYTES = 16
_BODY_BYTES = 4096  # addresses and type-length-value fields; a balancer sends a few hundred
_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21
_PORTLESS = (0x00, 0x31)  # unspecified, or a Unix socket at the balancer: no address that means anything here

Address = tuple[str, int]


class ProxyError(Exception):
    """The connection doesn't start with a PROXY protocol v2 header that is supported."""


def parse_length(header: bytes) -> int:
    """How many bytes of the header follow its first 16.

    Raises:
        ProxyError: the first 16 bytes can't start a header.
    """
    check_signature(header)
    if header[12] not in (_LOCAL, _PROXY):
        raise ProxyError(f"version and command 0x{header[12]:02x}")
    length = int.from_bytes(header[14:16], "big")
    if length > _BODY_BYTES:
        raise ProxyError(f"a header of {HEADER_BYTES + length} bytes")
    return length


def check_signature(start: bytes) -> None:
    """Checks the first bytes of a connection, of any number, against the signature.

    Raises:
        ProxyError: they don't start a header.
    """
    if start.startswith(b"PROXY "):
        raise ProxyError("PROXY protocol v1 is not spoken here, only v2")
    if not SIGNATURE.startswith(start[: len(SIGNATURE)]):
        raise ProxyError("no PROXY protocol v2 header")


def parse_source(header: bytes, body: bytes) -> Address | None:
    """The client's address and port; None where the balancer speaks for itself or doesn't know.

    Raises:
        ProxyError: an address family that is not spoken, or a body too short for it.
    """
    if header[12] == _LOCAL:
        return None
    family = header[13]
    if family in _PORTLESS:
        return None
    if family not in (_TCP4, _TCP6):
        raise ProxyError(f"address family and protocol 0x{family:02x}")
    size = 4 if family == _TCP4 else 16
    if len(body) < 2 * size + 4:
        raise ProxyError(f"{len(body)} bytes of addresses instead of {2 * size + 4}")
    address = ipaddress.ip_address(body[:size])
    return str(address), int.from_bytes(body[2 * size : 2 * size + 2], "big")


async def read_source(sock: socket.socket) -> Address | None:
    """Reads exactly the header from a non-blocking socket: what follows it stays unread.

    Raises:
        ProxyError: no header that can be honoured.
        OSError: the connection broke.
    """
    header = b""
    while len(header) < HEADER_BYTES:
        header += await _receive(sock, HEADER_BYTES - len(header))
        check_signature(header)
    length, body = parse_length(header), b""
    while len(body) < length:
        body += await _receive(sock, length - len(body))
    return parse_source(header, body)


async def _receive(sock: socket.socket, most: int) -> bytes:
    data = await asyncio.get_running_loop().sock_recv(sock, most)
    if not data:
        raise ProxyError("the connection ended inside the header")
    return data
