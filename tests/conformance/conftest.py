"""``python -m terrazzo_broker --allow-anonymous`` as a process for each file, and clients with names of their own."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conformance_peer import Peer

Dial = Callable[..., Awaitable[Peer]]


@contextmanager
def standalone(*options: str) -> Iterator[int]:
    """Runs the broker; its port."""
    command = [sys.executable, "-m", "terrazzo_broker", "--port", "0", "--allow-anonymous", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rsplit(":", 1)[1])
        finally:
            process.terminate()
            assert process.wait(15) == 0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A broker as it comes."""
    with standalone() as port:
        yield port


@pytest.fixture(scope="module")
def capped_port() -> Iterator[int]:
    """A broker that wants to hear from MQTT 5 clients at least every minute."""
    with standalone("--max-keepalive", "60") as port:
        yield port


@pytest.fixture(params=[4, 5], ids=["3.1.1", "5.0"])
def version(request: pytest.FixtureRequest) -> int:
    """For a statement of both specifications."""
    return int(request.param)


@pytest.fixture
def name() -> str:
    """A client id and topic that no other test uses."""
    return f"c{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def dial(port: int) -> AsyncIterator[Dial]:
    """``await dial(version, client_id, ...)`` connects; without a client id it only opens the socket.

    ``keep``: the session is to outlive the connection, and one that is there is taken up again.
    """
    peers: list[Peer] = []

    async def _dial(
        version: int, client_id: str | None = None, *, keep: bool = False, to: int | None = None, **options: Any
    ) -> Peer:
        peer = await Peer.open(to or port, version)
        peers.append(peer)
        if keep:
            options.setdefault("clean", False)
            if version == 5:
                options.setdefault("session_expiry", 100)
        if client_id is not None:
            assert (await peer.connect(client_id, **options)).reason == 0
        return peer

    yield _dial
    for peer in peers:
        await peer.finish()
