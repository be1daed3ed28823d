"""``ReadsNode``: a node that stands by, as its APIs see it: how fresh it is, who leads, what the leader says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from terrazzo.api.kernel.replica.position import ReadPosition
from terrazzo.api.kernel.replica.seams import LeaderAnswer, LeaderQuestion
from terrazzo.config.sections import Config
from terrazzo.database.changes import ChangesLost, ChangeWatcher
from terrazzo.errors import Unavailable
from terrazzo.ports.stream import LogUnavailable, Questions
from terrazzo.reasons import say
from terrazzo.replication.follower import Follower
from terrazzo.replication.freshness import Freshness
from terrazzo.replication.front_events import leader_reads
from terrazzo.replication.lease import LeaseRecord

_MOST_ASKED = 64  # questions to the leader at a time
_MORE_S = 2.0  # beside the time that the leader gives a read
_NEVER = -1.0
_POLL_S = 0.05  # between looks for a change that is not there yet


class ReadsStats(msgspec.Struct):
    """Counters of a replica; ``age_s``: all that was acknowledged so long ago is there, -1: not known."""

    serves: int = 0
    age_s: float = _NEVER
    asked: int = 0  # questions that the leader was asked
    unanswered: int = 0
    waited: int = 0  # reads that had to wait for their position
    behind: int = 0  # reads that waited in vain


class ReadsNode:
    """``ReplicaNode`` for the APIs. One for the process; what a start of the APIs opens is told to ``follow``.

    Args:
        leader: the lease as it was seen last; None: nobody leads.
    """

    def __init__(
        self,
        config: Config,
        follower: Follower,
        freshness: Freshness,
        questions: Questions,
        leader: Callable[[], LeaseRecord | None],
    ) -> None:
        self.stats = ReadsStats()
        self._config = config
        self._follower = follower
        self._freshness = freshness
        self._questions = questions
        self._leader = leader
        self._asking = 0
        self._changes: ChangeWatcher | None = None
        self._polling = asyncio.Lock()

    async def follow(self, changes: ChangeWatcher) -> None:
        """Hears of the registry's changes, one after the other."""
        async with self._polling:
            self._changes = changes
            await changes.poll()

    def age_s(self) -> float | None:
        """Everything that was acknowledged so long ago is in the store; None: not known."""
        now_s = asyncio.get_running_loop().time()
        return self._freshness.age_s(now_s, self._follower.position.sequence)

    def lag(self) -> int:
        """Frames of the log that the store doesn't have, as far as is known."""
        return max(0, self._freshness.last - self._follower.position.sequence)

    def figures(self) -> ReadsStats:
        """The counters, and the age now."""
        age_s = self.age_s()
        self.stats.age_s = _NEVER if age_s is None else age_s
        return self.stats

    # As ``ReplicaNode`` says

    def freshness(self) -> str:
        age_s = self.age_s()
        age = "" if age_s is None else f", age={age_s:.1f}"
        sequence = self._follower.position.sequence
        return f'node="{self._config.cluster.node}", sequence={sequence}, behind={self.lag()}{age}'

    def leader(self) -> str:
        record = self._leader()
        if record is None:
            return ""
        return f"{record.node} ({record.url})" if record.url else record.node

    async def wait_for(self, position: ReadPosition) -> None:
        wait_s = self._config.cluster.reads_wait_s
        if self._has(position):
            return
        self.stats.waited += 1
        try:
            async with asyncio.timeout(wait_s):
                await self._follower.reach(position.sequence)
                await self._hear_of(position.change)
        except (TimeoutError, ChangesLost):
            self.stats.behind += 1
            has = self._position()
            raise Unavailable(say("replica_behind", has=str(has), wanted=str(position), seconds=wait_s)) from None

    async def ask_leader(self, question: LeaderQuestion) -> LeaderAnswer:
        record = self._leader()
        if record is None:
            raise Unavailable(say("replica_without_leader"))
        body, most_bytes = msgspec.msgpack.encode(question), self._questions.most_bytes
        if len(body) > most_bytes:
            raise Unavailable(say("replica_question_too_large", most=most_bytes, leader=self.leader()))
        if self._asking >= _MOST_ASKED:
            raise Unavailable(say("replica_asks_much", most=_MOST_ASKED))
        self._asking += 1
        self.stats.asked += 1
        timeout_s = self._config.limits.reading_s + _MORE_S
        try:
            answer = await self._questions.ask(leader_reads(record.node), body, timeout_s=timeout_s)
            return msgspec.msgpack.decode(answer, type=LeaderAnswer)
        except (LogUnavailable, msgspec.MsgspecError):
            self.stats.unanswered += 1
            raise Unavailable(say("replica_leader_silent", leader=self.leader())) from None
        finally:
            self._asking -= 1

    def _position(self) -> ReadPosition:
        return ReadPosition(self._follower.position.sequence, 0 if self._changes is None else self._changes.seen)

    def _has(self, position: ReadPosition) -> bool:
        mine = self._position()
        return mine.sequence >= position.sequence and mine.change >= position.change

    async def _hear_of(self, change: int) -> None:
        """Hears of the changes up to this one now, which would come with the next poll."""
        while self._position().change < change:
            before = self._position().change
            async with self._polling:
                if self._changes is not None and self._changes.seen < change:
                    await self._changes.poll()
            if self._position().change == before:
                await asyncio.sleep(_POLL_S)
