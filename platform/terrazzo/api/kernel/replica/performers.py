"""``Performer``, ``Gateway`` and ``Components`` of several nodes: reads on a replica, positions of changes.

One process, and a cluster whose replicas answer no reads, have none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from terrazzo.api.kernel.column_reply import ColumnForm
from terrazzo.api.kernel.components import Components
from terrazzo.api.kernel.dispatch import Gateway, GatewayRequest, Performer, bearer_token
from terrazzo.api.kernel.envelope import Answer, GatewayReply, Reply, explain
from terrazzo.api.kernel.identity import identify
from terrazzo.api.kernel.operation import Caller, Operation, OperationTable
from terrazzo.api.kernel.replica.placement import OF_LEADER, OWN, changes_something
from terrazzo.api.kernel.replica.position import FRESHNESS, POSITION, ReadPosition
from terrazzo.api.kernel.replica.seams import LeaderQuestion, LeadingNode, ReplicaNode
from terrazzo.api.kernel.services import Services
from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.kernel.validation import Validator
from terrazzo.errors import BadParameter, OperationError, Unavailable
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say


class Kernel(NamedTuple):
    """What every request goes through."""

    performer: Performer
    validator: Validator
    gateway: Gateway
    components: Components


def new_kernel(services: Services, traffic: Traffic, table: OperationTable) -> Kernel:
    """That of one process, of a replica, or of the leader of some."""
    replica, leading = services.cluster.replica, services.cluster.leading
    validator = Validator(services.zone, most_values=services.limits.field_values)
    if replica is not None:
        replicas = ReplicasPerformer(services, traffic, replica)
        gateway = ReplicasGateway(table, replicas, validator, traffic)
        return Kernel(replicas, validator, gateway, ReplicasComponents(replicas, validator))
    performer = Performer(services, traffic) if leading is None else LeadersPerformer(services, traffic, leading)
    return Kernel(performer, validator, Gateway(table, performer, validator, traffic), Components(performer, validator))


class LeadersPerformer(Performer):
    """Says after each change how far the leader is, for reads elsewhere that have to have it."""

    def __init__(self, services: Services, traffic: Traffic, node: LeadingNode) -> None:
        super().__init__(services, traffic)
        self._node = node

    async def perform(self, operation: Operation, caller: Caller, decode: Callable[[], Any], reply: Reply) -> Answer:
        answer = await super().perform(operation, caller, decode, reply)
        if not changes_something(operation):
            return answer
        try:
            position = await self._node.position()
        except OperationError:  # what was changed is changed: the answer says so, and not where
            return answer
        return msgspec.structs.replace(answer, headers=((POSITION, str(position)),))


class ReplicasPerformer(Performer):
    """Answers reads, when this node has what they ask for, and refuses all else."""

    def __init__(self, services: Services, traffic: Traffic, node: ReplicaNode) -> None:
        super().__init__(services, traffic)
        self._node = node

    async def perform(self, operation: Operation, caller: Caller, decode: Callable[[], Any], reply: Reply) -> Answer:
        began = perf_counter()
        try:
            await self._check(operation, caller)
        except OperationError as error:
            answer = self._refused(operation, error, reply, began)
        else:
            answer = await super().perform(operation, caller, decode, reply)
        return self.marked(answer)

    async def ask_leader(
        self, operation: Operation, caller: Caller, question: Callable[[], LeaderQuestion], reply: Reply
    ) -> Answer:
        """The leader's answer, to whoever has a good token, or where none is needed."""
        began = perf_counter()
        try:
            if operation.permission is not None:
                identify(self._tokens, caller)
            told = await self._node.ask_leader(question())
        except OperationError as error:
            return self.marked(self._refused(operation, error, reply, began))
        self._traffic.count(operation.name, told.status, perf_counter() - began)
        return self.marked(Answer(told.body, told.status, told.retry_after_s))

    async def _check(self, operation: Operation, caller: Caller) -> None:
        """Whether this node answers it now; what is no good with its token is said as everywhere, by the performer."""
        if operation.permission is not None:
            identify(self._tokens, caller)
        if operation.name not in OWN:
            raise self._elsewhere(operation)
        if caller.position:
            try:
                wanted = ReadPosition.parse(caller.position)
            except ValueError as error:
                raise BadParameter(POSITION, error.args[0]) from None
            await self._node.wait_for(wanted)

    def _elsewhere(self, operation: Operation) -> Unavailable:
        """Where it is answered; whoever shows no token is not told of addresses."""
        leader = self._node.leader()
        if not leader:
            return Unavailable(say("replica_without_leader"))
        if operation.permission is None:
            return Unavailable(say("replica_only_reads"))
        return Unavailable(say("replica_names_leader", leader=leader))

    def _refused(self, operation: Operation, error: OperationError, reply: Reply, began: float) -> Answer:
        failure = explain(error, reply)
        self._traffic.count(operation.name, failure.code, perf_counter() - began)
        return reply.failure(failure)

    def marked(self, answer: Answer) -> Answer:
        """The answer with the header that says how far behind this node may be."""
        return msgspec.structs.replace(answer, headers=((FRESHNESS, self._node.freshness()),))


class ReplicasGateway(Gateway):
    """The gateway of a replica, which has the leader answer some reads."""

    def __init__(
        self, table: OperationTable, performer: ReplicasPerformer, validator: Validator, traffic: Traffic
    ) -> None:
        super().__init__(table, performer, validator, traffic)
        self._replicas = performer

    def read(self, message: bytes | str, action: str = "") -> GatewayRequest | Answer:
        """What a message asks for, or the answer to one that asks for nothing."""
        found = super().read(message, action)
        return self._replicas.marked(found) if isinstance(found, Answer) else found

    def perform(
        self, asked: GatewayRequest, caller: Caller, columns: ColumnForm | None = None
    ) -> Coroutine[Any, Any, Answer]:
        """Does what was asked, or has it done, when it is awaited."""
        operation, head = asked.operation, asked.head
        if operation.name not in OF_LEADER:
            return super().perform(asked, caller, columns)
        if head.authorization is not msgspec.UNSET:
            caller.token = bearer_token(head.authorization)

        def question() -> LeaderQuestion:
            return LeaderQuestion(str(head.action), asked.body.encode(), caller.address, caller.token or "")

        return self._replicas.ask_leader(operation, caller, question, GatewayReply(head.action, head.actionid))


class ReplicasComponents(Components):
    """The component interfaces of a replica."""

    def __init__(self, performer: ReplicasPerformer, validator: Validator) -> None:
        super().__init__(performer, validator)
        self._replicas = performer

    async def answer(
        self,
        path: Operation,
        fields: Sequence[tuple[str, str]],
        caller: Caller,
        *,
        body: bytes = b"",
        files: tuple[Attachment, ...] = (),
    ) -> Answer:
        """Answers one request, or has it answered."""
        if path.name not in OF_LEADER:
            return await super().answer(path, fields, caller, body=body, files=files)

        def question() -> LeaderQuestion:
            return LeaderQuestion(path.path, body, caller.address, caller.token or "", path.method, tuple(fields))

        return await self._replicas.ask_leader(path, caller, question, path.reply(path.shape))
