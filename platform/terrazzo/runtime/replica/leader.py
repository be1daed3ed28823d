"""``LeadersReads``: what the leader does for nodes that stand by and answer reads."""

from __future__ import annotations

import socket
from functools import partial

from terrazzo.api.kernel.replica.answering import LeadersAnswers
from terrazzo.api.kernel.replica.position import ReadPosition
from terrazzo.config.sections import Config
from terrazzo.database.changes import newest_change
from terrazzo.database.database import Database
from terrazzo.ports.stream import Questions
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.front_events import leader_reads
from terrazzo.replication.leading import ReplicatedStore
from terrazzo.runtime.lifetime import Lifetime

_AT_ONCE = 16  # questions of all replicas
_SPARE_BYTES = 4_096  # of a message, for its headers


_ANY = ("", "0.0.0.0", "::")  # nosec B104 - compared, not bound


def own_url(config: Config) -> str:
    """Where others reach this node's HTTP port, as far as is known."""
    if config.cluster.url:
        return config.cluster.url
    host = socket.gethostname() if config.http.host in _ANY else config.http.host
    shown = f"[{host}]" if ":" in host else host
    return f"http{'s' if config.http.tls_cert else ''}://{shown}:{config.http.port}"


class LeadersReads:
    """Says how far this leader is, and answers what replicas can't answer themselves.

    Args:
        node: its name.
    """

    def __init__(self, questions: Questions, node: str, store: ReplicatedStore) -> None:
        self._questions = questions
        self._node = node
        self._store = store

    def leading(self, database: Database) -> LeadersPosition:
        """The position of the leader with this database."""
        return LeadersPosition(self._store, database)

    def start(self, lifetime: Lifetime, answers: LeadersAnswers) -> None:
        """Answers questions from now on."""
        most_bytes = self._questions.most_bytes - _SPARE_BYTES
        answer = partial(answers.answer, most_bytes=most_bytes)
        name = leader_reads(self._node)
        serving = lifetime.tasks.spawn(
            "questions of replicas",
            lambda: self._questions.serve_each(name, answer, at_once=_AT_ONCE),
            OnFailure.RESTART,
        )
        lifetime.push_async_callback(serving.stop)


class LeadersPosition:
    """``LeadingNode``: the log as far as it is in the leader's store, and the changes of the registry."""

    def __init__(self, store: ReplicatedStore, database: Database) -> None:
        self._store = store
        self._database = database

    async def position(self) -> ReadPosition:
        """How far this node is; raises ``Unavailable`` where the database doesn't answer."""
        change = await newest_change(self._database)
        return ReadPosition(self._store.position.sequence, change)
