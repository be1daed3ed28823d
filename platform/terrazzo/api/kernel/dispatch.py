"""From bytes to an answer, whatever they came on: HTTP, WebSocket and TCP share this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from time import perf_counter
from types import GeneratorType
from typing import Any, NamedTuple, cast

import msgspec

from terrazzo.api.kernel.column_reply import ColumnForm, ColumnReply, Columns
from terrazzo.api.kernel.envelope import (
    BAD_PARAMETER,
    EMPTY_TEXT,
    SUCCESS,
    Answer,
    Failure,
    GatewayReply,
    Published,
    Reply,
    completed,
    explain,
)
from terrazzo.api.kernel.fields import kind
from terrazzo.api.kernel.identity import identify
from terrazzo.api.kernel.long_answers.lists import (
    COUNTED_BYTES,
    AnswerTooLarge,
    UnreadAnswers,
    encode_long,
    is_few,
    is_long,
    long_parts,
)
from terrazzo.api.kernel.long_requests.values import SHORT, takes_long, turn_by_turn
from terrazzo.api.kernel.operation import Caller, CookieSession, Operation, OperationTable, Subscriber
from terrazzo.api.kernel.paging import CountedList
from terrazzo.api.kernel.schema_faults import schema_fault
from terrazzo.api.kernel.services import Services, TokenService
from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.kernel.validation import Validator
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, NotAuthenticated, NotPermitted, Unavailable
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.tracing import Span, Tracing, current
from terrazzo.reasons import reason_of, say
from terrazzo.times import now_us

_SCHEME = "bearer "
_SAYS_MORE = (CountedList, Published)  # than belongs into its place in the envelope


_NO_ACTION: Any = msgspec.UNSET


class Head(msgspec.Struct):
    """What every request may carry beside the fields of its operation."""

    action: str = _NO_ACTION
    actionid: msgspec.Raw = EMPTY_TEXT
    authorization: str | msgspec.UnsetType | None = msgspec.field(default=msgspec.UNSET, name="Authorization")
    strict: bool = False


class _AnyHead(msgspec.Struct):
    """A head whatever is in it: nothing is made of that."""

    action: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    actionid: msgspec.Raw = EMPTY_TEXT
    authorization: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="Authorization")
    strict: msgspec.Raw = msgspec.Raw(b"false")


_decode_head = msgspec.json.Decoder(Head).decode
_decode_any_head = msgspec.json.Decoder(_AnyHead).decode


class GatewayRequest(NamedTuple):
    """A request as far as it had to be read to know which operation it is for."""

    operation: Operation
    head: Head
    body: str

    def waits_its_turn(self, caller: Caller) -> bool:
        """Whether the requests before it on its connection have to be done first, and those after it wait for it.

        Only what reads runs beside other requests: not what changes records, the connection's rights or its
        subscriptions.
        """
        credential = self.head.authorization
        changes_rights = credential is not msgspec.UNSET and bearer_token(credential) != caller.token
        return changes_rights or not self.operation.only_reads


_new_request: Callable[[Any, Any], GatewayRequest] = tuple.__new__  # its constructor is written in Python


class Performer:
    """Runs operations: who asks, may they, what do they ask, and the answer or the failure."""

    def __init__(self, services: Services, traffic: Traffic) -> None:
        self._services = services
        self._traffic = traffic
        self._tracing = services.tracing
        self._check_memory, self._tokens = services.memory.check, services.tokens
        limits = services.limits
        of_company = services.own_limits.of("answer_bytes", limits.company_answer_bytes)
        self._unread = UnreadAnswers(most_bytes=limits.answer_bytes, of_company=of_company, stats=services.answer_stats)
        self.kept_answers = self._unread.kept
        self._short: set[type] = {dict}  # kinds of results without records
        self._loop: asyncio.AbstractEventLoop | None = None  # that it works on

    async def perform(self, operation: Operation, caller: Caller, decode: Callable[[], Any], reply: Reply) -> Answer:
        """The result, or why there is none. Nothing about the request is said to who may not make it.

        ``decode`` returns the request, or steps towards it.
        """
        if (loop := self._loop) is None:
            loop = self._loop = asyncio.get_running_loop()
        may_end, slot, tries = operation.may_end, None, operation.tries_first
        work = Work(operation.name, 0, None, None, may_end, None, False, may_end or tries)
        began = perf_counter()
        at_work.begin(work, loop)
        if ((may_end and caller.live is None) or tries) and (slot := caller.slot) is not None:
            slot.reading = work  # on a connection that stays what reads may be one of many, and ends with its task
        span = None if self._tracing is None else _begin_span(self._tracing, operation, caller)
        try:
            who, asked = self._admit(operation, caller, work), decode()
            if asked.__class__ is GeneratorType:
                asked = await turn_by_turn(asked)
            result = await operation.handler(self._services, who, asked)
            if operation.gives_token and caller.session is not None:
                result = _kept_in_cookie(result, caller.session, self._services.tokens)
            if reply.__class__ is not GatewayReply:  # which has it as it is
                result = reply.present(result)
            if result.__class__ in self._short or is_few(result):
                answer = reply.success(result)
            else:
                answer = await self._encode(result, reply, work)
            if len(answer.body) > COUNTED_BYTES:
                self._unread.keep(answer, work.company_id)
            code = SUCCESS
        except Exception as error:  # noqa: BLE001 - explain() logs what nobody expected
            failure = explain(error, reply)
            self._unread.stats.too_large += isinstance(error, AnswerTooLarge)
            code = failure.code
            answer = reply.failure(failure)
        except asyncio.CancelledError:
            overdue = self._overdue(work, reply)
            if overdue is None:
                self._traffic.abandon()
                if span is not None:
                    _end_span(span, 0, work.company_id)
                raise
            code = overdue.code
            answer = reply.failure(overdue)
        finally:
            if slot is not None:
                slot.reading = None
            at_work.end(work)
        if span is not None:
            _end_span(span, code, work.company_id)
        self._traffic.count(operation.name, code, perf_counter() - began)
        return answer

    def _overdue(self, work: Work, reply: Reply) -> Failure | None:
        """What is said of a request that is ended as it took too long; None where it ends for another reason."""
        if not work.is_overdue or work.task is None or work.task.uncancel():
            return None
        self._traffic.count_overdue()
        limit = f"{self._services.limits.reading_s} s (limits.reading_s)"
        return explain(Unavailable(say("reading_took_too_long", limit=limit)), reply)

    async def _encode(self, result: Any, reply: Reply, work: Work) -> Answer:
        """The answer; what a long one is made of counts until then."""
        if result.__class__ is Columns:
            return cast(Answer, await asyncio.to_thread(result.answer))
        if isinstance(result, _SAYS_MORE):
            reply, result = completed(reply, result)
        if not is_long(result):
            if isinstance(result, msgspec.Struct) and not long_parts(type(result)):
                self._short.add(type(result))
            return reply.success(result)
        with self._services.memory.holding("pages", work.company_id) as holding:
            return reply.success(await encode_long(result, most_bytes=self._unread.most_bytes, grow=holding.grow))

    async def recognize(self, caller: Caller) -> None:
        """Checks the token that a connection that stays was opened with; one that isn't good is answered later."""
        with suppress(NotAuthenticated):
            identify(self._services.tokens, caller)

    def _admit(self, operation: Operation, caller: Caller, work: Work) -> Actor | Caller | Subscriber:
        permission = operation.permission
        if permission is None:
            return caller
        actor = identify(self._tokens, caller)
        if not actor.may(permission):
            raise NotPermitted(
                say("needs_role", role=permission.name.lower(), user=actor.username, is_role=actor.role.name.lower())
            )
        company_id = work.company_id = actor.company_id
        if not operation.is_spared:
            self._check_memory("requests", company_id)
        actor = msgspec.structs.replace(actor, address=caller.address)
        if not operation.connection:
            return actor
        if caller.live is None:
            raise BadParameter("action", say("needs_a_connection", action=operation.name))
        return Subscriber(actor, caller.live)


