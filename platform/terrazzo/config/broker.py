"""Settings of the embedded broker, from the configuration."""

from __future__ import annotations

from terrazzo.config.sections import Config, ConfigError
from terrazzo_broker.settings import BrokerSettings


def check_is_served(config: Config) -> None:
    """Refuses values that are valid configuration but not supported by this version.

    Raises:
        ConfigError: names the key.
    """
    unserved = {
        "broker.kind = external": config.broker.kind == "external",
    }
    for key, asked in unserved.items():
        if asked:
            raise ConfigError(f"{key}: not served by this version")


def broker_settings(config: Config) -> BrokerSettings:
    """The broker's settings, from the section ``limits``."""
    limits = config.limits
    return BrokerSettings(
        packet_bytes=limits.mqtt_packet_bytes,
        connections=limits.connections,
        connects_per_second=limits.connects_per_second,
        publish_per_second=limits.publish_per_second,
        inflight_from_client=limits.inflight,
        inflight_to_client=limits.inflight_to_client,
        queued_messages=limits.queued_messages,
        queued_bytes=limits.queued_bytes,
        sys_interval_s=0.0 if config.mqtt.sys_topics == "off" else BrokerSettings().sys_interval_s,
    )
