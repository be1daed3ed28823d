"""The envelope of every answer, and which code an error gets."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from terrazzo.api.kernel.paging import CountedList
from terrazzo.errors import (
    BadParameter,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    OperationError,
    ServiceFailed,
    Throttled,
    Unavailable,
)
from terrazzo.ports.store import StoreUnavailable
from terrazzo.reasons import Reason, reason_of, say, told_by

logger = logging.getLogger(__name__)

SUCCESS = 200
FAILURE = 500
BAD_PARAMETER = 10401
NOT_AUTHENTICATED = 10402
NOT_PERMITTED = 10403
NOT_FOUND = 10404

MESSAGES = {
    SUCCESS: "success",
    FAILURE: "failure",
    BAD_PARAMETER: "bad parameter",
    NOT_AUTHENTICATED: "not authenticated",
    NOT_PERMITTED: "not permitted",
    NOT_FOUND: "not found",
}

_SUCCEEDED = MESSAGES[SUCCESS]
EMPTY_TEXT = msgspec.Raw(b'""')
_encoder = msgspec.json.Encoder()
_encode = _encoder.encode


class Failure(msgspec.Struct, frozen=True):
    """An error as the client sees it. ``status`` is the one of HTTP."""

    code: int
    info: str
    status: int = 200
    retry_after_s: float | None = None
    result: Any = msgspec.field(default_factory=dict)
    reason: Reason | msgspec.UnsetType = msgspec.UNSET


class Answer(msgspec.Struct, frozen=True, weakref=True):
    """One encoded answer, whatever the transport; ``status``, ``retry_after_s`` and ``headers`` are HTTP's."""

    body: bytes
    status: int = 200
    retry_after_s: float | None = None
    media_type: str = ""  # empty: JSON
    headers: tuple[tuple[str, str], ...] = ()  # of HTTP, beside those that every answer has


class Envelope(msgspec.Struct):
    """The gateway's answer (section 1 "Response envelope")."""

    resp: str
    actionid: msgspec.Raw
    code: int
    msg: str
    info: str
    result: Any
    total_records: int | msgspec.UnsetType = msgspec.UNSET  # of lists that are bare arrays
    commands: Sequence[str] | msgspec.UnsetType = msgspec.UNSET  # of actions that send some: their uids
    reason: Reason | msgspec.UnsetType = msgspec.UNSET  # of errors: ``info`` as code and parameters


class ComponentEnvelope(msgspec.Struct):
    """A component's answer (section 2 "Address placeholders and common conventions")."""

    code: int
    msg: str
    info: str
    result: Any = msgspec.UNSET
    reason: Reason | msgspec.UnsetType = msgspec.UNSET


class MessengerEnvelope(ComponentEnvelope):
    """The messenger's answer (section 2 "Messenger")."""

    svc_code: str = ""
    svc_ext: str = ""
    svc_msg: str = ""


class ServiceAnswer(msgspec.Struct, frozen=True):
    """What a provider said, and the messenger's result; ``svc_ext`` are the uids of the messages, with commas."""

    svc_code: str = ""
    svc_ext: str = ""
    svc_msg: str = ""
    result: Any = ""


class Empty(msgspec.Struct):
    """Success has nothing more to say."""


class Published(NamedTuple):
    """Success of an action that sends commands: ``Empty``, and their uids in the order of the request."""

    commands: Sequence[str]


class Reply(Protocol):
    """How one interface words its answers."""

    @property
    def bad_parameter(self) -> int:
        """The code of a bad parameter."""

    @property
    def not_found(self) -> int:
        """The code of a record that isn't there."""

    def present(self, result: Any) -> Any:
        """An operation's result in the interface's shape, for ``success``."""

    def success(self, result: Any) -> Answer: ...

    def failure(self, failure: Failure) -> Answer: ...


class GatewayReply(msgspec.Struct, frozen=True):
    """An answer of the gateway to one request; ``actionid`` goes back as it came."""

    resp: str
    actionid: msgspec.Raw
    bad_parameter: int = BAD_PARAMETER
    not_found: int = NOT_FOUND
    total_records: int | msgspec.UnsetType = msgspec.UNSET
    commands: Sequence[str] | msgspec.UnsetType = msgspec.UNSET

    def present(self, result: Any) -> Any:
        """As it is."""
        return result

    def success(self, result: Any) -> Answer:
        """The envelope of a success with its result."""
        count, commands = self.total_records, self.commands
        return Answer(_encode(Envelope(self.resp, self.actionid, SUCCESS, _SUCCEEDED, "", result, count, commands)))

    def failure(self, failure: Failure) -> Answer:
        """The envelope of an error; its result is ``{}`` but for imports, whose report says which rows are wrong."""
        message = MESSAGES[failure.code]
        envelope = Envelope(self.resp, self.actionid, failure.code, message, encodable(failure.info), failure.result)
        envelope.reason = failure.reason
        return Answer(_encoder.encode(envelope), failure.status, failure.retry_after_s)


