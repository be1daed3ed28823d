"""Why something is refused, or a connection ends; and what the peer is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import SupportsInt


class Cause(StrEnum):
    """Why something was refused, or a connection ended. What the hooks refuse at a login they know themselves."""

    # before a CONNECT, by address alone
    TLS_FAILED = "tls_failed"
    CERTIFICATE_EXPIRED = "certificate_expired"  # the client's, at the TLS handshake
    CERTIFICATE_NOT_YET_VALID = "certificate_not_yet_valid"
    CERTIFICATE_AUTHORITY = "certificate_authority"  # that nobody here trusts
    CERTIFICATE_UNUSABLE = "certificate_unusable"  # for a client, or at all
    PROXY_HEADER = "proxy_header"
    UPGRADE_REFUSED = "upgrade_refused"  # of HTTP to WebSocket
    HALF_OPEN = "half_open"  # too many connections that haven't logged in
    LOGIN_TIMEOUT = "login_timeout"
    # CONNECT
    UNSUPPORTED_PROTOCOL = "unsupported_protocol"
    CLIENT_ID_NOT_VALID = "client_id_not_valid"
    CONNECT_RATE = "connect_rate"
    TOO_MANY_CONNECTIONS = "too_many_connections"
    LOGIN_UNAVAILABLE = "login_unavailable"  # the authenticate hook has failed
    CONNACK_TOO_LARGE = "connack_too_large"
    # any packet
    MALFORMED_PACKET = "malformed_packet"
    PROTOCOL_ERROR = "protocol_error"
    PACKET_TOO_LARGE = "packet_too_large"
    RECEIVE_MAXIMUM = "receive_maximum_exceeded"
    TOPIC_ALIAS_INVALID = "topic_alias_invalid"
    TOPIC_NAME_INVALID = "topic_name_invalid"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    INTERNAL_ERROR = "internal_error"
    # PUBLISH
    PUBLISH_NOT_ALLOWED = "publish_not_allowed"
    PUBLISH_QUOTA = "publish_quota"  # no receiver had room
    PUBLISH_RATE = "publish_rate"  # read more slowly
    RETAINED_QUOTA = "retained_quota"
    PAYLOAD_FORMAT_INVALID = "payload_format_invalid"
    PAYLOAD_REFUSED = "payload_refused"  # by the embedding program, which took the batch
    # SUBSCRIBE
    SUBSCRIBE_NOT_ALLOWED = "subscribe_not_allowed"
    TOPIC_FILTER_INVALID = "topic_filter_invalid"
    SUBSCRIPTION_QUOTA = "subscription_quota"
    # the end of a connection or session
    TAKEN_OVER = "taken_over"
    KEEP_ALIVE_TIMEOUT = "keep_alive_timeout"
    NOT_READING = "not_reading"
    ENDED_BY_SERVER = "ended_by_server"
    SESSION_EXPIRED = "session_expired"


TOLD: Mapping[Cause, str] = {
    Cause.PUBLISH_NOT_ALLOWED: "publishing on this topic is not allowed",
    Cause.PUBLISH_QUOTA: "too many messages wait for subscribers of this topic",
    Cause.RETAINED_QUOTA: "no more messages may be retained",
    Cause.PAYLOAD_FORMAT_INVALID: "the payload is not the UTF-8 that it is said to be",
    Cause.PAYLOAD_REFUSED: "the payload can't be used, and is kept as a reject",
    Cause.STORAGE_UNAVAILABLE: "messages can't be stored at the moment",
    Cause.SUBSCRIBE_NOT_ALLOWED: "subscribing to this filter is not allowed",
    Cause.TOPIC_FILTER_INVALID: "not a topic filter",
    Cause.SUBSCRIPTION_QUOTA: "there are as many subscriptions as may be",
}
"""The Reason String of PUBACK, PUBREC and SUBACK."""

_CAUSES = {
    0x81: Cause.MALFORMED_PACKET,
    0x90: Cause.TOPIC_NAME_INVALID,
    0x93: Cause.RECEIVE_MAXIMUM,
    0x94: Cause.TOPIC_ALIAS_INVALID,
    0x95: Cause.PACKET_TOO_LARGE,
    0x99: Cause.PAYLOAD_FORMAT_INVALID,
}


def cause_of(reason: SupportsInt) -> Cause:
    """The cause of an error of the peer's, by the reason code that it is answered with."""
    return _CAUSES.get(int(reason), Cause.PROTOCOL_ERROR)
