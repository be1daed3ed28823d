"""The client's exceptions: they say whether the request may have been carried out."""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """Base of everything that the client raises."""


class NotSent(ClientError):
    """No connection could be made: the request was not sent, and asking again is safe."""


class ConnectionLost(ClientError):
    """The connection ended or timed out before the answer: the request may have been carried out."""


def lost_by(error: BaseException) -> ConnectionLost:
    """The ``ConnectionLost`` for an error of the connection after a request was sent."""
    if isinstance(error, TimeoutError):
        return ConnectionLost("the platform did not answer in time")
    return ConnectionLost(f"the connection ended before the answer: {error or type(error).__name__}")


class UnexpectedAnswer(ClientError):
    """The answer is not one of the platform, but perhaps of a proxy."""


class ActionError(ClientError):
    """The platform answered with a code other than 200.

    ``info`` names the field and the reason. ``result`` is what some actions add to it, such as the errors of an import.
    ``retry_after_s``: when to ask again, if the platform said so.
    """

    def __init__(
        self, code: int, msg: str, info: str, *, result: Any = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(f"{code} {msg}: {info}" if info else f"{code} {msg}")
        self.code = code
        self.msg = msg
        self.info = info
        self.result = result
        self.retry_after_s = retry_after_s
