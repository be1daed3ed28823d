"""How often each address may do something that is not tied to a user. Pure: the caller passes the time."""

from __future__ import annotations

from collections import OrderedDict

from terrazzo.logins.buckets import Bucket, BucketSize
from terrazzo_broker.peer_address import share_of

_MOST_ADDRESSES = 10_000  # the one that asked longest ago makes room


class AddressRate:
    """So many at once from an address (its share, ``share_of``), and as many again within ``window_s`` seconds."""

    def __init__(self, limit: int, window_s: float) -> None:
        self._size = BucketSize(limit, window_s)
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, address: str, now_s: float) -> float:
        """Counts one; 0.0 where it may go on, else the seconds until the next one may, and nothing is counted."""
        share = share_of(address)
        bucket = self._buckets.setdefault(share, self._size.full(now_s))
        self._buckets.move_to_end(share)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        if not self._size.has_token(bucket, now_s, is_patient=True):
            return self._size.wait_s(bucket, now_s)
        self._size.take(bucket, now_s)
        return 0.0
