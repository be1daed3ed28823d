"""What waits for the disk: never a write, whose thread holds the interpreter's lock."""

from __future__ import annotations

from pathlib import Path

from terrazzo_adapters.keyvalue.database import KeyValueDatabase
from terrazzo_broker.persistence.database import StateDatabase


def _logged_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def test_a_write_of_the_broker_reaches_the_log_with_its_sync(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    database.open()
    before = _logged_bytes(tmp_path)
    assert database.write({b"a": b"1" * 10_000})
    assert _logged_bytes(tmp_path) == before
    database.sync()
    assert _logged_bytes(tmp_path) > before + 10_000
    database.close()


def test_a_write_of_a_store_reaches_the_log_with_its_sync(tmp_path: Path) -> None:
    database = KeyValueDatabase(tmp_path, what="store")
    database.open()
    before = _logged_bytes(tmp_path)
    database.commit(lambda batch: batch.put(b"a", b"1" * 10_000), sync=False)
    database.rdict.put(b"b", b"2" * 10_000)
    assert before + 10_000 < _logged_bytes(tmp_path) < before + 20_000
    database.close("over")


def test_what_was_written_before_an_orderly_end_is_there(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    database.open()
    assert database.write({b"a": b"1"})
    database.close()
    database.open()
    assert database.get(b"a") == b"1"
    database.close()
