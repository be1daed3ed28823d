"""The hooks of a standalone broker: everything is allowed, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from mqtt5 import ConnAckReasonCode

from .hooks import Accept, Batch, Client, ConnectRequest, PublishGrant, Refuse, Verdict


class OpenHooks:
    """Accepts every client, publish and subscription if ``anonymous``; otherwise refuses every client."""

    def __init__(self, *, anonymous: bool) -> None:
        self.anonymous = anonymous

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Accepts if ``anonymous``; refuses enhanced authentication, for which there are no keys. [MQTT-4.12.0-1]"""
        if request.auth_method is not None:
            return Refuse(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, "no authentication method is offered")
        if not self.anonymous:
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "nobody may connect: start with --allow-anonymous")
        return Accept()

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """Grants every topic."""
        return PublishGrant(topic)

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """Grants every filter."""
        return True

    def take(self, batch: Batch) -> None:
        """Acknowledges at once; not called, as no grant is durable."""
        batch.settle()

    def on_connected(self, client: Client) -> None:
        """Nothing to do."""

    def on_disconnected(self, client: Client, reason: str) -> None:
        """Nothing to do."""

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Nothing to do."""
