"""Calls the embedding program's hooks so that an exception from one refuses or is counted, and goes no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqtt5 import ConnAckReasonCode

from .hooks import Batch, Client, ConnectRequest, Delivery, Hooks, MayReceive, Outcome, PublishGrant, Refuse, Verdict
from .limited_log import limited_logger
from .refusals import OnRefused, Refusal
from .stats import Stats

log = limited_logger("terrazzo_broker.broker")

UNAVAILABLE = Refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, "authentication is not available")
"""The verdict where the ``authenticate`` hook has raised."""


class AskedHooks:
    """The embedding program's hooks. One that raises refuses what it was asked; it is counted, and logged sparsely."""

    __slots__ = ("_hooks", "_may_receive", "_on_refused", "_stats")

    def __init__(
        self, hooks: Hooks, stats: Stats, may_receive: MayReceive | None, on_refused: OnRefused | None
    ) -> None:
        self._hooks = hooks
        self._may_receive = may_receive
        self._on_refused = on_refused
        self._stats = stats

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """The verdict on a CONNECT, or on a re-authentication; an error refuses."""
        return await self.conclude(request.client_id, lambda: self._hooks.authenticate(request))

    async def conclude(self, client_id: str, ask: Callable[[], Any]) -> Verdict:
        """The verdict that ``ask`` returns; an error refuses with 0x88 (Server unavailable)."""
        try:
            verdict: Verdict = await ask()
        except Exception:  # noqa: BLE001 - the hook may raise anything, and lets nobody in by it
            self._failed(client_id, "authenticate")
            return UNAVAILABLE
        return verdict

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """The grant, None where the publish is refused; ``$SYS`` is the broker's own, and an error refuses."""
        if topic.startswith("$SYS/") or topic == "$SYS":
            return None
        try:
            return self._hooks.authorize_publish(client, topic)
        except Exception:  # noqa: BLE001 - the hook may raise anything, and allows nothing by it
            self._failed(client.client_id, "authorize_publish")
            return None

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """Whether the subscription is granted; an error refuses."""
        try:
            return self._hooks.authorize_subscribe(client, topic_filter)
        except Exception:  # noqa: BLE001 - the hook may raise anything, and allows nothing by it
            self._failed(client.client_id, "authorize_subscribe")
            return False

    @property
    def may_receive(self) -> MayReceive | None:
        """Whether a client may be sent a topic; an error keeps the message from it. None: whoever has subscribed."""
        ask = self._may_receive
        if ask is None:
            return None

        def asked(client_id: str, topic: str) -> bool:
            try:
                return ask(client_id, topic)
            except Exception:  # noqa: BLE001 - the hook may raise anything, and allows nothing by it
                self._failed(client_id, "may_receive")
                return False

        return asked

    def take(self, batch: Batch) -> bool:
        """Hands a batch over; False: it hasn't been taken, and must not be acknowledged."""
        self._stats.messages_taken += len(batch.messages)
        try:
            self._hooks.take(batch)
        except Exception:  # noqa: BLE001 - the hook may raise anything, and then has not taken the batch
            self._failed(batch.client.client_id, "take")
            return False
        return True

    def tell_connected(self, client: Client) -> None:
        """Calls ``on_connected``: the CONNACK has been sent."""
        self._tell(client.client_id, "on_connected", client)

    def tell_disconnected(self, client: Client, reason: str) -> None:
        """Calls ``on_disconnected``: the connection has ended."""
        self._tell(client.client_id, "on_disconnected", client, reason)

    def tell_subscribed(self, client: Client, filters: list[str]) -> None:
        """Calls ``on_subscribed``: filters were granted or restored."""
        self._tell(client.client_id, "on_subscribed", client, filters)

    def tell_refused(self, refusal: Refusal) -> None:
        """Tells of a refusal."""
        if self._on_refused is None:
            return
        try:
            self._on_refused(refusal)
        except Exception:  # noqa: BLE001 - the program may raise anything; it is told, not asked
            self._failed(refusal.client_id, "on_refused")

    def _tell(self, client_id: str, name: str, *arguments: object) -> None:
        try:
            getattr(self._hooks, name)(*arguments)
        except Exception:  # noqa: BLE001 - the hook may raise anything; it is told, not asked
            self._failed(client_id, name)

    def told(self, client_id: str, on_outcome: Delivery) -> Delivery:
        """``on_outcome``, wrapped so that what it raises is counted and logged."""

        def tell(outcome: Outcome) -> None:
            try:
                on_outcome(outcome)
            except Exception:  # noqa: BLE001 - the sender may raise anything; it is told, not asked
                self._failed(client_id, "on_outcome")

        return tell

    def _failed(self, client_id: str, name: str) -> None:
        self._stats.hook_failures += 1
        log.exception(f"%s: the {name} hook failed", client_id)  # the limit is for each hook