class Gateway:
    """The action gateway (section 1): one JSON request in, one envelope out."""

    def __init__(self, table: OperationTable, performer: Performer, validator: Validator, traffic: Traffic) -> None:
        self._table = table
        self._performer = performer
        self._validator = validator
        self._traffic = traffic
        self.kept_answers = performer.kept_answers

    async def recognize(self, caller: Caller) -> None:
        """Checks the token that a connection that stays was opened with."""
        await self._performer.recognize(caller)

    async def answer(
        self, message: bytes | str, caller: Caller, action: str = "", *, columns: ColumnForm | None = None
    ) -> Answer:
        """Answers one request; never raises for what a client can send.

        ``action`` is what the address names, where it does: then the message need not, and may be empty. ``columns``:
        the form that is asked for in place of JSON, where the result has it; the answer says which it has.
        """
        asked = self.read(message, action)
        return asked if isinstance(asked, Answer) else await self.perform(asked, caller, columns)

    def read(self, message: bytes | str, action: str = "") -> GatewayRequest | Answer:
        """What a message asks for, or the answer to one that asks for nothing."""
        try:
            body = message if isinstance(message, str) else message.decode()
            text = body or "{}" if action else body
            try:
                head = _decode_head(text)
            except msgspec.ValidationError:
                head = _head_of(_decode_any_head(text))
        except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
            return self._unreadable(action, EMPTY_TEXT, "body", _why_unreadable(error, message))
        if action and head.action is _NO_ACTION:
            head.action = action
        name = head.action
        if name.__class__ is str and head.strict is False and (not action or name == action):
            operation = self._table.find(name)
            if operation is not None:
                return _new_request(GatewayRequest, (operation, head, body or "{}"))
        return self._read_with_care(head, action, body)

    def _read_with_care(self, head: Head, action: str, body: str) -> GatewayRequest | Answer:
        """What a head asks for that is unusual or wrong."""
        name = head.action
        if not isinstance(name, str):
            missing = name is _NO_ACTION
            reason = say("is_required") if missing else say("expected_text_got_json", got=kind(name))
            return self._unreadable(action, head.actionid, "action", reason)
        if action and name != action:
            return self._unreadable(
                action, head.actionid, "action", say("action_of_address", address=action, body=name[:100])
            )
        if not isinstance(head.strict, bool):
            return self._unreadable(name, head.actionid, "strict", say("expected_truth_got", got=kind(head.strict)))
        operation = self._table.find(name)
        if operation is None:
            near = self._table.near_actions.nearest(name)
            reason = say("action_unknown", name=name[:100])
            if near:
                reason = say("action_unknown_near", name=name[:100], near=near)
            return self._unreadable(name, head.actionid, "action", reason, status=404)
        return GatewayRequest(operation, head, body or "{}")

    def perform(
        self, asked: GatewayRequest, caller: Caller, columns: ColumnForm | None = None
    ) -> Coroutine[Any, Any, Answer]:
        """Does what was asked, when it is awaited.

        A field ``Authorization`` in the request becomes the caller's token, which is how connections authenticate.
        """
        head = asked.head
        if head.authorization is not msgspec.UNSET:
            caller.token = bearer_token(head.authorization)
        reply = GatewayReply(head.action, head.actionid)
        if columns is not None:
            is_series = asked.operation.is_series
            reply = ColumnReply(head.action, head.actionid, form=columns, is_series=is_series)
        body = asked.body
        if head.strict or (len(body) > SHORT and takes_long(body)):
            decode = partial(self._validator.steps_from_json, asked.operation, body, strict=head.strict)
        else:
            decode = partial(self._validator.from_json, asked.operation, body)
        return self._performer.perform(asked.operation, caller, decode, reply)

    def _unreadable(self, name: str, actionid: msgspec.Raw, field: str, reason: str, *, status: int = 200) -> Answer:
        self._traffic.refuse(status)
        told = reason_of(reason, field=field)
        return GatewayReply(name, actionid).failure(Failure(BAD_PARAMETER, f"{field}: {reason}", status, reason=told))


