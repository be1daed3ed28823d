"""A node whose PostgreSQL comes back in an older state, as after a failover: real processes."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from test_stream_fence import put_in_its_place
from test_stream_fronts import cluster
from test_stream_takeover import NodeProcess, ask_cluster

from loaded_process import run_loaded_text
from nats_servers import NatsServer
from postgresql_server import PostgreSQL
from running import wait_for
from terrazzo.client import ClientError


def remembered(node: NodeProcess) -> int:
    """The position that is remembered of the database."""
    return int((json.loads(ask_cluster(node, "status", "--json"))["database"] or {"reached": 0})["reached"])


@pytest.mark.timeout(400)
def test_a_database_that_went_back_is_taken_when_an_operator_says_so(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    with cluster(tmp_path, postgresql, nats_server, "database-back") as found:
        node = found.node("a").wait_leading()
        node.login()
        config = node.add_config()
        node.add_terminal("db-1", config)
        wait_for(lambda: remembered(node), "a position is remembered", timeout_s=60)
        assert "'a' is there and leads: end it first" in ask_cluster(node, "accept-database")
        assert node.stop() == 0
        before = remembered(node)
        older = postgresql.database(template=found.database.rpartition("/")[2])

        node = found.node("a").wait_leading()
        node.login()
        node.add_terminal("db-2", config)
        wait_for(lambda: remembered(node) > before, "it rises with what is committed", timeout_s=60)
        put_in_its_place(postgresql, found.database, older)
        with contextlib.suppress(ClientError):
            node.add_terminal("db-3", config)
        assert node.process.wait(60) == 1
        node.client.close()
        said = "the database went back to an older state, or is another one: it is at position"
        assert said in node.log.read_text()

        refused = run_loaded_text(
            ["-m", "terrazzo", "serve", "--data", str(node.data)], env={**os.environ, **node.environment}
        )
        assert refused.returncode == 2
        assert said in refused.stdout + refused.stderr
        assert "The database was at position" in ask_cluster(node, "accept-database")
        assert "Nothing was remembered" in ask_cluster(node, "accept-database")
        node = found.node("a").wait_leading()
        node.login()
        uids = [each["uid"] for each in node.call("get_terminal_list")]
        assert uids == ["db-1"]
        node.add_terminal("db-4", config)
        wait_for(lambda: remembered(node), "it is remembered anew", timeout_s=60)
