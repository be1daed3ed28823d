"""The hooks of a broker that runs alone: everybody and everything, or nobody."""

from __future__ import annotations

from collections.abc import Sequence

from mqtt5 import ConnAckReasonCode

from .hooks import Accept, Batch, Client, ConnectRequest, PublishGrant, Refuse, Verdict


class OpenHooks:
    """Lets everybody in and everything through, if ``anonymous``; nobody otherwise."""

    def __init__(self, *, anonymous: bool) -> None:
        self.anonymous = anonymous

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Enhanced authentication is refused: there is nothing to check it against. [MQTT-4.12.0-1]"""
        if request.auth_method is not None:
            return Refuse(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, "no authentication method is offered")
        if not self.anonymous:
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "nobody may connect: start with --allow-anonymous")
        return Accept()

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """Every topic."""
        return PublishGrant(topic)

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """Every filter."""
        return True

    def take(self, batch: Batch) -> None:
        """Never called: no grant asks for it."""
        batch.settle()

    def on_connected(self, client: Client) -> None:
        """Nothing to do."""

    def on_disconnected(self, client: Client, reason: str) -> None:
        """Nothing to do."""

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Nothing to do."""