def _head_of(given: _AnyHead) -> Head:
    """A head with fields of other types than they should be, which are looked at by whoever reads them."""
    return Head(_scalar(given.action), given.actionid, _scalar(given.authorization), _scalar(given.strict))


def _scalar(value: msgspec.Raw | msgspec.UnsetType) -> Any:
    """The value; an empty list or object where it is one, whatever is in it."""
    if isinstance(value, msgspec.UnsetType):
        return value
    begins = bytes(value)[:1]
    return [] if begins == b"[" else {} if begins == b"{" else msgspec.json.decode(value)


def _begin_span(tracing: Tracing, operation: Operation, caller: Caller) -> Span | None:
    """The span of a request, which is the task's current one until the next; None where it is not traced."""
    attributes = {"terrazzo.operation": operation.name, "client.address": caller.address}
    span = tracing.begin(operation.name, now_us(), kind="server", parent=caller.traceparent, attributes=attributes)
    current.set(span)
    return span


def _end_span(span: Span, code: int, company_id: int) -> None:
    """Ends it; ``code`` 0: nobody waits for the answer any more."""
    error = "" if code == SUCCESS else f"code {code}" if code else "abandoned"
    span.end(now_us(), error=error, attributes={"terrazzo.code": code, "terrazzo.company": company_id})
    current.set(None)


def _kept_in_cookie(result: Any, session: CookieSession, tokens: TokenService) -> Any:
    """The result without its token, which begins a session of a cookie."""
    session.given = tokens.session(result.token)
    return msgspec.structs.replace(result, token="")  # nosec B106 - taken out


def bearer_token(credential: Any) -> str | None:
    """The token of ``Bearer <token>``, None where there is none."""
    if isinstance(credential, str) and credential[: len(_SCHEME)].lower() == _SCHEME:
        return credential[len(_SCHEME) :].strip() or None
    return None


def _why_unreadable(error: Exception, message: bytes | str) -> str:
    if not message.strip():
        return say("is_empty")
    match error:
        case UnicodeDecodeError():
            return say("not_utf8_at", byte=error.start)
        case RecursionError():
            return say("nested_too_deeply")
        case msgspec.ValidationError():
            return schema_fault(error)[1]
    return say("not_json", why=str(error).removeprefix("JSON is malformed: "))
