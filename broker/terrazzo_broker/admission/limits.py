"""Admission control: limits on sockets, on peers that have not logged in, on logins a second, and on clients."""

from __future__ import annotations

from collections.abc import Callable

from mqtt5 import ConnAckReasonCode

from ..limited_log import limited_logger
from ..refusals import Cause
from ..refusals import Refusal as Told
from ..settings import BrokerSettings
from ..stats import Stats
from .connect_pace import ConnectPace
from .half_open import HalfOpenPeers, Peer

log = limited_logger("terrazzo_broker.admission")

SPARE_SOCKETS = (
    1024  # beyond the limit of clients: those that haven't logged in, and may be told that there are too many
)

Refusal = tuple[ConnAckReasonCode, str, Cause]
"""The reason code of a CONNACK, its text, and the cause."""


class ListenerAdmission:
    """One listener's name, and the pace of its CONNECTs."""

    __slots__ = ("name", "pace")

    def __init__(self, name: str, pace: ConnectPace) -> None:
        self.name = name
        self.pace = pace


class Admission:
    """Counts sockets and those of them that haven't logged in, ends some of these where there is no room, and refuses.

    ``clock``: monotonic seconds. ``on_refused`` is told of peers that have no room.
    """

    __slots__ = ("_clock", "_logged_in", "_on_refused", "_settings", "_stats", "half_open", "sockets")

    def __init__(
        self,
        settings: BrokerSettings,
        stats: Stats,
        clock: Callable[[], float],
        on_refused: Callable[[Told], object] = lambda _refusal: None,
    ) -> None:
        self._settings = settings
        self._stats = stats
        self._clock = clock
        self._on_refused = on_refused
        self.half_open = HalfOpenPeers()
        self._logged_in = Peer("", 0.0)
        self.sockets = 0

    def listener(self, name: str) -> ListenerAdmission:
        """A new listener."""
        settings = self._settings
        return ListenerAdmission(
            name, ConnectPace(settings.connects_per_second, settings.connect_timeout_s, self._clock)
        )

    # Sockets

    def enter(self, address: str) -> Peer | None:
        """Counts an accepted socket until ``leave``, and until ``on_logged_in`` among those that haven't logged in.

        None: there is no room, and it is to be closed. Peers of a Unix socket have no address; the mode of its file
        limits them.
        """
        peer = Peer(address, self._clock())
        if not peer.share:
            self.sockets += 1
            return peer
        if not self._has_room(address, peer.share):
            return None
        self._count(peer)
        self.sockets += 1
        return peer

    def move(self, peer: Peer, address: str) -> bool:
        """Counts a socket under the address that a proxy has named; False: there is no room for another of it."""
        moved = Peer(address, peer.born_s)
        if not peer.is_half_open or moved.share == peer.share:
            return True
        self._uncount(peer)
        if not self._has_room(address, moved.share):
            return False
        peer.share = moved.share
        self._count(peer)
        return True

    def _count(self, peer: Peer) -> None:
        peer.is_half_open = True
        self.half_open.add(peer)

    def _uncount(self, peer: Peer) -> None:
        if peer.is_half_open:
            peer.is_half_open = False
            self.half_open.remove(peer)

    def _has_room(self, address: str, share: str) -> bool:
        settings, half_open = self._settings, self.half_open
        if half_open.count_of(share) >= settings.half_open_per_address:
            goes = half_open.oldest_silent(share)
            why = "connections from there haven't logged in", settings.half_open_per_address
        elif half_open.count >= settings.half_open:
            goes = half_open.next_to_go(share)
            why = "connections haven't logged in", settings.half_open
        elif self.sockets >= self.most_sockets:
            goes = half_open.next_to_go(share)
            why = "sockets are open", self.most_sockets
        else:
            return True
        if goes is not None:
            log.warning("%s: makes room for %s: %d %s", goes.share, address, *reversed(why))
            self._end(goes)
            return True
        self._stats.limited_half_open += 1
        self._on_refused(Told(Cause.HALF_OPEN, address, detail=f"{why[1]} {why[0]}"))
        log.warning("%s: refused, %d %s", address, *reversed(why))
        return False

    @property
    def most_sockets(self) -> int:
        """How many sockets may be open."""
        return self._settings.sockets or self._settings.connections + SPARE_SOCKETS

    def _end(self, peer: Peer) -> None:
        self._stats.half_open_ended += 1
        self._on_refused(Told(Cause.HALF_OPEN, peer.share, detail="it made room for others"))
        self._uncount(peer)
        peer.give_way()

    # Those that haven't logged in

    def on_connect(self, peer: Peer) -> None:
        """Notes that a whole CONNECT has come."""
        if peer.is_half_open:
            self.half_open.on_connect(peer)

    def hold(self, peer: Peer, size: int) -> None:
        """Sets how many bytes are kept of what a peer has sent before its login; ends others where it is too much."""
        if not peer.is_half_open:
            return
        self.half_open.hold(peer, size)
        while self.half_open.held_bytes > self._settings.half_open_bytes:
            largest = self.half_open.largest_holder()
            log.warning("%s: ended, too much of what peers have sent before their login is kept", largest.share)
            self._end(largest)

    def on_logged_in(self, peer: Peer) -> Peer:
        """Counts a socket no longer among those that haven't logged in; what stands for it until it leaves: where it
        came from doesn't matter any more, so that all have the same."""
        self._uncount(peer)
        peer.on_logged_in()
        peer.forget_socket()
        return self._logged_in

    def leave(self, peer: Peer) -> None:
        """Counts a socket no longer: it is closed. More than once is not an error before the login."""
        if peer is self._logged_in:
            self.sockets -= 1
            return
        self._uncount(peer)
        if peer.is_open:
            peer.is_open = False
            self.sockets -= 1
            peer.forget_socket()

    # Clients

    def refusal(self, listener: ListenerAdmission, *, takes_over: bool) -> Refusal | None:
        """Why a CONNECT may not go on to the hooks; None: it may.

        ``takes_over``: it replaces a connection that counts already.
        """
        if self._stats.clients >= self._settings.connections and not takes_over:
            self._stats.limited_connections += 1
            log.warning("%s: refused, %d clients are connected", listener.name, self._stats.clients)
            return ConnAckReasonCode.QUOTA_EXCEEDED, "too many connections", Cause.TOO_MANY_CONNECTIONS
        return None

    def refuse_pace(self, listener: ListenerAdmission, address: str) -> Refusal:
        """Counts a CONNECT whose turn wouldn't come in time; why it is refused."""
        self._stats.limited_connect_rate += 1
        log.warning("%s: refused on %s: more connects than their share of the pace", address, listener.name)
        return ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "too many connects a second", Cause.CONNECT_RATE
