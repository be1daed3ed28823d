"""``Fence``: of several nodes that could write to one database, only the one with the newest epoch does, and none of
them to a database that went back to an older state."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from terrazzo.async_engine import AsyncConnection, AsyncEngine
from terrazzo.database.migration import DatabaseUnusable
from terrazzo.errors import Unavailable
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog

_failures = SparseLog(logging.getLogger(__name__))

_TABLES = (
    "CREATE TABLE IF NOT EXISTS terrazzo_leader (cluster text PRIMARY KEY, epoch bigint NOT NULL, node text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS terrazzo_position (cluster text PRIMARY KEY, reached bigint NOT NULL)",
)
_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE :named AND application_name <> :own"""
_CLAIM = """
INSERT INTO terrazzo_leader (cluster, epoch, node) VALUES (:cluster, :epoch, :node)
ON CONFLICT (cluster) DO UPDATE SET epoch = excluded.epoch, node = excluded.node
WHERE terrazzo_leader.epoch < excluded.epoch"""
_NEWEST = sa.text("SELECT epoch FROM terrazzo_leader WHERE cluster = :cluster")
# the position is a row of its own: moving it on must not wait for a long transaction, and others for that
_CHECK = sa.text("""
SELECT l.epoch, p.reached FROM terrazzo_leader l LEFT JOIN terrazzo_position p ON p.cluster = l.cluster
WHERE l.cluster = :cluster FOR SHARE OF l""")
_REACHED = sa.text("SELECT reached FROM terrazzo_position WHERE cluster = :cluster")
_MOVE = sa.text("""
INSERT INTO terrazzo_position (cluster, reached) VALUES (:cluster, 1)
ON CONFLICT (cluster) DO UPDATE SET reached = terrazzo_position.reached + 1 RETURNING reached""")


class Fenced(Unavailable):
    """Another node has a newer epoch: this one may not write any more."""


class DatabasePosition:
    """How far a cluster's database is: a number in it that rises, and is remembered elsewhere once it is committed. One
    that has a smaller number than that lacks what was committed since.

    Args:
        reached: what is remembered; 0: nothing is.
        keep: has a higher number remembered; False: it isn't yet.
    """

    def __init__(self, reached: int, keep: Callable[[int], Awaitable[bool]]) -> None:
        self.reached = reached
        self.keep = keep
        self.is_kept = True
        self.commits = 0  # of this process
        self.covered = 0  # of these, how many were there before the number was raised


def _lack(found: int, reached: int) -> str:
    """Why a database with this number is not used, which had the other one; empty: it may be."""
    if found >= reached:
        return ""
    return (
        f"database.url: the database went back to an older state, or is another one: it is at position {found:,} and"
        f" was at {reached:,}; docs/scaling.md says what to do"
    )


class Fence(msgspec.Struct, frozen=True):
    """A node's right to write to PostgreSQL.

    Each writing transaction looks at the epoch in the database and holds it until its end, so that it is committed
    before another node has a newer one, or not at all. The table is made by a cluster's first leader; it is no part of
    the schema, as one process has none.

    Attributes:
        on_lost: is called, with why, when another node has a newer epoch, or the database went back.
        position: how far the database is known to be.
    """

    cluster: str
    node: str
    epoch: int
    on_lost: Callable[[str], None]
    position: DatabasePosition

    @property
    def application_name(self) -> str:
        """What the connections are named in the server."""
        return f"terrazzo {self.cluster} {self.epoch}"

    async def claim(self, engine: AsyncEngine) -> None:
        """Makes this epoch the newest, after which no transaction of an earlier one is committed.

        Those that are open are ended, as their process may be stopped and hold what it has locked for ever.

        Raises:
            Fenced: there is a newer one already.
            DatabaseUnusable: it is not as far as it was.
        """
        async with engine.begin() as connection:
            for table in _TABLES:
                await connection.execute(sa.text(table))
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
            found = (await connection.execute(_REACHED, {"cluster": self.cluster})).scalar_one_or_none() or 0
            if lack := _lack(found, self.position.reached):
                raise DatabaseUnusable(lack)
        self.position.reached = found

    async def check(self, connection: AsyncConnection) -> None:
        """Holds the epoch for a transaction.

        Raises:
            Fenced: it is another's, or the database is not as far as it was.
        """
        known = self.position.reached  # before it is asked: it may have risen by the time that the answer is read
        found = (await connection.execute(_CHECK, {"cluster": self.cluster})).one_or_none()
        epoch, reached = (None, None) if found is None else found
        why = _lack(reached or 0, known)
        if epoch != self.epoch and not why:
            why = f"database: another node leads the cluster {self.cluster}: epoch {epoch}, this node has {self.epoch}"
        if why:
            self._lose(why)

    async def _look(self, connection: AsyncConnection) -> None:
        """As ``check``, of the position alone; holds nothing, so that an idle cluster has nothing synced."""
        known = self.position.reached
        found = (await connection.execute(_REACHED, {"cluster": self.cluster})).scalar_one_or_none() or 0
        if why := _lack(found, known):
            self._lose(why)

    def _lose(self, why: str) -> NoReturn:
        self.on_lost(why)
        raise Fenced(why)

    def on_committed(self) -> None:
        """A transaction was committed."""
        self.position.commits += 1

    async def move_on(self, engine: AsyncEngine) -> None:
        """Raises the database's position where something was committed since, and has it remembered; looks at it in any
        case. Called once a second; what fails is tried again then."""
        position, commits, reached = self.position, self.position.commits, 0
        try:
            async with engine.begin() as connection:
                if commits == position.covered:
                    await self._look(connection)
                else:
                    await self.check(connection)
                    reached = (await connection.execute(_MOVE, {"cluster": self.cluster})).scalar_one()
        except Fenced:
            return  # said already
        except (SQLAlchemyError, OSError) as error:
            _failures.warning("how far the database is, is not known: %s", error)
            return
        if reached:
            position.reached, position.covered, position.is_kept = reached, commits, False
        if not position.is_kept:
            position.is_kept = await position.keep(position.reached)
