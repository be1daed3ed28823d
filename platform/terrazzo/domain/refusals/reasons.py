"""Why terminals are refused: one row for each reason, from which answers, counters and docs/troubleshooting.md come.

What the broker refuses by itself has the names of ``terrazzo_broker.refusals.Cause``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

STRANGERS_ARE_TOLD = "wrong or missing credentials"
"""What whoever has not proven to be a terminal is told, whatever was wrong."""


class Reason(NamedTuple):
    """One reason.

    Attributes:
        name: names it in answers, frames and the label of ``terrazzo_refusals_total``.
        code: the MQTT 5 reason code, 0 where the terminal gets none (its connection is closed before, or goes on).
        told: the Reason String of MQTT 5; empty: it says what was wrong with the packet, or there is none.
        text: what an operator reads.
        advice: what an operator can do.
        is_ordinary: it happens to terminals in order, too; the log says nothing of it.
    """

    name: str
    code: int
    told: str
    text: str
    advice: str
    is_ordinary: bool = False


WRONG_USER_NAME = Reason(
    "wrong_user_name",
    0x86,
    STRANGERS_ARE_TOLD,
    "the user name is not the terminal's",
    "compare the record's username with the terminal's: case and blanks count",
)
WRONG_PIN = Reason(
    "wrong_pin",
    0x86,
    STRANGERS_ARE_TOLD,
    "the user name is right, the password is not the terminal's pin",
    "compare the record's pin with the terminal's; mode auto expects a signature instead",
)
WRONG_SIGNATURE = Reason(
    "wrong_signature",
    0x86,
    STRANGERS_ARE_TOLD,
    "the user name is right, the password is not a signature made with the terminal's pin (mode auto)",
    "compare the pin; the password is <unix_seconds>.<hex HMAC-SHA256 of 'uid.unix_seconds', key: pin>",
)
SCRAM_MESSAGE = Reason(
    "scram_message",
    0x86,
    STRANGERS_ARE_TOLD,
    "a SCRAM message can't be read",
    "check the terminal's SCRAM library (RFC 5802)",
)
UNKNOWN_TERMINAL = Reason(
    "unknown_terminal",
    0x86,
    STRANGERS_ARE_TOLD,
    "no terminal with this uid is registered",
    "register it, or correct the terminal's client id: it has to be the record's uid",
)
NO_CREDENTIALS = Reason(
    "no_credentials",
    0x87,
    STRANGERS_ARE_TOLD,
    "it gave no user name or no password",
    "configure the terminal with the record's username and pin",
)
CLOCK_OFF = Reason(
    "clock_off",
    0x86,
    "",
    "the signature is right, its time is not",
    "set the terminal's clock (NTP); times are Unix seconds or milliseconds in UTC",
)
REPLAYED = Reason(
    "replayed",
    0x86,
    "this password was used before: sign a later time",
    "the signature is right, but its time is not later than that of the last accepted login",
    "each login needs a later time: milliseconds (13 digits) where one logs in twice a second; if it was not the"
    " terminal, somebody repeats its password: use TLS",
)
SCRAM_REQUIRED = Reason(
    "scram_required",
    0x87,
    "log in by SCRAM: a password is not enough",
    "it logs in by password, and its record asks for SCRAM (dixie = 1)",
    "have the terminal log in by SCRAM over MQTT 5, or set dixie to 0",
)
SCRAM_METHOD = Reason(
    "scram_method",
    0x8C,
    "methods: SCRAM-SHA-1, SCRAM-SHA-256",
    "it asks for an authentication method that there is none of",
    "configure SCRAM-SHA-1 or SCRAM-SHA-256, or a plain password",
)
TERMINAL_DISABLED = Reason(
    "terminal_disabled",
    0x87,
    "the terminal is disabled",
    "the credentials are right, the terminal is disabled",
    "set is_available to 1",
)
COMPANY_CLOSED = Reason(
    "company_closed",
    0x87,
    "the terminal's company is closed",
    "the credentials are right, the terminal's company is closed",
    "a super user sets the company's is_available to 1",
)
CERTIFICATE_NAME = Reason(
    "certificate_name",
    0x87,
    "the client certificate names another terminal",
    "the credentials are right, the client certificate's common name is not the uid",
    "give the terminal a certificate with its uid as common name, or none",
)
CERTIFICATE_MISSING = Reason(
    "certificate_missing",
    0x86,
    STRANGERS_ARE_TOLD,
    "it showed no client certificate, and its record asks for one (mode cert)",
    "give the terminal its certificate and key, and the TLS port; or another mode and a pin",
)
CERTIFICATE_UID = Reason(
    "certificate_uid",
    0x86,
    STRANGERS_ARE_TOLD,
    "its client certificate is for another uid",
    "the certificate's DNS or URI name, without one its common name, has to be the record's uid",
)
CERTIFICATE_EXPIRED = Reason(
    "certificate_expired",
    0x86,
    STRANGERS_ARE_TOLD,
    "its client certificate has expired",
    "give the terminal a new certificate; compare the clocks of both",
)
CERTIFICATE_NOT_YET_VALID = Reason(
    "certificate_not_yet_valid",
    0x86,
    STRANGERS_ARE_TOLD,
    "its client certificate is not valid yet",
    "compare the clocks of the platform and of who signs",
)
CERTIFICATE_AUTHORITY = Reason(
    "certificate_authority",
    0x86,
    STRANGERS_ARE_TOLD,
    "its client certificate is not signed by an authority of its company",
    "get_terminal_authority_list; who has signed the certificate has to be there, an intermediate authority too",
)
CERTIFICATE_UNUSABLE = Reason(
    "certificate_unusable",
    0x86,
    STRANGERS_ARE_TOLD,
    "its client certificate is none that a terminal can log in with",
    "one uid, no CA, keyUsage with digitalSignature, extendedKeyUsage with clientAuth (docs/terminals.md)",
)
RECORD_CHANGED = Reason(
    "record_changed",
    0x87,
    "the terminal's record has just changed: log in again",
    "the terminal's record was changed while it logged in",
    "nothing: it logs in again",
)
THROTTLED = Reason(
    "throttled",
    0x9F,
    "too many failed logins, try again later",
    "too many logins have failed at that address, or under this uid: it has to wait",
    "correct what the failures before this were for; unlock_terminal lets it in at once",
)
LOGIN_BUSY = Reason(
    "login_busy",
    0x89,
    "",
    "too many logins wait for their SCRAM keys",
    "nothing: it tries again; if it lasts, look for who floods the login",
)

CLAIM_REFUSED = Reason(
    "claim_refused",
    0x87,
    "",
    "the claim key is right, and does not let this terminal in",
    "get_claim_key_list shows uses, expiry and prefix of the key; a claim needs TLS (mqtt.provision_plain) and a clean"
    " session",
)
CLAIM_UNFINISHED = Reason(
    "claim_unfinished",
    0x89,
    "",
    "the pin of its claim is right, and its record can't be made",
    "see why: the company has as many terminals as it may, the key has no use left, or the uid is taken",
)

_LOGIN = (
    WRONG_USER_NAME,
    WRONG_PIN,
    WRONG_SIGNATURE,
    SCRAM_MESSAGE,
    UNKNOWN_TERMINAL,
    NO_CREDENTIALS,
    CLOCK_OFF,
    REPLAYED,
    SCRAM_REQUIRED,
    SCRAM_METHOD,
    TERMINAL_DISABLED,
    COMPANY_CLOSED,
    CERTIFICATE_NAME,
    CERTIFICATE_MISSING,
    CERTIFICATE_UID,
    CERTIFICATE_EXPIRED,
    CERTIFICATE_NOT_YET_VALID,
    CERTIFICATE_AUTHORITY,
    CERTIFICATE_UNUSABLE,
    RECORD_CHANGED,
    THROTTLED,
    LOGIN_BUSY,
    CLAIM_REFUSED,
    CLAIM_UNFINISHED,
)

_CONNECT = (
    Reason(
        "tls_failed",
        0,
        "",
        "the TLS handshake failed",
        "compare authority, host name and clock with the server's certificate; TLS 1.2 or 1.3; plain MQTT has another"
        " port",
    ),
    Reason(
        "proxy_header",
        0,
        "",
        "the PROXY protocol header is missing or can't be read",
        "have the proxy send it, or take the address out of http.trusted_proxies",
    ),
    Reason(
        "upgrade_refused",
        0,
        "",
        "the HTTP request doesn't lead to MQTT over WebSocket",
        "use the path /mqtt and the subprotocol mqtt; for web pages name their origin in http.allowed_origins",
    ),
    Reason(
        "half_open",
        0,
        "",
        "too many connections from there haven't logged in",
        "look for what opens connections there; limits.half_open_per_address, behind a proxy http.trusted_proxies",
    ),
    Reason(
        "login_timeout",
        0,
        "",
        "it opened a connection and did not log in in time",
        "look at the network between (MTU, firewall), and whether the terminal speaks MQTT on this port",
    ),
    Reason(
        "unsupported_protocol",
        0x84,
        "",
        "it speaks a version of MQTT that is none of 3.1, 3.1.1 and 5.0",
        "configure MQTT 3.1.1 or 5.0",
    ),
    Reason(
        "client_id_not_valid",
        0x85,
        "",
        "its client id is empty",
        "configure the record's uid as client id",
    ),
    Reason(
        "connect_rate",
        0x9F,
        "too many connects a second",
        "more connect at once than have their turn in time",
        "nothing: it tries again; if it lasts, raise limits.connects_per_second",
    ),
    Reason(
        "too_many_connections",
        0x97,
        "too many connections",
        "as many terminals are connected as may be",
        "raise limits.connections",
    ),
    Reason(
        "login_unavailable",
        0x88,
        "authentication is not available",
        "the login failed by an error of the platform's",
        "look at the log, and report it",
    ),
    Reason(
        "connack_too_large",
        0x95,
        "",
        "the terminal's Maximum Packet Size is too small even for the answer to its login",
        "raise Maximum Packet Size in the terminal",
    ),
)

_PACKETS = (
    Reason(
        "malformed_packet",
        0x81,
        "",
        "what it sent can't be read as MQTT",
        "report it to the maker of the firmware; on plain MQTT look for what changes bytes on the way",
    ),
    Reason(
        "protocol_error",
        0x82,
        "",
        "what it sent is not allowed in MQTT at that point",
        "report it to the maker of the firmware, with the detail",
    ),
    Reason(
        "packet_too_large",
        0x95,
        "",
        "its packet is too large",
        "send less at once; limits.mqtt_packet_bytes, before the login limits.connect_bytes",
    ),
    Reason(
        "receive_maximum_exceeded",
        0x93,
        "receive maximum exceeded",
        "more of its publishes wait for their acknowledgement than may",
        "have the terminal keep to Receive Maximum; limits.inflight",
    ),
    Reason(
        "topic_alias_invalid",
        0x94,
        "",
        "it used a topic alias that is not allowed",
        "have the terminal keep to Topic Alias Maximum of the answer to its login",
    ),
    Reason(
        "topic_name_invalid",
        0x90,
        "not a topic to publish on",
        "it published on what is no topic",
        "publish on g/<uid>/<channel>: no wildcards, no more than 200 levels and limits.topic_bytes",
    ),
    Reason(
        "storage_unavailable",
        0x97,
        "messages can't be stored at the moment",
        "the broker's disk takes no writes",
        "free disk space; terrazzo doctor",
    ),
    Reason(
        "internal_error",
        0x83,
        "internal error",
        "an error of the platform's",
        "look at the log, and report it",
    ),
    Reason(
        "publish_not_allowed",
        0x87,
        "publishing on this topic is not allowed",
        "its record doesn't allow publishing on the topic",
        "compare the topic with the record's access and topic; another terminal's topic needs is_route and a common"
        " object",
    ),
    Reason(
        "publish_quota",
        0x97,
        "too many messages wait for subscribers of this topic",
        "too much waits for who has subscribed to the topic",
        "look for the slow or absent subscriber (get_client_list, get_subscription_list); limits.queued_messages",
    ),
    Reason(
        "publish_rate",
        0,
        "",
        "it publishes faster than it may, and is read more slowly",
        "have it publish less often, or raise limits.publish_per_second",
    ),
    Reason(
        "retained_quota",
        0x97,
        "no more messages may be retained",
        "as much is retained as may be",
        "remove retained messages (an empty one on the topic), or raise limits.terminal_retained_messages",
    ),
    Reason(
        "payload_format_invalid",
        0x99,
        "the payload is not the UTF-8 that it is said to be",
        "its payload is not the UTF-8 that its format indicator says it is",
        "leave Payload Format Indicator at 0 for MessagePack and encrypted payloads",
    ),
    Reason(
        "payload_refused",
        0x99,
        "the payload can't be used, and is kept as a reject",
        "its payload can't be read, or its time is ahead of the clock",
        "get_reject_list has the payload and what is wrong with it",
    ),
    Reason(
        "subscribe_not_allowed",
        0x87,
        "subscribing to this filter is not allowed",
        "its record doesn't allow subscribing to the filter",
        "compare the filter with the record's access and topic; p2p/<uid> is always allowed, unless access is pub",
    ),
    Reason(
        "topic_filter_invalid",
        0x8F,
        "not a topic filter",
        "it subscribed to what is no topic filter",
        "# stands at the end alone, + for a whole level; no more than 200 levels and limits.topic_bytes",
    ),
    Reason(
        "subscription_quota",
        0x97,
        "there are as many subscriptions as may be",
        "it, or its company, has as many subscriptions as may be",
        "subscribe to fewer filters, or raise limits.company_subscriptions",
    ),
)

_ENDS = (
    Reason(
        "taken_over",
        0x8E,
        "taken over",
        "another connection has logged in with its client id",
        "from the same address it is the terminal itself, back after a cut; from another one two devices have one uid",
        is_ordinary=True,
    ),
    Reason(
        "keep_alive_timeout",
        0x8D,
        "keep-alive timeout",
        "it sent nothing for one and a half times its keep-alive",
        "look at its power and network; a longer keep-alive where the network sleeps",
        is_ordinary=True,
    ),
    Reason(
        "not_reading",
        0x97,
        "does not read, and memory is short",
        "it took nothing of what it was sent, while memory was short",
        "have it subscribe to less, or read faster; limits.memory_mib",
    ),
    Reason(
        "ended_by_server",
        0x98,
        "",
        "the platform has ended its connection",
        "the detail says why; after a change of its record it logs in again by itself",
        is_ordinary=True,
    ),
    Reason(
        "session_expired",
        0,
        "",
        "its session has ended while it was away: its subscriptions are gone",
        "a longer session expiry (session_expiry of the record); it subscribes again when Session Present is 0",
        is_ordinary=True,
    ),
)

REASONS: Mapping[str, Reason] = {each.name: each for each in (*_LOGIN, *_CONNECT, *_PACKETS, *_ENDS)}
"""All reasons by name, in the order of docs/troubleshooting.md."""
