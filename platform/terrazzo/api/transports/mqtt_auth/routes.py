"""``/mqtt/...``: MQTT brokers ask who may log in, and which topics; off unless it is configured who may ask.

========================= ==========================================================================
``/mqtt/auth, acl``        EMQX 5: 200 and ``{"result": "allow" | "deny", "is_superuser": false}``
``/mqtt/status/auth, acl`` by status alone: 200 or 403 (HTTP backends of plugins for Mosquitto)
``/mqtt/rabbitmq/...``     RabbitMQ: 200 and ``allow`` or ``deny``
========================= ==========================================================================
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.dispatch import bearer_token
from terrazzo.api.kernel.envelope import NOT_AUTHENTICATED, NOT_PERMITTED, UNREAD, Failure
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import BrokerAsking
from terrazzo.api.transports.bodies.media_type import media_type_of
from terrazzo.api.transports.bodies.reader import UNPROVEN_BYTES, BodyBound, BodyReader
from terrazzo.api.transports.connection import connection_of
from terrazzo.api.transports.mqtt_auth import rabbitmq
from terrazzo.api.transports.mqtt_auth.fields import BadQuestion, address_of, given, needed, read_fields
from terrazzo.api.transports.peers.client_address import client_address
from terrazzo.memory_shares import NOBODY
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.provisioning import REMOTE
from terrazzo.terminals.remote_access import RemoteAccess, RemoteClient
from terrazzo_broker.hooks import ConnectRequest

_BOUND = BodyBound(UNPROVEN_BYTES, "the most that a broker's question has")
_MQTT_LEVELS = {"3": 3, "4": 4, "5": 5}
_log = SparseLog(logging.getLogger(__name__))

Question = Callable[[Mapping[str, str], str], Awaitable[bool]]
"""Decides on a question by its fields and the address of whoever asks; raises ``BadQuestion``."""

Reply = Callable[[bool], web.Response]


class MqttAuthRoutes:
    """The handlers, one for each path."""

    def __init__(self, asking: BrokerAsking, bodies: BodyReader) -> None:
        self._asking = asking
        self._access: RemoteAccess = asking.access
        self._bodies = bodies

    def __iter__(self) -> Iterator[tuple[str, Handler]]:
        """For each path its handler of POST."""
        yield "/mqtt/auth", self._handler(self._may_connect, _emqx)
        yield "/mqtt/acl", self._handler(self._may_use_topic, _emqx)
        yield "/mqtt/status/auth", self._handler(self._may_connect, _status)
        yield "/mqtt/status/acl", self._handler(self._may_use_topic, _status)
        yield "/mqtt/rabbitmq/user", self._handler(self._may_connect, _word)
        yield "/mqtt/rabbitmq/vhost", self._handler(self._may_enter_vhost, _word)
        yield "/mqtt/rabbitmq/resource", self._handler(self._may_use_resource, _word)
        yield "/mqtt/rabbitmq/topic", self._handler(self._may_use_routing_key, _word)

    def _handler(self, question: Question, reply: Reply) -> Handler:
        async def handle_question(request: web.Request) -> web.StreamResponse:
            address = client_address(request)
            refusal = self._refusal(request, address)
            if refusal is not None:
                self._access.stats.askers_refused += 1
                return refusal
            connection = connection_of(request)
            if connection is not None and connection.slot is not None:
                connection.slot.prove(NOBODY)  # who may ask has as good as a token
            async with self._bodies.whole(request, Caller(address), _BOUND) as body:
                try:
                    return reply(await question(read_fields(body, *media_type_of(request)), address))
                except BadQuestion as error:
                    self._access.stats.malformed += 1
                    _log.warning("denied a question of %s at %s: %s", address, request.path, error)
                    return reply(False)

        return handle_question

    # Who may ask

    def _refusal(self, request: web.Request, address: str) -> web.Response | None:
        """The answer to who may not ask, None for who may."""
        if self._asking.askers and address not in self._asking.askers:
            _log.warning("refused a broker's question from %s (broker.auth_from)", address)
            return _failed(Failure(NOT_PERMITTED, "address: it may not ask (broker.auth_from)", HTTPStatus.FORBIDDEN))
        if self._asking.token and not _is_right(request, self._asking.token):
            _log.warning("refused a broker's question from %s: no token, or a wrong one (broker.auth_token)", address)
            info = "Authorization: expected Bearer and the token of broker.auth_token, or Basic with it as the password"
            refused = _failed(Failure(NOT_AUTHENTICATED, info, HTTPStatus.UNAUTHORIZED))
            refused.headers[hdrs.WWW_AUTHENTICATE] = 'Bearer realm="mqtt"'
            return refused
        return None

    # The questions

    async def _may_connect(self, fields: Mapping[str, str], asker: str) -> bool:
        password = given(fields, "password")
        request = ConnectRequest(
            client_id=needed(fields, "clientid", "client_id"),
            username=given(fields, "username"),
            password=None if password is None else password.encode("utf-8", "surrogatepass"),
            protocol=_MQTT_LEVELS.get(given(fields, "proto_ver", "protocol") or "", 4),
            address=address_of(fields, asker),
            listener=REMOTE,
        )
        return await self._access.may_connect(request)

    async def _may_use_topic(self, fields: Mapping[str, str], asker: str) -> bool:
        topic, client = needed(fields, "topic"), _client(fields, asker)
        publishes, subscribes = _wishes(fields)
        return (not publishes or self._access.may_publish(client, topic)) and (
            not subscribes or self._access.may_subscribe(client, topic)
        )

    async def _may_enter_vhost(self, fields: Mapping[str, str], asker: str) -> bool:
        return rabbitmq.may_enter_vhost(fields)

    async def _may_use_resource(self, fields: Mapping[str, str], asker: str) -> bool:
        return rabbitmq.may_use_resource(self._access, fields, _client_of_rabbitmq(fields, asker))

    async def _may_use_routing_key(self, fields: Mapping[str, str], asker: str) -> bool:
        return rabbitmq.may_use_topic(self._access, fields, _client_of_rabbitmq(fields, asker))


_WISHES = {
    "publish": (True, False),
    "subscribe": (False, True),
    "1": (False, True),  # to read, as plugins for Mosquitto say: to be sent a message
    "2": (True, False),  # to write
    "3": (True, True),
    "4": (False, True),  # to subscribe
}


def _wishes(fields: Mapping[str, str]) -> tuple[bool, bool]:
    """Whether a question is about publishing, and whether about subscribing."""
    asked = needed(fields, "action", "acc")
    if asked not in _WISHES:
        raise BadQuestion("action is neither publish nor subscribe")
    return _WISHES[asked]


def _client(fields: Mapping[str, str], asker: str) -> RemoteClient:
    return RemoteClient(needed(fields, "clientid", "client_id"), given(fields, "username"), address_of(fields, asker))


def _client_of_rabbitmq(fields: Mapping[str, str], asker: str) -> RemoteClient:
    return RemoteClient(rabbitmq.client_id_of(fields), needed(fields, "username"), address_of(fields, asker))


def _is_right(request: web.Request, wanted: str) -> bool:
    """Whether a request has the token: as a bearer's, or as a password, which is what an address can carry."""
    header = request.headers.get(hdrs.AUTHORIZATION, "")
    token = (bearer_token(header) or _basic_password(header)).encode("utf-8", "surrogateescape")
    return hmac.compare_digest(token, wanted.encode())


def _basic_password(header: str) -> str:
    scheme, _, credential = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(credential.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeError, ValueError):
        return ""


def _failed(failure: Failure) -> web.Response:
    answer = UNREAD.failure(failure)
    return web.Response(body=answer.body, status=answer.status, content_type="application/json")


# The answers, as each broker reads them


def _emqx(is_allowed: bool) -> web.Response:
    word = b"allow" if is_allowed else b"deny"
    body = b'{"result":"' + word + b'","is_superuser":false}'
    return web.Response(body=body, content_type="application/json")


def _status(is_allowed: bool) -> web.Response:
    return web.Response(status=HTTPStatus.OK if is_allowed else HTTPStatus.FORBIDDEN)


def _word(is_allowed: bool) -> web.Response:
    return web.Response(text="allow" if is_allowed else "deny")
