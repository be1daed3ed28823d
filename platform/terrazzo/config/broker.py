"""Settings of the embedded broker, from the configuration."""

from __future__ import annotations

from terrazzo.config.sections import Config, ConfigError
from terrazzo_broker.settings import BrokerSettings

_COMPANIES_THAT_FIT = 4  # into what retained messages may take in memory


def check_is_served(config: Config) -> None:
    """Refuses values that are valid configuration but not supported by this version.

    Raises:
        ConfigError: names the key.
    """
    unserved = {
        ("broker.kind = external", "keep embedded, and take in what the other broker has with a [[bridge]]"): (
            config.broker.kind == "external"
        ),
    }
    for (key, instead), asked in unserved.items():
        if asked:
            raise ConfigError(f"{key}: not served by this version; {instead} (docs/beside-a-broker.md)")


def broker_settings(config: Config) -> BrokerSettings:
    """The broker's settings, from the section ``limits``."""
    limits = config.limits
    return BrokerSettings(
        packet_bytes=limits.mqtt_packet_bytes,
        topic_bytes=limits.topic_bytes,
        connect_bytes=limits.connect_bytes,
        connections=limits.connections,
        connects_per_second=limits.connects_per_second,
        half_open=limits.half_open,
        half_open_per_address=limits.half_open_per_address,
        half_open_bytes=limits.half_open_bytes,
        trusted_proxies=config.http.trusted_proxies,
        allowed_origins=config.http.allowed_origins,
        publish_per_second=limits.publish_per_second,
        owner_publish_per_second=limits.company_publish_per_second,
        inflight_from_client=limits.inflight,
        inflight_to_client=limits.inflight_to_client,
        queued_messages=limits.queued_messages,
        queued_bytes=limits.queued_bytes,
        owner_queued_messages=limits.company_queued_messages,
        owner_queued_bytes=limits.company_queued_bytes,
        owner_subscriptions=limits.company_subscriptions,
        retained_messages=limits.retained_messages,
        retained_bytes=limits.retained_bytes,
        retained_memory_bytes=limits.retained_memory_bytes,
        owner_retained_messages=limits.company_retained_messages,
        owner_retained_bytes=limits.company_retained_bytes,
        owner_retained_memory_bytes=max(1, limits.retained_memory_bytes // _COMPANIES_THAT_FIT),
        client_retained_messages=limits.terminal_retained_messages,
        client_retained_bytes=limits.terminal_retained_bytes,
        sys_interval_s=0.0 if config.mqtt.sys_topics == "off" else BrokerSettings().sys_interval_s,
    )
