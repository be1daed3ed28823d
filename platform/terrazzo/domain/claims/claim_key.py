"""``ClaimKey``: with it terminals that nobody has registered come in by themselves; ``ClaimKeys`` finds one. Pure."""

from __future__ import annotations

from hashlib import sha256

import msgspec


class ClaimKey(msgspec.Struct, frozen=True, kw_only=True):
    """A company's claim key: what terminals that it lets in are, and how many of them there may be."""

    id: int
    uid: str
    company_id: int
    key_hash: str
    uses: int  # terminals that may log in by it
    used: int  # that have
    expires_us: int | None  # UTC microseconds; None: never
    prefix: str  # of the uids; empty: any
    config_id: int
    type: str
    mode: str  # pwd | auto | cert
    access: str
    topic: str
    is_available: bool

    def refusal(self, uid: str, *, under_way: int, now_us: int) -> str:
        """Why the key doesn't let in a terminal of this uid, empty where it does.

        Args:
            under_way: other terminals that have their pin by it, and have not logged in yet.
        """
        if not self.is_available:
            return "the claim key is disabled"
        if self.expires_us is not None and self.expires_us <= now_us:
            return "the claim key has expired"
        if self.used + under_way >= self.uses:
            return "the claim key is used up"
        if not uid.startswith(self.prefix):
            return "the claim key is for other uids"
        return ""


def hash_of(key: bytes) -> str:
    """What is kept of a claim key. It is 128 random bits, so that no slow hash is needed."""
    return sha256(key).hexdigest()


class ClaimKeys:
    """The claim keys of all companies."""

    def __init__(self) -> None:
        self._keys: dict[int, ClaimKey] = {}
        self._by_hash: dict[str, int] = {}

    def find(self, key: bytes) -> ClaimKey | None:
        """The claim key that this is."""
        record_id = self._by_hash.get(hash_of(key))
        return None if record_id is None else self._keys[record_id]

    def by_id(self, record_id: int) -> ClaimKey | None:
        """The claim key with this record id."""
        return self._keys.get(record_id)

    def put(self, key: ClaimKey) -> None:
        """Adds or replaces a claim key."""
        self._keys[key.id] = key
        self._by_hash[key.key_hash] = key.id

    def drop(self, record_id: int) -> None:
        """Removes a claim key; an unknown one is ignored."""
        key = self._keys.pop(record_id, None)
        if key is not None:
            del self._by_hash[key.key_hash]
