"""Slows down whoever guesses the credentials of users or terminals, and nobody else. Pure: the caller passes the time.

Three counts. A principal at an address: ``limit`` failures within the window, then it waits until one is older than
that. A principal from everywhere, and an address with all names: ten times as many, then one try each
``window / (10 * limit)`` seconds; nobody is locked out by what others do. Where a principal has proven itself
(``KnownPlaces``) the first count alone matters, so that neither strangers elsewhere nor neighbours who try other names
keep it out.

An address counts as its share (``share_of``). A try counts as a failure from its beginning until it is proven, so that
tries at the same time, and those that are never finished, count too.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from terrazzo.logins.buckets import Bucket, BucketSize
from terrazzo.logins.places import KnownPlaces, Principal
from terrazzo_broker.peer_address import share_of

K = TypeVar("K")
V = TypeVar("V")

WIDER = 10  # times the limit: what one principal has from everywhere, and one address with all names

_MOST_RECORDS = 100_000  # users or terminals with failures; strangers must guess names for each
_MOST_STRANGERS = 10_000  # names that nobody has; apart, so that they push no other out
_MOST_ADDRESSES = 10_000
_MOST_WAITING = 10_000
_MOST_SHARES = 64  # addresses of one principal
_EARLY = 6  # who comes before it was told to waits a sixth longer


class Attempt(msgspec.Struct):
    """A try. ``wait_s`` is 0 when it may go on, else the seconds until it may come back.

    ``is_known``: its principal has proven itself there.
    """

    principal: Principal
    share: str
    began_s: float
    wait_s: float = 0.0
    is_known: bool = False
    taken: tuple[tuple[BucketSize, Bucket], ...] = ()


class LoginFailures(NamedTuple):
    """The failures of one record within the window. Times in unix seconds.

    ``share`` is empty for all addresses together, where tries are slowed until ``until_s``; of one address ``until_s``
    says until when it is locked out there. None: it is not.
    """

    record_id: int
    share: str
    failures: int
    first_s: float
    last_s: float
    until_s: float | None


class _Failed:
    """What a principal has failed: by share the times of the last failures, and its bucket."""

    __slots__ = ("bucket", "times")

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.times: OrderedDict[str, deque[float]] = OrderedDict()


class LoginLimiter:
    """Counts failed logins of users, or of terminals.

    Args:
        limit: failures of a principal at an address within ``window_s``; 0 turns all limits off.
        window_s: seconds.
        places: where principals have proven themselves.
    """

    def __init__(self, limit: int, window_s: float, places: KnownPlaces | None = None) -> None:
        self.places = places or KnownPlaces()
        self._limit = limit
        self._window_s = window_s
        self._size = BucketSize(max(1, limit) * WIDER, window_s)
        self._records: OrderedDict[int, _Failed] = OrderedDict()
        self._strangers: OrderedDict[str, _Failed] = OrderedDict()
        self._addresses: OrderedDict[str, Bucket] = OrderedDict()
        self._waiting: OrderedDict[tuple[int | str, str], float] = OrderedDict()  # until when, by principal and share

    def is_known(self, principal: Principal, address: str) -> bool:
        """Whether the principal has proven itself at that address."""
        return self.places.has(principal, share_of(address))

    def look(self, principal: Principal, address: str, now_s: float) -> Attempt:
        """Whether a try would be let through now; it counts nothing."""
        share = share_of(address)
        if not self._limit:
            return Attempt(principal, share, now_s)
        failed = self._find(principal)
        wait_s = 0.0 if failed is None else self._locked_s(failed.times.get(share), now_s)
        is_known = self.places.has(principal, share)
        if not wait_s and not is_known:
            wait_s = self._slowed_s(principal, share, failed, now_s)
        return Attempt(principal, share, now_s, wait_s, is_known)

    def begin(self, principal: Principal, address: str, now_s: float) -> Attempt:
        """Lets a try through and counts it as failed so far, unless it has to wait."""
        attempt = self.look(principal, address, now_s)
        if attempt.wait_s or not self._limit:
            return attempt
        failed, share = self._of(principal, now_s), attempt.share
        times = failed.times.get(share)
        if times is None:
            times = failed.times[share] = deque(maxlen=self._limit)
            if len(failed.times) > _MOST_SHARES:
                failed.times.popitem(last=False)
        else:
            failed.times.move_to_end(share)
        times.append(now_s)
        if not attempt.is_known:
            self._waiting.pop((_key(principal), share), None)
            attempt.taken = ((self._size, failed.bucket), (self._size, self._bucket_of(share, now_s)))
        for size, bucket in attempt.taken:
            size.take(bucket, now_s)
        return attempt

    def succeed(self, attempt: Attempt) -> None:
        """The try was proven: its principal's failures at that address are forgotten, and the place is known."""
        failed = self._find(attempt.principal)
        if failed is not None:
            failed.times.pop(attempt.share, None)
        self._give_back(attempt)
        if attempt.principal.record_id:  # 0: another process has made it a moment ago
            self.places.add(attempt.principal, attempt.share)

    def excuse(self, attempt: Attempt) -> None:
        """The try was not decided, for a reason of ours: it doesn't count."""
        failed = self._find(attempt.principal)
        times = None if failed is None else failed.times.get(attempt.share)
        if times and attempt.began_s in times:
            times.remove(attempt.began_s)
        self._give_back(attempt)

    def unlock(self, record_id: int) -> None:
        """Forgets the failures of a record, at every address."""
        self._records.pop(record_id, None)

    def forget(self, record_id: int) -> None:
        """Forgets all about a record that was deleted, or has other credentials."""
        self.unlock(record_id)
        self.places.forget(record_id)

    def failures(self, now_s: float) -> Iterator[LoginFailures]:
        """The records with failures in the window, by address, and those that are slowed down everywhere."""
        for record_id, failed in self._records.items():
            recent = {share: [at for at in times if self._counts(at, now_s)] for share, times in failed.times.items()}
            for share, times in recent.items():
                if times:
                    locked_s = self._locked_s(failed.times[share], now_s)
                    until_s = now_s + locked_s if locked_s else None
                    yield LoginFailures(record_id, share, len(times), times[0], times[-1], until_s)
            free_s = self._size.free_s(failed.bucket, now_s)
            every = sorted(at for times in recent.values() for at in times)
            if free_s and every:
                yield LoginFailures(record_id, "", len(every), every[0], every[-1], now_s + free_s)

    def _locked_s(self, times: deque[float] | None, now_s: float) -> float:
        """Seconds until a principal with these failures at an address may try again there."""
        if times is None or len(times) < self._limit or not self._counts(times[0], now_s):
            return 0.0
        return times[0] + self._window_s - now_s

    def _counts(self, failed_s: float, now_s: float) -> bool:
        """Whether a failure is within the window; one of the future is of a clock that was set back."""
        return 0 <= now_s - failed_s < self._window_s

    def _slowed_s(self, principal: Principal, share: str, failed: _Failed | None, now_s: float) -> float:
        """Seconds that a try from an unknown place has to wait because of others' failures."""
        found = (None if failed is None else failed.bucket, self._addresses.get(share))
        buckets = [bucket for bucket in found if bucket is not None]
        if not buckets:
            return 0.0
        waiting = (_key(principal), share)
        due_s = self._waiting.get(waiting)
        is_patient = due_s is not None and now_s >= due_s
        if all(self._size.has_token(bucket, now_s, is_patient=is_patient) for bucket in buckets):
            return 0.0
        if due_s is None or is_patient:
            due_s = now_s + max(self._size.wait_s(bucket, now_s) for bucket in buckets)
        else:
            due_s += self._size.period_s / _EARLY
        self._waiting[waiting] = due_s
        self._waiting.move_to_end(waiting)
        if len(self._waiting) > _MOST_WAITING:
            self._waiting.popitem(last=False)
        return due_s - now_s

    def _give_back(self, attempt: Attempt) -> None:
        for size, bucket in attempt.taken:
            size.give_back(bucket)

    def _find(self, principal: Principal) -> _Failed | None:
        if principal.record_id:
            return self._records.get(principal.record_id)
        return self._strangers.get(_stranger(principal))

    def _of(self, principal: Principal, now_s: float) -> _Failed:
        """What a principal has failed; those whose last failure is longest ago make room."""
        if principal.record_id:
            return _touch(self._records, principal.record_id, lambda: _Failed(self._size.full(now_s)), _MOST_RECORDS)
        name = _stranger(principal)
        return _touch(self._strangers, name, lambda: _Failed(self._size.full(now_s)), _MOST_STRANGERS)

    def _bucket_of(self, share: str, now_s: float) -> Bucket:
        return _touch(self._addresses, share, lambda: self._size.full(now_s), _MOST_ADDRESSES)


def _stranger(principal: Principal) -> str:
    return principal.name[:64]


def _key(principal: Principal) -> int | str:
    return principal.record_id or _stranger(principal)


def _touch(table: OrderedDict[K, V], key: K, make: Callable[[], V], most: int) -> V:
    """The value of a key, made where there is none; the one that was touched longest ago makes room."""
    value = table.get(key)
    if value is not None:
        table.move_to_end(key)
        return value
    value = table[key] = make()
    if len(table) > most:
        table.popitem(last=False)
    return value
