"""``LeadersAnswers``: the leader answers reads that replicas are asked, as it answers its own clients."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from terrazzo.api.kernel.components import Components
from terrazzo.api.kernel.dispatch import Gateway
from terrazzo.api.kernel.envelope import FAILURE, UNREAD, Answer, Failure
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.replica.placement import OF_LEADER
from terrazzo.api.kernel.replica.seams import LeaderAnswer, LeaderQuestion
from terrazzo.reasons import reason_of, say


class LeadersAnswers:
    """Answers one question after the other; whoever asks shows the token of whoever asked there.

    Args:
        paths: of the component interfaces.
    """

    def __init__(self, gateway: Gateway, components: Components, paths: Iterable[Operation]) -> None:
        self._gateway = gateway
        self._components = components
        self._paths = {(path.method, path.path): path for path in paths if path.name in OF_LEADER}

    async def answer(self, body: bytes, most_bytes: int) -> bytes:
        """The bytes that answer a question's.

        Args:
            most_bytes: of an answer; a larger one is refused.
        """
        try:
            answer = await self._answer(msgspec.msgpack.decode(body, type=LeaderQuestion))
        except msgspec.MsgspecError:
            answer = _refused(say("replica_question_unreadable"))
        encoded = _encoded(answer)
        if len(encoded) > most_bytes:
            encoded = _encoded(_refused(say("replica_answer_too_large", most=most_bytes)))
        return encoded

    async def _answer(self, asked: LeaderQuestion) -> Answer:
        caller = Caller(asked.address, asked.token or None)
        if asked.method:
            path = self._paths.get((asked.method, asked.name))
            if path is not None:
                return await self._components.answer(path, asked.fields, caller, body=asked.body)
            return _refused(say("replica_question_unreadable"))
        found = self._gateway.read(asked.body, asked.name)
        if isinstance(found, Answer):
            return found
        if found.operation.name in OF_LEADER:
            found.head.authorization = msgspec.UNSET  # the token is the one that the replica has checked
            return await self._gateway.perform(found, caller)
        return _refused(say("replica_question_unreadable"))


def _refused(reason: str) -> Answer:
    return UNREAD.failure(Failure(FAILURE, reason, 503, reason=reason_of(reason)))


def _encoded(answer: Answer) -> bytes:
    return msgspec.msgpack.encode(LeaderAnswer(answer.body, answer.status, answer.retry_after_s))
