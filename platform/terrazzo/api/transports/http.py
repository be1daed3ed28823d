"""The HTTP port: gateway, components, documents, liveness, readiness and metrics; and the WebSocket port."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from http import HTTPStatus
from math import ceil
from typing import NamedTuple

import msgspec
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.column_reply import column_form_of
from terrazzo.api.kernel.components import Components, query_values
from terrazzo.api.kernel.dispatch import Gateway, Performer, bearer_token
from terrazzo.api.kernel.envelope import BAD_PARAMETER, FAILURE, NOT_PERMITTED, UNREAD, Answer, Failure, explain
from terrazzo.api.kernel.operation import Caller, Operation, as_it_is
from terrazzo.api.kernel.readiness import check_readiness
from terrazzo.api.kernel.reading_time import ReadingTime
from terrazzo.api.kernel.replica.answering import LeadersAnswers
from terrazzo.api.kernel.replica.performers import new_kernel
from terrazzo.api.kernel.replica.position import POSITION
from terrazzo.api.kernel.services import ApiLimits, ReadinessCheck, Services
from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.openapi.document import GATEWAY_PATH, RETAINER_PATH, action_path, build_document
from terrazzo.api.operations.history.export import EXPORTS, Export
from terrazzo.api.operations.live import open_session
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from terrazzo.api.transports.bodies.forms import MULTIPART, URLENCODED, Form, read_multipart, read_urlencoded
from terrazzo.api.transports.bodies.media_type import media_type_of
from terrazzo.api.transports.bodies.multipart import BadForm
from terrazzo.api.transports.bodies.reader import BodyBound, BodyReader, BodyRefused, on_expect
from terrazzo.api.transports.bulk_routes import BulkRoutes
from terrazzo.api.transports.connection import connection_of
from terrazzo.api.transports.connection_limiter import ConnectionLimiter
from terrazzo.api.transports.console.files import console_handlers
from terrazzo.api.transports.console.policy_reports import PolicyReports
from terrazzo.api.transports.console.session_cookie import COOKIES, HEADER, SessionCookies
from terrazzo.api.transports.docs_page import document_handlers
from terrazzo.api.transports.file_routes import FileRoutes
from terrazzo.api.transports.firmware import firmware_handler
from terrazzo.api.transports.freshness import freshness_marker
from terrazzo.api.transports.influx_routes import InfluxRoutes
from terrazzo.api.transports.json_response import SentResponse
from terrazzo.api.transports.known_heads import HEADS, KnownHeads
from terrazzo.api.transports.metrics_page import metrics_handler
from terrazzo.api.transports.mqtt_auth.routes import MqttAuthRoutes
from terrazzo.api.transports.peers.client_address import PROXIES, client_address
from terrazzo.api.transports.peers.origins import Origins
from terrazzo.api.transports.refusals import refused_with
from terrazzo.api.transports.streaming import StreamReply, send_stream
from terrazzo.api.transports.websocket import GatewaySockets
from terrazzo.campaigns.download_links import FIRMWARE_PATH
from terrazzo.ports.tracing import HEADER as TRACEPARENT
from terrazzo.reasons import reason_of, say, told_by
from terrazzo.sparse_log import SparseLog

_ANSWER = web.ResponseKey("answer", Answer)
_JSON = "application/json"
_log = SparseLog(logging.getLogger(__name__))


class Apps(NamedTuple):
    """What the ports serve, on one gateway and with one count of connections."""

    http: web.Application  # every route, WebSocket among them
    websocket: web.Application  # the gateway over WebSocket alone
    gateway: Gateway
    connection_limiter: ConnectionLimiter
    reading_time: ReadingTime
    for_replicas: LeadersAnswers


def build_apps(services: Services) -> Apps:
    """The applications, on one gateway."""
    traffic, limits = Traffic(), services.limits
    connection_limiter = ConnectionLimiter.of(limits, services.proxies)
    performer, validator, gateway, components = new_kernel(services, traffic, TABLE)
    http = web.Application()
    for_replicas = LeadersAnswers(gateway, components, PATHS)
    reading_time = ReadingTime(limits.reading_s)
    apps = Apps(http, web.Application(), gateway, connection_limiter, reading_time, for_replicas)
    session = partial(open_session, services)
    origins, policy_reports = (
        Origins(services.allowed_origins, services.proxies),
        PolicyReports(limits.request_timeout_s),
    )
    cookies = SessionCookies(services.tokens, origins, lifetime_s=services.session_s, instance=services.instance)
    sockets = GatewaySockets(
        gateway, connection_limiter, limits=services.limits, open_session=session, read_cookie=cookies.read
    )
    for app in (apps.http, apps.websocket):
        app.on_shutdown.append(sockets.close)
        _set_up(app, services, origins, cookies)
    routes = _Routes(apps.http, traffic, origins)
    bodies = BodyReader(services.tokens, services.memory, timeout_s=services.limits.request_timeout_s)
    handle_gateway = _gateway_handler(gateway, bodies, services.limits)
    apps.http[HEADS] = KnownHeads(_sure(gateway))
    routes.add("POST", GATEWAY_PATH, handle_gateway, upgrade=sockets.handle)
    of_actions = {each.name: _gateway_handler(gateway, bodies, services.limits, each.name) for each in TABLE}
    routes.add_names("POST", action_path("{name}"), of_actions)
    routes.add("POST", services.prefixes.get("retainer_base", RETAINER_PATH), handle_gateway)
    for address, methods in _component_routes(services, components, bodies).items():
        routes.add_methods(address, methods)
    for address, methods in _bulk_routes(services, performer, validator, bodies):
        routes.add_methods(address, methods)
    for address, methods in _file_routes(services, performer, validator, bodies):
        routes.add_methods(address, methods)
    influx = InfluxRoutes(performer=performer, bodies=bodies, body_bytes=limits.body_bytes, caller_of=_caller)
    for address, handlers in influx:
        routes.add_methods(address, handlers)
    for operation in EXPORTS:
        routes.add("GET", operation.path, _export_handler(operation, performer, validator))
    has_brokers = services.broker_asking is not None
    for at, handler in document_handlers(lambda: build_document(prefixes=services.prefixes, has_brokers=has_brokers)):
        routes.add("GET", at, handler)
    for at, handler in console_handlers(services.map_tiles.address):
        routes.add("GET", at, handler)
    routes.add("POST", "/console/policy-reports", policy_reports.handle)
    routes.add("GET", FIRMWARE_PATH, firmware_handler(services.firmware))
    routes.add("GET", "/healthz", _handle_health, has_reserve=True)
    reads = services.readiness if services.cluster.read_checks is None else services.cluster.read_checks
    routes.add("GET", "/readyz", _readiness_handler(services, services.readiness), has_reserve=True)
    routes.add("GET", "/readyz/reads", _readiness_handler(services, reads), has_reserve=True)
    routes.add("GET", "/metrics", metrics_handler(services, traffic, connection_limiter, origins, policy_reports))
    if services.broker_asking is not None:
        for at, handler in MqttAuthRoutes(services.broker_asking, bodies):
            routes.add("POST", at, handler)
    routes.add("*", "/{path:.*}", _refuse_path)
    alone = _Routes(apps.websocket, traffic, origins)
    alone.add("GET", GATEWAY_PATH, sockets.handle)
    alone.add("*", "/{path:.*}", _refuse_path)
    return apps


def _set_up(app: web.Application, services: Services, origins: Origins, cookies: SessionCookies) -> None:
    """What each request and response of a port goes through."""
    app[PROXIES] = services.proxies
    app[COOKIES] = cookies
    app.on_response_prepare.append(origins.mark)
    app.on_response_prepare.append(cookies.write)
    if services.cluster.replica is not None:
        app.on_response_prepare.append(freshness_marker(services.cluster.replica))


class _Routes:
    """Puts into an envelope what reaches no operation. A middleware would do the same at a tenth of each request."""

    def __init__(self, app: web.Application, traffic: Traffic, origins: Origins) -> None:
        self._router = app.router
        self._traffic = traffic
        self._origins = origins

    def add(
        self, method: str, path: str, handler: Handler, *, upgrade: Handler | None = None, has_reserve: bool = False
    ) -> None:
        """A path that takes one method, and GET for an ``upgrade``; HEAD goes where GET goes.

        ``has_reserve``: it is answered when all places for connections are taken, too.
        """
        placed = handler if has_reserve else _with_place(handler)
        self._add(path, {method: placed}, {} if upgrade is None else {"GET": _with_place(upgrade)})

    def add_methods(self, path: str, handlers: Mapping[str, Handler]) -> None:
        """A path that takes several methods."""
        self._add(path, {method: _with_place(handler) for method, handler in handlers.items()}, {})

    def add_names(self, method: str, path: str, handlers: Mapping[str, Handler]) -> None:
        """Paths that take one method and differ in ``{name}``: one route, which is told apart here.

        Some hundred routes would be an eighth of what a start computes.
        """
        placed = {name: _with_place(handler) for name, handler in handlers.items()}
        refuse_method, refuse_path = _method_refuser([method]), _with_place(_refuse_path)

        async def handle(request: web.Request) -> web.StreamResponse:
            of_name = placed.get(request.match_info["name"])
            if of_name is None:
                return await refuse_path(request)
            return await (of_name if request.method == method else refuse_method)(request)

        self._add(path, {"*": handle}, {})

    def _add(self, path: str, handlers: Mapping[str, Handler], upgrades: Mapping[str, Handler]) -> None:
        """One route for all methods, of which a path of aiohttp's may have one each."""
        both = {"HEAD": handlers["GET"]} if "GET" in handlers else {}
        other = handlers.get("*") or _method_refuser([*handlers, *both])
        handle = self._enveloped({**handlers, **both, **upgrades}, other)
        self._router.add_resource(path).add_route("*", handle, expect_handler=on_expect)

    def _enveloped(self, handlers: Mapping[str, Handler], other: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            connection = connection_of(request)
            if connection is not None:
                connection.on_request()
                if connection.is_proxied:
                    connection.enter_request(client_address(request))
            try:
                response = await self._handle(handlers.get(request.method, other), request)
            except web.HTTPException as refusal:
                response = _refuse(request, refusal, self._traffic)
            except BodyRefused as refusal:
                response = _refuse_body(request, refusal, self._traffic)
            except Exception as error:  # noqa: BLE001 - explain() logs it
                response = SentResponse(stays=False) if _is_gone(request, error) else _respond(_unexpected(error))
            is_whole = request.content.is_eof()
            if not is_whole or (connection is not None and connection.is_in_reserve):
                response.force_close()  # what is still to come of the body is not the next head
            if connection is not None:
                response = await _sent(request, response)
                connection.on_answered(request, stays=is_whole and bool(response.keep_alive))
            return response

        return handle

    async def _handle(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        if hdrs.ORIGIN in request.headers:
            if (preflight := self._origins.preflight(request)) is not None:
                return preflight
            self._origins.check(request)
        return await handler(request)


def _is_gone(request: web.Request, error: Exception) -> bool:
    """Whether an error says no more than that the peer has gone meanwhile."""
    transport = request.transport
    return isinstance(error, ConnectionError) and (transport is None or transport.is_closing())


def _with_place(handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        connection = connection_of(request)
        if connection is not None and (refusal := connection.refusal):
            raise refused_with(web.HTTPServiceUnavailable(), refusal)
        return await handler(request)

    return handle


def _gateway_handler(gateway: Gateway, bodies: BodyReader, limits: ApiLimits, action: str = "") -> Handler:
    """Answers at the gateway's address, or at that of one ``action``, whose request may have no body."""
    bound = BodyBound(limits.body_bytes)

    async def handle_gateway(request: web.Request) -> web.StreamResponse:
        if request.can_read_body or not action:
            _check_media_type(request)
        caller = _caller(request)
        token = caller.token  # as it came: what is asked may change the caller's
        columns = column_form_of(request.headers[hdrs.ACCEPT]) if hdrs.ACCEPT in request.headers else None
        async with bodies.whole(request, caller, bound) as body:
            answer = await gateway.answer(body, caller, action, columns=columns)
        if columns is not None:
            return _respond(answer)
        connection = connection_of(request)
        if connection is None or not _is_plain(request):
            return _respond(answer)
        if answer.status == HTTPStatus.OK:
            connection.learn_head(request, token, action)
        with suppress(ConnectionError):  # aiohttp notices itself that the peer is gone
            await connection.send(answer)
        return SentResponse()

    return handle_gateway


def _is_plain(request: web.Request) -> bool:
    """Whether the response is HTTP/1.1 with the same head for everybody, and the connection stays."""
    if any(name in request.headers for name in (hdrs.ORIGIN, hdrs.COOKIE, HEADER)):
        return False
    return request.version == HttpVersion11 and request.keep_alive and request.content.is_eof()


async def _sent(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Writes what is not written yet, which aiohttp would do a little later, when nobody is told; what is left to do.

    A file's response opens its file when it is prepared, and can't be prepared twice.
    """
    with suppress(ConnectionError):  # aiohttp notices itself that the peer is gone
        await response.prepare(request)
        await response.write_eof()
    return SentResponse(stays=bool(response.keep_alive)) if isinstance(response, web.FileResponse) else response


def _sure(gateway: Gateway) -> Callable[[bytes, Caller, str], Awaitable[Answer]]:
    async def answer_always(body: bytes, caller: Caller, action: str) -> Answer:
        try:
            asked = gateway.read(body, action)
            return asked if isinstance(asked, Answer) else await gateway.perform(asked, caller)
        except Exception as error:  # noqa: BLE001 - explain() logs it
            return _unexpected(error)

    return answer_always


def _unexpected(error: Exception) -> Answer:
    return UNREAD.failure(msgspec.structs.replace(explain(error, UNREAD), status=500))


def _component_routes(
    services: Services, components: Components, bodies: BodyReader
) -> Mapping[str, Mapping[str, Handler]]:
    """Address to method to handler."""
    routes: dict[str, dict[str, Handler]] = {}
    for path in PATHS:
        address = path.address(services.prefixes)
        routes.setdefault(address, {})[path.method] = _component_handler(components, path, services, bodies)
    return routes


def _bulk_routes(services: Services, performer: Performer, validator: Validator, bodies: BodyReader) -> BulkRoutes:
    return BulkRoutes(
        performer=performer,
        validator=validator,
        bodies=bodies,
        upload_bytes=services.limits.import_bytes,
        caller_of=_caller,
        respond=_respond,
    )


def _file_routes(services: Services, performer: Performer, validator: Validator, bodies: BodyReader) -> FileRoutes:
    return FileRoutes(
        prefixes=services.prefixes,
        performer=performer,
        validator=validator,
        bodies=bodies,
        upload_bytes=services.limits.file_bytes,
        timeout_s=services.limits.request_timeout_s,
        caller_of=_caller,
        respond=_respond,
    )


def _component_handler(components: Components, path: Operation, services: Services, bodies: BodyReader) -> Handler:
    limits = services.limits
    plain = BodyBound(limits.body_bytes)
    with_files = BodyBound(
        limits.body_bytes + services.messenger.attachment_bytes, "limits.body_bytes + messenger.attachment_bytes"
    )

    async def read(request: web.Request, caller: Caller, held: AsyncExitStack) -> Form:
        media_type, charset = media_type_of(request)
        if media_type not in (MULTIPART, URLENCODED):
            if request.can_read_body:
                _check_media_type(request)
            return Form([], await held.enter_async_context(bodies.whole(request, caller, plain)), ())
        takes_files = path.takes_files and media_type == MULTIPART
        bound = with_files if takes_files else plain
        body = await held.enter_async_context(bodies.whole(request, caller, bound))
        if media_type == MULTIPART:
            return read_multipart(body, request.headers[hdrs.CONTENT_TYPE], takes_files=takes_files)
        return read_urlencoded(body, charset)

    async def handle_component(request: web.Request) -> web.Response:
        fields, form, caller = list(request.query.items()), Form([], b"", ()), _caller(request)
        async with AsyncExitStack() as held:
            if path.method == "POST":
                try:
                    form = await read(request, caller, held)
                except BadForm as error:
                    failure = Failure(FAILURE, f"body: not a form: {error}", HTTPStatus.BAD_REQUEST)
                    return _respond(path.reply(as_it_is).failure(failure))
                fields += form.fields
            return _respond(await components.answer(path, fields, caller, body=form.data, files=form.files))

    return handle_component


def _export_handler(operation: Operation, performer: Performer, validator: Validator) -> Handler:
    async def handle_export(request: web.Request) -> web.StreamResponse:
        reply = StreamReply(operation.name)
        fields = {**query_values(list(request.query.items())), **request.match_info}
        answer = await performer.perform(
            operation, _caller(request), lambda: validator.from_query(operation, fields), reply
        )
        export: Export | None = reply.result
        if export is None:
            return _respond(answer)
        return await send_stream(request, export.pieces, media_type=export.media_type, file_name=export.file_name)

    return handle_export


async def _handle_health(request: web.Request) -> web.Response:
    return web.Response(body=b'{"status":"ok"}', content_type=_JSON)


def _readiness_handler(services: Services, checks: Mapping[str, ReadinessCheck]) -> Handler:
    async def handle_readiness(request: web.Request) -> web.Response:
        readiness = await check_readiness(checks, services.tasks)
        status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return web.Response(body=msgspec.json.encode(readiness), content_type=_JSON, status=status)

    return handle_readiness


def _caller(request: web.Request) -> Caller:
    connection = connection_of(request)
    slot = None if connection is None else connection.slot
    caller = Caller(client_address(request), bearer_token(request.headers.get(hdrs.AUTHORIZATION)), slot=slot)
    caller.traceparent = request.headers.get(TRACEPARENT, "")
    caller.position = request.headers.get(POSITION, "")
    request.app[COOKIES].read(request, caller)
    return caller


def _check_media_type(request: web.Request) -> None:
    """JSON in UTF-8; a request that says nothing is taken to be that."""
    if request.headers.get(hdrs.CONTENT_TYPE, _JSON) == _JSON:
        return
    name, charset = media_type_of(request)
    if name != _JSON or charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise web.HTTPUnsupportedMediaType


def _respond(answer: Answer) -> web.Response:
    headers = None
    if answer.retry_after_s is not None:
        headers = {"Retry-After": str(ceil(answer.retry_after_s))}
    response = web.Response(
        body=answer.body, status=answer.status, headers=headers, content_type=answer.media_type or _JSON
    )
    for name, value in answer.headers:
        response.headers[name] = value
    response[_ANSWER] = answer  # which counts as not taken as long as it is there
    return response


def _method_refuser(allowed: list[str]) -> Handler:
    async def refuse_method(request: web.Request) -> web.StreamResponse:
        raise web.HTTPMethodNotAllowed(request.method, allowed)

    return refuse_method


async def _refuse_path(request: web.Request) -> web.StreamResponse:
    raise web.HTTPNotFound


def _refuse(request: web.Request, refusal: web.HTTPException, traffic: Traffic) -> web.Response:
    field, reason = _reason(request, refusal)
    info = f"{field}: {reason}" if field else reason
    traffic.refuse(refusal.status)
    _log.warning("refused %s from %s: %s", refusal.status, client_address(request), info)
    code = NOT_PERMITTED if isinstance(refusal, web.HTTPForbidden) else BAD_PARAMETER
    told = reason_of(reason, field=field)
    response = _respond(UNREAD.failure(Failure(code, info, refusal.status, reason=told)))
    if isinstance(refusal, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = refusal.headers["Allow"]
    if isinstance(refusal, web.HTTPRequestTimeout):
        response.force_close()
        connection = connection_of(request)
        if connection is not None:
            connection.count_late_body()
    return response


def _refuse_body(request: web.Request, refusal: BodyRefused, traffic: Traffic) -> web.Response:
    traffic.refuse(refusal.status)
    _log.warning("refused %s from %s: %s", refusal.status, client_address(request), refusal)
    return _respond(
        UNREAD.failure(
            Failure(
                refusal.code, str(refusal), refusal.status, refusal.retry_after_s, reason=reason_of(told_by(refusal))
            )
        )
    )


def _reason(request: web.Request, refusal: web.HTTPException) -> tuple[str, str]:
    """What a refusal is about, empty where its text says so itself, and the reason."""
    match refusal:
        case web.HTTPNotFound():
            return "path", _unknown_path(request.path)
        case web.HTTPMethodNotAllowed():
            allowed = refusal.headers["Allow"]
            return "method", say("method_not_allowed", method=request.method, allowed=allowed)
        case web.HTTPUnsupportedMediaType():
            got = request.headers.get("Content-Type", "")[:100]
            return "Content-Type", say("expected_media_type", expected=_JSON, got=got)
    return "", told_by(refusal)


def _unknown_path(path: str) -> str:
    """That nothing is there, and the action that was probably meant."""
    name = path.rpartition("/")[2]
    near = TABLE.near_actions.nearest(name) if path == action_path(name) else ""
    if near:
        return say("path_unknown_near", path=path[:200], near=action_path(near))
    return say("path_unknown", path=path[:200])
