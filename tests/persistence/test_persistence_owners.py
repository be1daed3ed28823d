"""Folders of format 2, which had no owners: all is read, owners are found out, and that may be cut off anywhere."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec
import pytest

from terrazzo_broker import EVERYBODY, Broker, BrokerSettings, FormerOwners
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.persistence import DiskStorage, keys, owner_conversion
from terrazzo_broker.persistence.database import StateDatabase
from terrazzo_broker.persistence.image import FORMAT, read_image
from terrazzo_broker.persistence.owner_conversion import name_owners
from terrazzo_broker.persistence.records import encode_entry, encode_subscription
from terrazzo_broker.standalone import OpenHooks
from terrazzo_broker.topics.tree import TopicSubscription

OWNERS = FormerOwners(
    of_topic=lambda topic: {"g/a": "1", "g/b": "2"}.get(topic, ""),
    of_client=lambda client_id: {"one": "1", "two": "2"}.get(client_id, ""),
)
TOPICS = (b"g/a", b"g/b", b"loose")


def retained(topic: bytes) -> tuple[bytes, bytes]:
    return keys.RETAINED + topic, encode_entry(ApplicationMessage(topic, b"kept " + topic, 1, retain=True))


def session(number: int, client_id: str) -> dict[bytes, bytes]:
    """A session that waits for its client, with a message on each topic; its head as format 2 had it."""
    prefix = keys.session_prefix(number)
    records = {prefix + keys.HEAD: msgspec.msgpack.encode([client_id, 0xFFFFFFFF, 0, False])}
    records[prefix + keys.SUBSCRIPTION + b"#"] = encode_subscription(TopicSubscription("#", 1))
    for place, topic in enumerate(TOPICS, 10 * number):
        key = prefix + keys.QUEUED + place.to_bytes(8, "big")
        records[key] = encode_entry(ApplicationMessage(topic, b"waits", 1))
    return records


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    database = StateDatabase(tmp_path / "data")
    records = {keys.VERSION: b"2", **dict(map(retained, TOPICS)), **session(1, "one"), **session(2, "two")}
    database.commit(records)
    database.close()
    return database.folder


def open_broker(folder: Path) -> Broker:
    return Broker(BrokerSettings(sys_interval_s=0), OpenHooks(anonymous=True), DiskStorage(folder), owners=OWNERS)


def waiting(broker: Broker) -> dict[str, list[bytes]]:
    return {name: [each.topic for each in session.queue or ()] for name, session in broker.sessions.items()}


def kept(broker: Broker, owner: str) -> list[bytes]:
    return [each.payload for each in broker.retained.walk("#", owner) if each is not None]


async def check(folder: Path) -> None:
    broker = open_broker(folder)
    assert {name: session.owner for name, session in broker.sessions.items()} == {"one": "1", "two": "2"}
    assert waiting(broker) == {"one": [b"g/a"], "two": [b"g/b"]}
    assert [kept(broker, owner) for owner in ("1", "2", "")] == [[b"kept g/a"], [b"kept g/b"], [b"kept loose"]]
    assert kept(broker, EVERYBODY) == []
    await broker.close(1.0)


async def test_owners_are_found_out_once_and_kept(folder: Path) -> None:
    await check(folder)
    database = StateDatabase(folder)
    database.open()
    image = read_image(database.items())
    database.close()
    assert image.format == FORMAT
    assert image.unowned == []
    assert {each.head.owner for each in image.sessions if each.head is not None} == {"1", "2"}
    await check(folder)


@pytest.mark.parametrize("pieces", [0, 1, 2])
async def test_cut_off_between_two_pieces(folder: Path, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_conversion, "_PIECE_BYTES", 0)
    database = StateDatabase(folder)
    database.open()
    image = read_image(database.items())
    database.commit({keys.VERSION: FORMAT})
    for piece in islice(name_owners(image, OWNERS, database.get), pieces):
        database.commit(piece)
    database.close()
    await check(folder)


async def test_a_broker_without_owners_reads_them_as_before(folder: Path) -> None:
    storage = DiskStorage(folder)
    broker = Broker(BrokerSettings(sys_interval_s=0), OpenHooks(anonymous=True), storage)
    assert waiting(broker) == {"one": list(TOPICS), "two": list(TOPICS)}
    assert sorted(kept(broker, "")) == [b"kept g/a", b"kept g/b", b"kept loose"]
    await broker.close(1.0)
