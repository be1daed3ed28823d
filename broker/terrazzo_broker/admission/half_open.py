"""Peers that haven't logged in yet, counted by the share of their address: how many there are, what they hold, and
who gives way where there is no room. What it costs doesn't grow with the number of shares."""

from __future__ import annotations

from collections.abc import Callable

from ..peer_address import share_of


class Peer:
    """An accepted socket, from its start to its end.

    Attributes:
        share: what its address counts as.
        born_s: when it was accepted, monotonic seconds.
        is_open: it is counted among the sockets.
        is_half_open: it is counted among those that haven't logged in.
        is_served: a protocol has its socket and tells of its end.
        held_bytes: what is kept of what it has sent, until it has logged in.
    """

    __slots__ = ("born_s", "give_way", "held_bytes", "is_half_open", "is_open", "is_served", "on_logged_in", "share")

    def __init__(self, address: str, born_s: float) -> None:
        self.share = share_of(address)
        self.born_s = born_s
        self.held_bytes = 0
        self.is_open = True
        self.is_half_open = False
        self.is_served = False
        self.give_way: Callable[[], object] = _nothing  # ends it at once; set by whoever has its socket
        self.on_logged_in: Callable[[], object] = _nothing

    def forget_socket(self) -> None:
        """Lets go of whoever had its socket and refers to this peer: while both do, neither is freed."""
        self.give_way = self.on_logged_in = _nothing


def _nothing() -> None:
    """For a peer whose socket nobody has, yet or any more."""


class _Share:
    """The peers of one share, each kind in the order in which it came."""

    __slots__ = ("asking", "count", "held_bytes", "name", "silent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.silent: dict[Peer, None] = {}  # no whole CONNECT from them yet
        self.asking: dict[Peer, None] = {}
        self.held_bytes = 0


class _Ranks:
    """Shares by rank, a small number above 0; of one rank in the order in which they got it."""

    __slots__ = ("_of_rank",)

    def __init__(self) -> None:
        self._of_rank: list[dict[_Share, None]] = [{}]

    @property
    def highest(self) -> int:
        """The highest rank that a share has; 0 without any."""
        return len(self._of_rank) - 1

    def first(self) -> _Share:
        """The first one of the highest rank."""
        return next(iter(self._of_rank[-1]))

    def move(self, share: _Share, before: int, now: int) -> None:
        """Puts a share behind the others of its new rank; 0 is no rank."""
        of_rank = self._of_rank
        of_rank[before].pop(share, None)
        if now:
            while now >= len(of_rank):
                of_rank.append({})
            of_rank[now][share] = None
        while len(of_rank) > 1 and not of_rank[-1]:
            of_rank.pop()

    def put_behind(self, share: _Share, rank: int) -> None:
        """Puts a share behind the others of its rank."""
        equals = self._of_rank[rank]
        del equals[share]
        equals[share] = None


class HalfOpenPeers:
    """The peers that haven't logged in."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}
        self._by_count = _Ranks()
        self._by_bytes = _Ranks()  # the rank is the number of binary digits
        self.count = 0
        self.held_bytes = 0

    def count_of(self, share: str) -> int:
        """How many peers a share has."""
        found = self._shares.get(share)
        return found.count if found is not None else 0

    def add(self, peer: Peer) -> None:
        """Adds a peer of which no CONNECT has come yet."""
        share = self._shares.get(peer.share)
        if share is None:
            share = self._shares[peer.share] = _Share(peer.share)
        share.silent[peer] = None
        self.count += 1
        share.count += 1
        self._by_count.move(share, share.count - 1, share.count)

    def remove(self, peer: Peer) -> None:
        """Removes a peer that was added, and what it holds."""
        if peer.held_bytes:
            self.hold(peer, 0)
        share = self._shares[peer.share]
        del (share.silent if peer in share.silent else share.asking)[peer]
        self.count -= 1
        share.count -= 1
        self._by_count.move(share, share.count + 1, share.count)
        if not share.count:
            del self._shares[share.name]

    def on_connect(self, peer: Peer) -> None:
        """Notes that a whole CONNECT has come: the peer isn't silent, and its share comes behind its equals."""
        share = self._shares[peer.share]
        if peer in share.silent:
            del share.silent[peer]
            share.asking[peer] = None
            self._by_count.put_behind(share, share.count)

    def hold(self, peer: Peer, size: int) -> None:
        """Sets how many bytes are kept of what a peer has sent."""
        change, peer.held_bytes = size - peer.held_bytes, size
        if not change:
            return
        share = self._shares[peer.share]
        before = share.held_bytes
        share.held_bytes += change
        self.held_bytes += change
        if before.bit_length() != share.held_bytes.bit_length():
            self._by_bytes.move(share, before.bit_length(), share.held_bytes.bit_length())

    # Who gives way

    def oldest_silent(self, share: str) -> Peer | None:
        """The peer of a share that has said nothing for longest."""
        found = self._shares.get(share)
        return next(iter(found.silent), None) if found is not None else None

    def next_to_go(self, newcomer: str) -> Peer | None:
        """Who makes room for one more peer of the share ``newcomer``: the oldest silent one of the share that has most.

        Where none of it is silent and the newcomer's share has less even with one more, its latest; else nobody.
        """
        own, most = self.count_of(newcomer), self._by_count.highest
        if own >= most:
            return self.oldest_silent(newcomer)
        largest = self._by_count.first()
        if largest.silent:
            return next(iter(largest.silent))
        return next(reversed(largest.asking)) if most > own + 1 else None

    def largest_holder(self) -> Peer:
        """Who holds most in a share that holds most, but for a factor of two."""
        share = self._by_bytes.first()
        return max((*share.silent, *share.asking), key=lambda each: each.held_bytes)
