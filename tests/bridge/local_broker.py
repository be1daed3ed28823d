"""The local broker, played: ``LocalBroker`` of the port, without a platform."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from terrazzo.ports.bridge import BridgeMessage, BridgeQueue


class LocalBroker:
    """The side that is here: keeps what comes in, and what the bridge subscribed."""

    id = "here"

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.faults = 0
        self.paused = 0
        self.queue: BridgeQueue | None = None
        self.again: Callable[[], None] = lambda: None  # as if the store had taken nothing of what came last

    def subscribe(self, name: str, filters: Mapping[str, int], outbox: BridgeQueue, *, company_id: int) -> None:
        self.queue = outbox

    def publish(self, name: str, message: BridgeMessage, on_taken: Callable[[], None], *, company_id: int) -> None:
        if self.faults:
            self.faults -= 1
            raise ValueError("planted")  # one of those that a malformed packet raises too
        self.taken.append(message.payload)
        on_taken()

    def when_withheld(self, name: str, again: Callable[[], None]) -> None:
        self.again = again

    def pause(self, name: str) -> None:
        self.paused += 1

    def resume(self, name: str) -> None:
        self.paused -= 1
