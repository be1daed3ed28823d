"""What stands in place of the connection of a will, which has none any more: nothing is answered or held."""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsInt

from mqtt5 import DisconnectReasonCode

from ..refusals import Cause


class UnstoredWill:
    """The ``PublishingConnection`` of a will's batch. ``on_stored`` is called once what it says is stored."""

    __slots__ = ("_on_stored",)

    def __init__(self, on_stored: Callable[[], None]) -> None:
        self._on_stored = on_stored

    def settled(self) -> None:
        """It is stored."""
        self._on_stored()

    def hold(self, why: int) -> None:
        """Nothing is read."""

    def release(self, why: int) -> None:
        """Nothing is read."""

    def tell_refused(self, cause: Cause, reason: SupportsInt = 0, detail: str = "", times: int = 1) -> None:
        """Nobody is there to be told."""

    def told(self, cause: Cause) -> str:
        """No text: nothing is sent."""
        return ""

    def fail(self, reason: DisconnectReasonCode, text: str) -> None:
        """It could not be taken now: the next start publishes it again."""
