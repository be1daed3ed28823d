"""What is let through to aiohttp before a login: all of it, in its order, and no more at a time than the bound."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from terrazzo_broker.admission.limits import Admission
from terrazzo_broker.listeners.bounded_reading import BoundedReading
from terrazzo_broker.settings import BrokerSettings
from terrazzo_broker.stats import Stats

HEAD = b"GET / HTTP/1.1\r\n\r\n"


class Below(asyncio.Transport):
    """A socket in memory, from which a protocol may stop reading."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True
        self.protocol: asyncio.BaseProtocol | None = None

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class Above(asyncio.Protocol):
    """What a handler is handed."""

    def __init__(self) -> None:
        self.data = b""
        self.excess: list[int] = []  # how much it had when a head was too long

    def new_handler(self) -> asyncio.Protocol:
        return self

    def on_connected(self, reading: BoundedReading) -> None:
        assert not self.data

    def on_excess(self, reading: BoundedReading) -> None:
        self.excess.append(len(self.data))

    def on_gone(self, reading: BoundedReading) -> None:
        raise AssertionError("it stays")

    def data_received(self, data: bytes) -> None:
        assert data
        self.data += data


def reading(head_bytes: int) -> tuple[BoundedReading, Below, Above, Admission]:
    """One in between, connected."""
    admission = Admission(BrokerSettings(), Stats(), lambda: 0.0)
    peer = admission.enter("192.0.2.1")
    assert peer is not None
    above, below = Above(), Below()
    between = BoundedReading(above, peer, ("192.0.2.1", 1), admission=admission, head_bytes=head_bytes)
    between.connection_made(below)
    return between, below, above, admission


@given(
    st.lists(st.binary(min_size=1, max_size=50), max_size=20),
    st.integers(0, 40),
    st.integers(0, 200),
    st.integers(0, 20),
)
def test_all_of_it_in_its_order(parts, spare, more, login_after):
    between, below, above, admission = reading(len(HEAD) + spare)
    peer = between.peer
    between.data_received(HEAD)
    upgrade_after, sent = login_after // 2, HEAD
    for n, part in enumerate(parts):
        if n == upgrade_after:
            between.on_upgrade(more)
        if n == login_after:
            admission.on_logged_in(peer)
        if not below.is_read:
            break
        sent += part
        (below.protocol or between).data_received(part)
        assert sent.startswith(above.data)
        if n < upgrade_after:
            assert len(above.data) <= len(HEAD) + spare
        elif n < login_after:
            assert len(above.data) <= len(HEAD) + spare + more
    if len(parts) <= upgrade_after:
        between.on_upgrade(more)
    admission.on_logged_in(peer)
    assert above.data == sent
    assert below.is_read
    assert below.protocol is above
    assert admission.half_open.held_bytes == 0


def test_a_head_beyond_the_bound():
    between, below, above, admission = reading(30)
    for _ in range(5):
        between.data_received(b"X-A: aaaa\r\n")
    assert above.excess
    assert set(above.excess) <= {22, 30}
    assert admission.half_open.held_bytes <= 30
    assert below.is_read
