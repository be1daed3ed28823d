"""``terrazzo doctor`` tells of logs that could not be read to their end, and of a damaged database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from terrazzo.cli.damage.checks import check_damage, check_sqlite
from terrazzo.cli.finding import Level
from terrazzo.config.sections import load_config
from terrazzo_broker.persistence.rocksdb_log import DAMAGED


def config_of(folder: Path):
    return load_config(None, {"TERRAZZO_DATA__DIR": str(folder)})


def test_a_folder_that_is_whole_has_no_findings(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    assert list(check_damage(config_of(tmp_path))) == []
    assert list(check_damage(config_of(tmp_path / "none"))) == []


def test_a_log_that_was_kept_is_told_until_somebody_removes_it(tmp_path: Path) -> None:
    for name in ("series", "broker", "."):
        (tmp_path / name / DAMAGED).mkdir(parents=True)
    found = list(check_damage(config_of(tmp_path)))
    assert [each.level for each in found] == [Level.FAIL] * 3
    assert str(tmp_path / "series" / DAMAGED) in found[0].found
    assert "restore from a backup" in found[1].advice
    assert f"the log of {tmp_path / 'terrazzo.db'} could not be read to its end" in found[2].found


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    file = tmp_path / "terrazzo.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE t (x PRIMARY KEY)")
        database.executemany("INSERT INTO t VALUES (?)", [("x" * 100 + str(n),) for n in range(1_000)])
    database.close()
    whole = file.read_bytes()
    file.write_bytes(whole[:8_192] + bytes(4_096) + whole[12_288:])
    (found,) = check_damage(config_of(tmp_path))
    assert (found.level, found.part) == (Level.FAIL, "database")
    file.write_bytes(b"x" * len(whole))
    (found,) = check_sqlite(file, most_s=10)
    assert "not a database" in found.found
    file.write_bytes(whole)
    assert list(check_sqlite(file, most_s=-1)) == [], "there was no time"
