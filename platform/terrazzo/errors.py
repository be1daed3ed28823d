"""The errors of operations that clients are told of; the APIs turn them into answer codes in one place."""

from __future__ import annotations

from typing import Any

import msgspec

from terrazzo.reasons import Reason, reason_of, say, told_by


class OperationError(Exception):
    """Base of all expected failures. ``str()`` is the ``info`` of the answer: it names the field and the reason."""

    def told(self) -> Reason | msgspec.UnsetType:
        """The reason as code and parameters; UNSET where the text is not the platform's own."""
        return reason_of(told_by(self))


class BadParameter(OperationError):
    """A parameter is missing, of the wrong type or out of range. Gateway 10401, components 500.

    ``result`` is answered beside field and reason where it is set, such as the errors of a whole file.
    """

    result: Any = None

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason

    def told(self) -> Reason | msgspec.UnsetType:
        return reason_of(self.reason, field=self.field)


class NotAuthenticated(OperationError):
    """No token, an expired or revoked one, or wrong credentials. 10402.

    ``result`` is answered where it is set: what a login needs besides.
    """

    result: Any = None


class SecondFactorNeeded(NotAuthenticated):
    """Name and password are right, and a second factor is needed: ``code``, or ``enrol`` where there is none yet."""

    def __init__(self, reason: str, *, needed: str) -> None:
        super().__init__(reason)
        self.result = {"second_factor": needed}


class NotPermitted(OperationError):
    """The user's role or company doesn't allow it. 10403."""


class NotFound(OperationError):
    """No such record. Gateway 10404, components 500."""

    def __init__(self, field: str, value: object) -> None:
        self.field, self.reason = field, say("no_record", value=value)
        super().__init__(f"{field}: {self.reason}")

    def told(self) -> Reason | msgspec.UnsetType:
        return reason_of(self.reason, field=self.field)


class Conflict(OperationError):
    """The change contradicts what is stored (a uid taken, a record in use). 500."""


class QuotaExceeded(OperationError):
    """A company has as much of something as it may have; names the limit. 500."""

    def __init__(self, field: str, has: int, limit: int, unit: str, key: str) -> None:
        self.field, self.reason = field, say("quota_exceeded", has=has, unit=unit, limit=limit, key=key)
        super().__init__(f"{field}: {self.reason}")

    def told(self) -> Reason | msgspec.UnsetType:
        return reason_of(self.reason, field=self.field)


class Skipped(OperationError):
    """A command is not sent; names the condition that prevents it (section 2, Pusher, rule 8). 500."""


class ServiceFailed(OperationError):
    """A provider of the messenger did not take a message; ``svc_*`` are its code and message. 500."""

    def __init__(self, reason: str, *, svc_code: str, svc_ext: str, svc_msg: str) -> None:
        super().__init__(reason)
        self.svc_code = svc_code
        self.svc_ext = svc_ext
        self.svc_msg = svc_msg


class Throttled(OperationError):
    """Too many requests or failures; try again after ``retry_after_s``. HTTP 429."""

    def __init__(self, reason: str, retry_after_s: float) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class Unavailable(OperationError):
    """A part of the platform (store, database, broker) can't work now. HTTP 503."""
