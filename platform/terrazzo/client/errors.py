"""What can go wrong between a program and the platform, told apart by whether the request may have been carried out."""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """Base of everything that the client raises."""


class NotSent(ClientError):
    """There was no connection: the request never left. Asking again is safe."""


class ConnectionLost(ClientError):
    """The connection ended, or the time was up, before the answer: the request may have been carried out."""


def lost_by(error: BaseException) -> ConnectionLost:
    """What an error of the connection means for a request that was sent."""
    if isinstance(error, TimeoutError):
        return ConnectionLost("the platform did not answer in time")
    return ConnectionLost(f"the connection ended before the answer: {error or type(error).__name__}")


class UnexpectedAnswer(ClientError):
    """Whatever answered, it was not the platform."""


class ActionError(ClientError):
    """The platform answered with a code other than 200.

    ``info`` names the field and the reason. ``result`` is what some actions say beside it, such as the errors of an
    import. ``retry_after_s``: when to ask again, where the platform said so.
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
