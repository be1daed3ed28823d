"""``terrazzo migrate``: there and back again everything is as it was; what can't be moved is refused in words."""

from __future__ import annotations

import fcntl
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from migration_stand import environment, in_store, migrate, new_source, rows_of

from terrazzo.backup.migration.marker import MIGRATING

TO = "TERRAZZO_TO_"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_source(tmp_path_factory.mktemp("source") / "data")


def test_there_and_back(source, tmp_path, postgresql, influxd):
    servers = {"database": postgresql.database(), "influx": (influxd.url, "there")}
    there = migrate(source, tmp_path / "there", "--json", **environment(TO, **servers))
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert told["equal"]
    assert told["differences"] == []
    assert told["unreadable"] == 0
    assert told["tables"]["change"]["rows"] == 290
    assert (told["series"], told["records"]) == (12, 12 * 40 + 2)
    assert told["notes"] == 41
    assert not (tmp_path / "there" / MIGRATING).exists()
    assert postgresql.psql("SELECT count(*) FROM change", url=servers["database"]) == "290"
    assert postgresql.psql("SELECT to_regclass('terrazzo_migration')", url=servers["database"]) == ""

    back = migrate(tmp_path / "there", tmp_path / "back", **environment(**servers))
    assert back.returncode == 0, back.stderr
    assert "all is equal" in back.stdout
    assert rows_of(tmp_path / "back") == rows_of(source)
    assert in_store(tmp_path / "back", {}) == in_store(source, {})
    for name in ("secrets-key", "files/1/upload"):
        assert (tmp_path / "back" / name).read_bytes() == (source / name).read_bytes()


def test_the_next_id_is_the_next(source, tmp_path, postgresql):
    url = postgresql.database()
    assert migrate(source, tmp_path / "there", **environment(TO, database=url)).returncode == 0
    insert = "INSERT INTO change (entity, record_id, uid, changed_us) VALUES ('e', 1, 'u', 1) RETURNING id"
    assert postgresql.psql(insert, url=url) == "305"
    insert = "INSERT INTO handover (company_id, user_id, username, since, created, notes, found)"
    assert postgresql.psql(f"{insert} VALUES (1, 1, '', 1, 1, '', '') RETURNING id", url=url) == "1"


def test_the_store_alone(source, tmp_path, influxd):
    influx = influxd.url, "alone"
    done = migrate(source, tmp_path / "there", **environment(TO, influx=influx))
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "there") == rows_of(source)
    assert in_store(tmp_path / "there", environment(influx=influx)) == in_store(source, {})


def test_the_registry_alone(source, tmp_path, postgresql):
    url = postgresql.database()
    done = migrate(source, tmp_path / "there", **environment(TO, database=url))
    assert done.returncode == 0, done.stderr
    assert in_store(tmp_path / "there", {}) == in_store(source, {})


def test_a_difference_is_found(source, tmp_path, postgresql, influxd):
    servers = {"database": postgresql.database(), "influx": (influxd.url, "planted")}
    assert migrate(source, tmp_path / "there", **environment(TO, **servers)).returncode == 0
    again = migrate(source, tmp_path / "there", "--verify", **environment(TO, **servers))
    assert (again.returncode, again.stderr.count("differ")) == (0, 0), again.stderr
    assert "are equal" in again.stdout

    url = servers["database"]
    postgresql.psql("UPDATE change SET origin = '' WHERE id = 1", url=url)
    postgresql.psql("DELETE FROM presence_day WHERE day = 20001", url=url)
    postgresql.psql("SELECT setval(pg_get_serial_sequence('audit', 'id'), 77)", url=url)
    influxd.query('DELETE FROM "mosaic" WHERE "object" = \'17\' AND time = 0', "planted")
    influxd.write("planted", 'reject,terminal=T1 body="{}",arrival=1i 3000')
    (tmp_path / "there" / "secrets-key").write_text("cd" * 32 + "\n")
    found = migrate(source, tmp_path / "there", "--verify", "--json", **environment(TO, **servers))
    assert found.returncode == 1
    told = json.loads(found.stdout)
    assert not told["equal"]
    for line in (
        "table change: 290 rows, other ones than in the source",
        "table presence_day: 1 rows, the source has 2",
        "table audit: ids go on from 77, not from ",
        "series m/17: 41 records, the source has 42",
        "series x/T1: 41 records, the source has 40",
        "file secrets-key: differs",
    ):
        assert any(each.startswith(line) for each in told["differences"]), (line, told["differences"])
        assert line in found.stderr