def completed(reply: Reply, result: Any) -> tuple[Reply, Any]:
    """What a result says beside itself goes into the gateway's envelope: how many records there are in all, where it is
    a bare array of some of them; the uids of commands, where it is nothing but that they were taken."""
    if isinstance(reply, GatewayReply):
        if isinstance(result, CountedList):
            return msgspec.structs.replace(reply, total_records=result.total_records), result
        if isinstance(result, Published):
            return msgspec.structs.replace(reply, commands=result.commands), Empty()
    return reply, Empty() if isinstance(result, Published) else result


UNREAD = GatewayReply("", EMPTY_TEXT)
"""Answers what could not be read as far as its ``action``."""


class ComponentReply(msgspec.Struct, frozen=True):
    """An answer of a component; ``shape`` makes its result from the operation's."""

    shape: Callable[[Any], Any] = lambda result: result
    bad_parameter: int = FAILURE
    not_found: int = FAILURE

    def present(self, result: Any) -> Any:
        """In the component's shape."""
        return self.shape(result)

    def success(self, result: Any) -> Answer:
        """The envelope of a success with its result."""
        return Answer(_encoder.encode(ComponentEnvelope(SUCCESS, MESSAGES[SUCCESS], "", result)))

    def failure(self, failure: Failure) -> Answer:
        """The envelope of an error; its result is ``{}``."""
        envelope = ComponentEnvelope(failure.code, MESSAGES[failure.code], encodable(failure.info), {}, failure.reason)
        return Answer(_encoder.encode(envelope), failure.status, failure.retry_after_s)


class MessengerReply(msgspec.Struct, frozen=True):
    """An answer of the messenger, which says what the provider said."""

    shape: Callable[[Any], Any] = lambda result: result
    bad_parameter: int = FAILURE
    not_found: int = FAILURE

    def present(self, result: Any) -> Any:
        """What the provider said."""
        return self.shape(result)

    def success(self, said: ServiceAnswer) -> Answer:
        """With what the provider said."""
        return Answer(_encoder.encode(self._envelope(SUCCESS, "", said)))

    def failure(self, failure: Failure) -> Answer:
        """With what the provider said, if it came to that."""
        said = failure.result if isinstance(failure.result, ServiceAnswer) else ServiceAnswer(result={})
        envelope = self._envelope(failure.code, encodable(failure.info), said)
        envelope.reason = failure.reason
        return Answer(_encoder.encode(envelope), failure.status, failure.retry_after_s)

    def _envelope(self, code: int, info: str, said: ServiceAnswer) -> MessengerEnvelope:
        return MessengerEnvelope(
            code,
            MESSAGES[code],
            info,
            said.result,
            svc_code=said.svc_code,
            svc_ext=said.svc_ext,
            svc_msg=said.svc_msg,
        )


def encodable(info: str) -> str:
    """Plain text, with escapes for bytes of a head that are no UTF-8, which aiohttp decodes to surrogates."""
    plain = info[:]  # of a sentence that knows its code
    return plain if plain.isascii() else plain.encode("utf-8", "backslashreplace").decode()


def explain(error: Exception, reply: Reply) -> Failure:
    """The one place where an exception becomes what the client sees."""
    failure = _failure(error, reply)
    told = error.told() if isinstance(error, OperationError) else reason_of(told_by(error))
    return failure if isinstance(told, msgspec.UnsetType) else msgspec.structs.replace(failure, reason=told)


def _failure(error: Exception, reply: Reply) -> Failure:
    info = str(error)
    match error:
        case BadParameter():
            return Failure(reply.bad_parameter, info, result={} if error.result is None else error.result)
        case NotAuthenticated():
            return Failure(NOT_AUTHENTICATED, info, result={} if error.result is None else error.result)
        case NotPermitted():
            return Failure(NOT_PERMITTED, info)
        case NotFound():
            return Failure(reply.not_found, info)
        case Throttled():
            return Failure(FAILURE, info, 429, error.retry_after_s)
        case Unavailable() | StoreUnavailable():
            return Failure(FAILURE, info, 503)
        case ServiceFailed():
            said = ServiceAnswer(error.svc_code, error.svc_ext, error.svc_msg, {})
            return Failure(FAILURE, info, result=said)
        case OperationError():
            return Failure(FAILURE, info)
    incident = secrets.token_hex(6)
    logger.error("internal error %s", incident, exc_info=error)
    told = say("internal_error", incident=incident)
    return Failure(FAILURE, str(told), reason=reason_of(told))
