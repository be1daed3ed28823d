"""The OpenAPI document's paths that MQTT brokers ask at (docs/beside-a-broker.md); only where they are configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from terrazzo.api.openapi.schemas import Schema

SECURITY_SCHEMES: Schema = {
    "broker": {"type": "http", "scheme": "bearer", "description": "`broker.auth_token`"},
    "broker_basic": {"type": "http", "scheme": "basic", "description": "`broker.auth_token` as the password"},
}
"""How a broker shows that it may ask."""

# Each with whether it has to be there.
_LOGIN = {"clientid": True, "username": False, "password": False, "peerhost": False}
_TOPIC = {"clientid": True, "username": False, "topic": True, "action": True, "peerhost": False}
_RABBITMQ_USER = {"client_id": True, "username": False, "password": False, "vhost": False}
_RABBITMQ_VHOST = {"username": True, "vhost": True, "ip": False}
_RABBITMQ_RESOURCE = {"username": True, "vhost": False, "resource": True, "name": True, "permission": True}
_RABBITMQ_TOPIC = {"username": True, "vhost": False, "name": True, "permission": True, "routing_key": True}
_EMQX: Schema = {
    "type": "object",
    "required": ["result", "is_superuser"],
    "properties": {"result": {"enum": ["allow", "deny"]}, "is_superuser": {"const": False}},
}
_EMQX_ANSWER: Schema = {"200": {"description": "Allowed or denied", "content": {"application/json": {"schema": _EMQX}}}}
_STATUS_ANSWER: Schema = {"200": {"description": "Allowed"}}
_WORD: Schema = {"type": "string", "enum": ["allow", "deny"]}
_WORD_ANSWER: Schema = {"200": {"description": "Allowed or denied", "content": {"text/plain": {"schema": _WORD}}}}


def describe_brokers(refused: Schema) -> Schema:
    """The paths, by address and method; ``refused`` are the answers to requests that are not read."""
    paths = (
        ("/mqtt/auth", "Whether a terminal may log in, as EMQX asks", _LOGIN, _EMQX_ANSWER),
        ("/mqtt/acl", "Whether a terminal may use a topic, as EMQX asks", _TOPIC, _EMQX_ANSWER),
        ("/mqtt/status/auth", "Whether a terminal may log in, by status", _LOGIN, _STATUS_ANSWER),
        ("/mqtt/status/acl", "Whether a terminal may use a topic, by status", _TOPIC, _STATUS_ANSWER),
        ("/mqtt/rabbitmq/user", "Whether a terminal may log in, as RabbitMQ asks", _RABBITMQ_USER, _WORD_ANSWER),
        ("/mqtt/rabbitmq/vhost", "Whether it may enter a virtual host", _RABBITMQ_VHOST, _WORD_ANSWER),
        ("/mqtt/rabbitmq/resource", "Whether it may use an exchange or queue", _RABBITMQ_RESOURCE, _WORD_ANSWER),
        ("/mqtt/rabbitmq/topic", "Whether it may use a routing key", _RABBITMQ_TOPIC, _WORD_ANSWER),
    )
    return {at: {"post": _question(at, summary, fields, answer, refused)} for at, summary, fields, answer in paths}


def _question(at: str, summary: str, fields: Mapping[str, bool], answer: Schema, refused: Schema) -> Schema:
    asked: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in fields},
        "required": [name for name, is_needed in fields.items() if is_needed],
    }
    return {
        "operationId": f"broker{at.replace('/', '_')}",
        "tags": ["operators"],
        "summary": summary,
        "security": [{name: []} for name in SECURITY_SCHEMES],
        "requestBody": {
            "required": True,
            "content": {each: {"schema": asked} for each in ("application/json", "application/x-www-form-urlencoded")},
        },
        "responses": {
            **answer,
            "401": {"description": "`broker.auth_token` is set, and not given"},
            "403": {"description": "An address that may not ask, or (by status) denied"},
            **refused,
        },
    }