def test_a_target_of_somebody_else_is_refused(source, tmp_path, postgresql, influxd):
    url = postgresql.migrated_database()
    refused = migrate(source, tmp_path / "a", **environment(TO, database=url))
    assert refused.returncode == 2
    assert "has tables already" in refused.stderr
    assert "name an empty one" in refused.stderr
    assert migrate(source, tmp_path / "a", **environment(TO, database=postgresql.database())).returncode == 0

    influxd.query('CREATE DATABASE "others"')
    influxd.write("others", 'grid,terminal=T9,channel=r body="{}",arrival=1i 3000')
    refused = migrate(source, tmp_path / "b", **environment(TO, influx=(influxd.url, "others")))
    assert refused.returncode == 2
    assert "series already (g/T9/r)" in refused.stderr

    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "file").touch()
    refused = migrate(source, tmp_path / "c", **environment(TO, database=postgresql.database()))
    assert refused.returncode == 2
    assert "is not empty" in refused.stderr


def test_what_makes_no_sense_is_refused(source, tmp_path):
    refused = migrate(source, tmp_path / "there")
    assert refused.returncode == 2
    assert "terrazzo backup and restore" in refused.stderr
    refused = migrate(source, source / "inside", **environment(TO, influx=("http://127.0.0.1:1", "x")))
    assert refused.returncode == 2
    assert "one in the other" in refused.stderr
    refused = migrate(tmp_path / "nothing", tmp_path / "there", **environment(TO, influx=("http://127.0.0.1:1", "x")))
    assert refused.returncode == 2
    assert "there is no folder" in refused.stderr
    refused = migrate(source, tmp_path / "there", "--verify", **environment(TO, influx=("http://127.0.0.1:1", "x")))
    assert refused.returncode == 2
    assert "no migration that ended" in refused.stderr


def test_a_server_that_is_away(source, tmp_path):
    refused = migrate(source, tmp_path / "there", **environment(TO, influx=("http://127.0.0.1:1", "x")))
    assert refused.returncode == 2
    assert "the same command goes on" in refused.stderr
    refused = migrate(source, tmp_path / "other", **environment(TO, database="postgresql://x@127.0.0.1:1/x"))
    assert refused.returncode == 2
    assert "database.url" in refused.stderr


def test_the_target_needs_the_key(source, tmp_path, postgresql):
    url = postgresql.database()
    key = {"TERRAZZO_TO_DATABASE__SECRETS_KEY": "cd" * 32}
    refused = migrate(source, tmp_path / "there", **environment(TO, database=url), **key)
    assert refused.returncode == 2
    assert "database.secrets_key" in refused.stderr
    key = {"TERRAZZO_DATABASE__SECRETS_KEY": "cd" * 32}
    refused = migrate(source, tmp_path / "there", **environment(TO, database=url), **key)
    assert refused.returncode == 2
    assert "database.secrets_key" in refused.stderr


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE change SET uid = 'a' || char(0) WHERE id = 5", "change 5: uid: contains a NUL character"),
        ("UPDATE change SET changed_us = 1.5 WHERE id = 5", "change 5: changed_us: expected an integer, got float"),
        ("UPDATE change SET origin = x'00' WHERE id = 5", "change 5: origin: expected text, got bytes"),
        ("UPDATE presence_day SET log = 'text'", "presence_day 7, 20000: log: expected bytes, got str"),
        ("UPDATE change SET entity = replace(hex(zeroblob(40)), '0', 'x') WHERE id = 5", "entity: at most 32"),
    ],
)
def test_what_postgresql_does_not_take_is_named(tmp_path, postgresql, statement, words):
    data = new_source(tmp_path / "data", series=1, records=1)
    with closing(sqlite3.connect(data / "terrazzo.db")) as database:
        database.execute(statement)
        database.commit()
    refused = migrate(data, tmp_path / "there", **environment(TO, database=postgresql.database()))
    assert refused.returncode == 2
    assert words in refused.stderr


def test_a_source_that_is_open_is_refused(source, tmp_path, postgresql):
    (source / "broker").mkdir()
    (source / "broker" / "CURRENT").touch()
    with (source / "broker" / "LOCK").open("ab") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        refused = migrate(source, tmp_path / "there", **environment(TO, database=postgresql.database()))
    assert refused.returncode == 2
    assert "is in use by a process" in refused.stderr


def test_records_that_the_target_will_never_take(source, tmp_path, influxd):
    influxd.query('CREATE DATABASE "short" WITH DURATION 1h REPLICATION 1 NAME "hour"')
    given = environment(TO, influx=(influxd.url, "short"))
    for _ in range(2):  # what was refused is not forgotten
        refused = migrate(source, tmp_path / "there", **given)
        assert refused.returncode == 2
        assert "give it a longer retention" in refused.stderr
    assert (tmp_path / "there" / MIGRATING).exists()


def test_nobody_starts_on_half_a_migration(source, tmp_path):
    from terrazzo.cli.start_checks import check_data_dir

    refused = migrate(source, tmp_path / "there", **environment(TO, influx=("http://127.0.0.1:1", "x")))
    assert refused.returncode == 2
    assert [str(each) for each in check_data_dir(tmp_path / "there") if "did not end" in str(each)]
    other = migrate(source, tmp_path / "there", **environment(TO, influx=("http://127.0.0.1:1", "y")))
    assert other.returncode == 2
    assert "half-done migration with" in other.stderr
