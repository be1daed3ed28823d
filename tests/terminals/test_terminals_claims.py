"""What is promised to terminals that claim: bounded, counted against the key, gone when it is over."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from terrazzo.domain.claims.claim_key import ClaimKey, ClaimKeys, hash_of
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import Conflict
from terrazzo.terminals import provisioning
from terrazzo.terminals.provisioning import ClaimLink, Provisioning
from terrazzo_broker.hooks import Client, ConnectRequest

KEY = ClaimKey(
    id=1,
    uid="k1",
    company_id=7,
    key_hash=hash_of(b"key"),
    uses=3,
    used=0,
    expires_us=None,
    prefix="",
    config_id=1,
    type="Other",
    mode="pwd",
    access="all",
    topic="all",
    is_available=True,
)


class Stand:
    """Provisioning with records that are made at once, or refused, and a broker's side that takes everything."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.registry.claim_keys.put(KEY)
        self.now_us = 0
        self.made: list[str] = []
        self.told: list[tuple[str, bytes]] = []
        self.ended: list[str] = []
        self.refuses = False
        pins = itertools.count()
        self.part = Provisioning(
            self.registry, self, new_pin=lambda: f"pin-{next(pins)}", promise_s=10, clock=lambda: self.now_us
        )
        self.part.attach(self)

    async def create_claimed(self, key: ClaimKey, terminal: Terminal, address: str) -> None:
        if self.refuses:
            raise Conflict("uid: is taken")
        self.made.append(terminal.uid)
        self.registry.put_terminal(_with(terminal, id=len(self.made)))

    def tell(self, uid: str, payload: bytes) -> bool:
        self.told.append((uid, payload))
        return True

    def end(self, uid: str) -> None:
        self.ended.append(uid)

    def refusal(self, uid: str) -> str:
        request = ConnectRequest(client_id=uid, username="claim", password=b"key", listener="tls")
        key = self.part.find_key(request)
        assert key is not None
        return self.part.refusal(key, request)

    def ask(self, uid: str, key_id: int = 1) -> Terminal:
        """Claims as far as the pin; the terminal that was promised."""
        client = Client(
            client_id=uid,
            username="claim",
            protocol=5,
            address="10.0.0.1",
            port=1,
            listener="tls",
            connected_us=0,
            keep_alive_s=0,
            identity=ClaimLink(key_id, 7),
        )
        self.part.on_subscribed(client, [f"p2p/{uid}"])
        [terminal] = self.part.promised(uid)
        return terminal


def _with(terminal: Terminal, **changes: Any) -> Terminal:
    fields = {name: getattr(terminal, name) for name in terminal.__struct_fields__}
    return Terminal(**{**fields, **changes})


@pytest.fixture
def stand() -> Stand:
    return Stand()


async def test_claims_under_way_count_against_the_key_until_they_end(stand: Stand) -> None:
    for uid in ("t1", "t2", "t3"):
        assert stand.refusal(uid) == ""
        stand.ask(uid)
    assert stand.refusal("t4") == "the claim key is used up"
    assert stand.refusal("t2") == "", "who asks again has its place"
    stand.now_us = 10_000_000
    assert stand.refusal("t4") == ""
    assert stand.part.stats.expired == 3
    assert list(stand.part.promised("t1")) == []


async def test_two_logins_with_one_pin_make_one_record(stand: Stand) -> None:
    promised = stand.ask("t1")
    first, second = await stand.part.confirm(promised, ""), await stand.part.confirm(promised, "")
    assert first is second
    assert stand.made == ["t1"]
    assert stand.part.stats.provisioned == 1


async def test_a_pin_that_was_replaced_makes_nothing(stand: Stand) -> None:
    before = stand.ask("t1")
    after = stand.ask("t1")
    with pytest.raises(Conflict):
        await stand.part.confirm(before, "")
    await stand.part.confirm(after, "")
    with pytest.raises(Conflict):
        await stand.part.confirm(before, "")
    assert stand.made == ["t1"]


async def test_what_cannot_be_recorded_may_be_tried_again(stand: Stand) -> None:
    promised = stand.ask("t1")
    stand.refuses = True
    with pytest.raises(Conflict):
        await stand.part.confirm(promised, "")
    stand.refuses = False
    assert (await stand.part.confirm(promised, "")).id == 1


async def test_a_key_that_is_gone_makes_nothing(stand: Stand) -> None:
    promised = stand.ask("t1")
    stand.registry.claim_keys.drop(1)
    with pytest.raises(Conflict):
        await stand.part.confirm(promised, "")


async def test_promises_of_a_company_are_bounded(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning, "MOST_PROMISES", 5)
    stand.registry.claim_keys.put(_key(uses=1_000_000))
    for number in range(50):
        stand.ask(f"t{number}")
    assert [number for number in range(50) if list(stand.part.promised(f"t{number}"))] == [45, 46, 47, 48, 49]


def test_channel_letters_are_no_uids(stand: Stand) -> None:
    assert "channel" in stand.refusal("r")


def test_keys_by_their_hash() -> None:
    keys = ClaimKeys()
    keys.put(KEY)
    keys.drop(2)
    assert keys.find(b"key") is KEY is keys.by_id(1)
    assert keys.find(KEY.key_hash.encode()) is None
    keys.drop(1)
    assert keys.find(b"key") is None


def _key(**changes: Any) -> ClaimKey:
    fields = {name: getattr(KEY, name) for name in KEY.__struct_fields__}
    return ClaimKey(**{**fields, **changes})
