"""Migrations on PostgreSQL: what a linter says of their locks, and that none waits for a table for ever."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import asyncpg
import pytest
from alembic import command
from alembic.config import Config

from terrazzo.database import migrations
from terrazzo.database.database import Database
from terrazzo.database.migration import DatabaseUnusable

NOT_ASKED = {
    "prefer-text-field": "lengths of columns are limits of the interface, too",
    "prefer-bigint-over-smallint": "flags and ranks of one digit",
    "prefer-identity": "BIGSERIAL, which SQLAlchemy makes; nobody but the platform writes",
    "require-statement-timeout": "an index of a long table takes as long as it takes; others wait for locks",
}
_INDEX = "require-concurrent-index-creation"
_STARTING = "nobody writes while the platform starts, and a migration is one transaction, CONCURRENTLY isn't"
_FIRST = "before the first release: there were no records"

KNOWN: dict[tuple[str, str], tuple[int, str]] = {
    ("0002", _INDEX): (10, _FIRST),
    ("0002", "adding-foreign-key-constraint"): (1, _FIRST),
    ("0002", "constraint-missing-not-valid"): (1, _FIRST),
    ("0002", "ban-drop-column"): (1, _FIRST),
    ("0002", "changing-column-type"): (1, "VARCHAR to TEXT rewrites nothing"),
    ("0013", "changing-column-type"): (1, "VARCHAR to TEXT rewrites nothing"),
    ("0011", _INDEX): (2, _STARTING),
    ("0023", _INDEX): (1, _STARTING),
    ("0024", _INDEX): (5, _STARTING),
    ("0029", _INDEX): (3, _STARTING),
    ("0034", _INDEX): (1, _STARTING),
    ("0034", "require-concurrent-index-deletion"): (1, _STARTING),
    ("0036", _INDEX): (5, _STARTING),
    ("0037", _INDEX): (2, _STARTING),
    ("0039", _INDEX): (2, _STARTING),
    ("0040", _INDEX): (2, _STARTING),
    ("0055", _INDEX): (2, _STARTING),
    ("0057", _INDEX): (4, _STARTING),
    ("0058", _INDEX): (1, _STARTING),
    ("0059", _INDEX): (1, _STARTING),
    ("0062", _INDEX): (4, _STARTING),
    ("0063", _INDEX): (2, _STARTING),
}
"""What the linter finds, by revision and rule: how often, and why it stays. A new revision is to have none."""


def statements() -> dict[str, str]:
    """The statements of each revision as PostgreSQL gets them, each as a file of its own transaction."""
    config = Config(output_buffer=(said := io.StringIO()))
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with contextlib.redirect_stdout(said):
        command.upgrade(config, "head", sql=True)
    begin, *parts = re.split(r"-- Running upgrade .*-> (\w+)\n", said.getvalue())
    begin = begin[: begin.index("CREATE TABLE alembic_version")]
    return {name: begin + text for name, text in zip(parts[::2], parts[1::2], strict=True)}


def test_what_the_linter_finds_is_explained(tmp_path: Path) -> None:
    found: Counter[tuple[str, str]] = Counter()
    made = statements()
    assert set(made) == set(migrations.REVISIONS)
    for name, text in made.items():
        (tmp_path / f"{name}.sql").write_text(text if "COMMIT;" in text else f"{text}\nCOMMIT;\n")
    program = Path(sys.executable).with_name("squawk")
    options = ["--pg-version", "15", "--reporter", "json", "--exclude", ",".join(NOT_ASKED)]
    done = subprocess.run(
        [program, *options, *sorted(tmp_path.glob("*.sql"))], capture_output=True, text=True, check=False
    )
    for each in json.loads(done.stdout):
        found[Path(each["file"]).stem, each["rule_name"]] += 1
    assert found == {key: count for key, (count, _) in KNOWN.items()}


def test_each_transaction_gives_up_soon() -> None:
    assert all("SET LOCAL lock_timeout = '5s'" in text for text in statements().values())


async def test_a_table_that_is_held_ends_the_migration_with_words(postgresql, tmp_path) -> None:
    url = postgresql.migrated_database()
    postgresql.psql("UPDATE alembic_version SET version_num = '0051'", url=url)
    holder = await asyncpg.connect(url)
    try:
        async with holder.transaction():
            await holder.execute("SELECT * FROM company")
            with pytest.raises(DatabaseUnusable, match="another program holds a table"):
                await Database.open(url, data_dir=tmp_path)
    finally:
        await holder.close()
