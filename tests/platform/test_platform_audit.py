"""The audit log of a running platform: over a restart, for as long as configured, and what the command line does."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from loaded_process import run_loaded_text
from running import PASSWORD, Platform, wait_for


def entries(platform: Platform, **filters: Any) -> list[dict[str, Any]]:
    return list(platform.call("get_audit_list", **filters)["data"])


def test_what_is_old_goes_and_the_rest_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Platform(data, env={"TERRAZZO_AUDIT__RETENTION_DAYS": "2"}) as platform:
        platform.login().add_config("old")
        platform.add_config("recent")
        command = ["-m", "terrazzo", "user", "add", "bo", "--password-stdin", "--data", str(data)]
        run_loaded_text(command, env=os.environ, given=f"{PASSWORD}\n").check_returncode()
        [added] = entries(platform, uid="bo")
        assert (added["action"], added["username"]) == ("create", "system")
        assert added["address"].startswith("command line")
        assert PASSWORD not in str(added)
        made = [each["after"]["name"] for each in entries(platform, entity="configuration")]
        assert made == ["recent", "old"]
        platform.stop()
        with sqlite3.connect(data / "terrazzo.db") as database:
            database.execute("UPDATE audit SET time = time - 3 * 86400000000 WHERE after LIKE '%\"old\"%'")
        with platform.again() as restarted:
            restarted.login()
            wait_for(lambda: len(entries(restarted, entity="configuration")) == 1, "the old entry is forgotten")
            assert entries(restarted, entity="configuration")[0]["after"]["name"] == "recent"
            assert [each["uid"] for each in entries(restarted, uid="bo")] == ["bo"]
