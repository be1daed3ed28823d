"""What RabbitMQ's HTTP backend asks: user, vhost, resource and topic; there MQTT is queues and routing keys.

``/`` of a topic is ``.`` of a routing key, ``+`` is ``*``. A client's subscriptions are bindings of queues that have
its client id in their name.
"""

from __future__ import annotations

from collections.abc import Mapping

from terrazzo.api.transports.mqtt_auth.fields import given, needed
from terrazzo.terminals.remote_access import RemoteAccess, RemoteClient

EXCHANGE = "amq.topic"
"""The exchange of MQTT in RabbitMQ's defaults; terminals get no other."""

_QUEUE = "mqtt-subscription-"


def may_enter_vhost(fields: Mapping[str, str]) -> bool:
    """Whether a user may enter a virtual host: whoever was let in; RabbitMQ's configuration says which one it is."""
    return bool(needed(fields, "username") and needed(fields, "vhost"))


def may_use_resource(access: RemoteAccess, fields: Mapping[str, str], client: RemoteClient) -> bool:
    """Whether a user may use an exchange or a queue: MQTT's exchange, and the queues of its own subscriptions."""
    kind, name = needed(fields, "resource"), needed(fields, "name")
    permission = needed(fields, "permission")
    if kind == "exchange":
        return name == EXCHANGE and permission in ("read", "write")
    if kind != "queue" or permission not in ("configure", "read", "write"):
        return False
    owner = _owner_of_queue(name)
    if not owner or client.client_id not in ("", owner):
        return False
    return access.terminal_of(RemoteClient(owner, client.username, client.address)) is not None


def may_use_topic(access: RemoteAccess, fields: Mapping[str, str], client: RemoteClient) -> bool:
    """Whether a user may publish with a routing key, or bind one."""
    if needed(fields, "name") != EXCHANGE:
        return False
    topic = needed(fields, "routing_key").replace(".", "/")
    match needed(fields, "permission"):
        case "write":
            return access.may_publish(client, topic)
        case "read":
            return access.may_subscribe(client, topic.replace("*", "+"))
    return False


def client_id_of(fields: Mapping[str, str]) -> str:
    """The MQTT client id in a question, empty where there is none."""
    return given(fields, "variable_map.client_id", "client_id") or ""


def _owner_of_queue(name: str) -> str:
    """The client id in the name of a queue of MQTT subscriptions, empty where it is none."""
    rest, separator, qos = name.removeprefix(_QUEUE).rpartition("qos")
    return rest if name.startswith(_QUEUE) and separator and qos in ("0", "1") else ""
