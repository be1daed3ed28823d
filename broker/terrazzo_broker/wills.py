"""Will messages, which are published when a connection ends without DISCONNECT. [MQTT-3.1.2-8]"""

from __future__ import annotations

from typing import NamedTuple

import mqtt5

from .hooks import Client
from .message import PublishProperties


class PendingWill(NamedTuple):
    """A will that waits for its delay to pass, or for its session to end. [MQTT-3.1.3-9]"""

    will: mqtt5.Will
    client: Client


def will_properties(will: mqtt5.Will) -> PublishProperties:
    """The properties that the published will carries."""
    return PublishProperties(
        payload_format_indicator=will.payload_format_indicator,
        message_expiry_s=will.message_expiry_interval,
        content_type=will.content_type,
        response_topic=will.response_topic,
        correlation_data=will.correlation_data,
        user_properties=tuple(will.user_properties),  # [MQTT-3.1.3-10]
    )
