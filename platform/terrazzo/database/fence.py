"""``Fence``: of several nodes that could write to one database, only the one with the newest epoch does."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection, AsyncEngine
from terrazzo.errors import Unavailable
from terrazzo.reasons import say

_TABLE = """
CREATE TABLE IF NOT EXISTS terrazzo_leader (
  cluster text PRIMARY KEY, epoch bigint NOT NULL, node text NOT NULL
)"""
_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE :named AND application_name <> :own"""
_CLAIM = """
INSERT INTO terrazzo_leader (cluster, epoch, node) VALUES (:cluster, :epoch, :node)
ON CONFLICT (cluster) DO UPDATE SET epoch = excluded.epoch, node = excluded.node
WHERE terrazzo_leader.epoch < excluded.epoch"""
_NEWEST = sa.text("SELECT epoch FROM terrazzo_leader WHERE cluster = :cluster")
_CHECK = sa.text("SELECT epoch FROM terrazzo_leader WHERE cluster = :cluster FOR SHARE")


class Fenced(Unavailable):
    """Another node has a newer epoch: this one may not write any more."""


class Fence(msgspec.Struct, frozen=True):
    """A node's right to write to PostgreSQL.

    Each writing transaction looks at the epoch in the database and holds it until its end, so that it is committed
    before another node has a newer one, or not at all. The table is made by a cluster's first leader; it is no part of
    the schema, as one process has none.

    Attributes:
        on_lost: is called, with why, when another node has a newer epoch.
    """

    cluster: str
    node: str
    epoch: int
    on_lost: Callable[[str], None]

    @property
    def application_name(self) -> str:
        """What the connections are named in the server."""
        return f"terrazzo {self.cluster} {self.epoch}"

    async def claim(self, engine: AsyncEngine) -> None:
        """Makes this epoch the newest, after which no transaction of an earlier one is committed.

        Those that are open are ended, as their process may be stopped and hold what it has locked for ever.

        Raises:
            Fenced: there is a newer one already.
        """
        async with engine.begin() as connection:
            await connection.execute(sa.text(_TABLE))
        given = {"cluster": self.cluster, "epoch": self.epoch, "node": self.node}
        async with engine.begin() as connection:
            newest = (await connection.execute(_NEWEST, {"cluster": self.cluster})).scalar_one_or_none()
            if newest is not None and newest >= self.epoch:
                raise Fenced(say("database_epoch", cluster=self.cluster, newest=newest, epoch=self.epoch))
            names = {"named": f"terrazzo {self.cluster} %", "own": self.application_name}
            await connection.execute(sa.text(_END_OTHERS), names)
            claimed = await connection.execute(sa.text(_CLAIM), given)
            if not claimed.rowcount:
                raise Fenced(say("database_other_node_faster", cluster=self.cluster))

    async def check(self, connection: AsyncConnection) -> None:
        """Holds the epoch for a transaction.

        Raises:
            Fenced: it is another's.
        """
        found = (await connection.execute(_CHECK, {"cluster": self.cluster})).scalar_one_or_none()
        if found != self.epoch:
            why = f"database: another node leads the cluster {self.cluster}: epoch {found}, this node has {self.epoch}"
            self.on_lost(why)
            raise Fenced(why)
