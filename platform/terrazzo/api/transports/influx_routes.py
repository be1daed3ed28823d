"""``/influx/query``, ``/influx/ping`` and ``/influx/write``: what InfluxDB's clients, such as Grafana, ask for."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing

import msgspec
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.dispatch import Performer, bearer_token
from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.operations.influx.query import (
    INFLUX_QUERY,
    PING_PATH,
    QUERY_PATH,
    VERSION,
    WRITE_PATH,
    InfluxReply,
    parse_question,
)
from terrazzo.api.transports.bodies.forms import URLENCODED, read_urlencoded
from terrazzo.api.transports.bodies.media_type import media_type_of
from terrazzo.api.transports.bodies.multipart import BadForm
from terrazzo.api.transports.bodies.reader import BodyBound, BodyReader, BodyRefused
from terrazzo.api.transports.streaming import answering_in_pieces

_WHOLE_BYTES = 256 * 1024  # of an answer that is sent at once, with its length
_READ_ONLY = "this address only reads; terminals write over MQTT"
_HEADERS = {"X-Influxdb-Version": VERSION, "X-Influxdb-Build": "OSS"}
_log = logging.getLogger(__name__)

Fields = Sequence[tuple[str, str]]


class InfluxRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The handlers, on the same performer as everything else.

    Args:
        body_bytes: how long a form may be.
    """

    performer: Performer
    bodies: BodyReader
    body_bytes: int
    caller_of: Callable[[web.Request], Caller]

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Handler]]]:
        """For each path a handler for each method."""
        yield QUERY_PATH, {"GET": self._query, "POST": self._query}
        yield PING_PATH, {"GET": _ping}
        yield WRITE_PATH, {"POST": _refuse_write}

    async def _query(self, request: web.Request) -> web.StreamResponse:
        caller = self.caller_of(request)
        fields = list(request.query.items())
        caller.token = token_of(request.headers.get(hdrs.AUTHORIZATION, ""), fields)
        try:
            fields += await self._form(request, caller)
        except (BodyRefused, BadForm) as error:
            status = error.status if isinstance(error, BodyRefused) else 400
            return _failed(Answer(msgspec.json.encode({"error": str(error)}), status))
        if not caller.token:
            caller.token = token_of("", fields)
        reply = InfluxReply()
        accept = request.headers.get(hdrs.ACCEPT, "")
        answer = await self.performer.perform(
            INFLUX_QUERY, caller, lambda: parse_question(fields, accept, lambda: _is_gone(request)), reply
        )
        if reply.result is None:
            return _failed(answer)
        pretty = dict(reversed(fields)).get("pretty") == "true" and not reply.result.is_streamed
        return await _send(request, reply.result.pieces, reply.result.media_type, pretty=pretty)

    async def _form(self, request: web.Request, caller: Caller) -> Fields:
        """The fields of a body; one of another type than a form's is passed over, as InfluxDB does."""
        if not request.can_read_body:
            return ()
        media_type, charset = media_type_of(request)
        async with self.bodies.whole(request, caller, BodyBound(self.body_bytes)) as body:
            return read_urlencoded(body, charset).fields if media_type in (URLENCODED, "") else ()


def token_of(authorization: str, fields: Fields) -> str | None:
    """The token or API key of a request: a bearer's, InfluxDB's ``Token``, or the password of a name.

    The name goes for nothing. In the query string a password is ``p``, as InfluxDB has it.
    """
    if token := bearer_token(authorization):
        return token
    scheme, _, credential = authorization.partition(" ")
    if scheme.lower() == "token":
        return credential.strip().rpartition(":")[2] or None
    if scheme.lower() == "basic":
        try:
            given = base64.b64decode(credential.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        return given.partition(":")[2] or None
    return next((value for name, value in fields if name == "p" and value), None)


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def _ping(request: web.Request) -> web.StreamResponse:
    return web.Response(status=204, headers=_HEADERS)


async def _refuse_write(request: web.Request) -> web.StreamResponse:
    return _failed(Answer(msgspec.json.encode({"error": _READ_ONLY}), 405))


def _failed(answer: Answer) -> web.Response:
    headers = dict(_HEADERS)
    headers["X-Influxdb-Error"] = _one_line(msgspec.json.decode(answer.body)["error"])
    if answer.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="InfluxDB"'
    if answer.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(answer.retry_after_s)))
    return web.Response(
        body=answer.body + b"\n", status=answer.status, headers=headers, content_type="application/json"
    )


def _one_line(text: str) -> str:
    """As much of a text as may stand in a header."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text[:500])


async def _send(
    request: web.Request, pieces: AsyncGenerator[bytes, None], media_type: str, *, pretty: bool
) -> web.StreamResponse:
    """A short answer with its length, a long one piece by piece.

    What fails on the way breaks the connection off: half an answer must not look like a whole one.
    """
    head = bytearray()
    response = web.StreamResponse(headers={**_HEADERS, "Content-Type": media_type})
    try:
        async with aclosing(pieces) as opened:
            with answering_in_pieces(request, INFLUX_QUERY.name):
                async for piece in opened:
                    head += piece
                    if len(head) > _WHOLE_BYTES:
                        break
                else:
                    body = msgspec.json.format(bytes(head), indent=4) + b"\n" if pretty else bytes(head)
                    return web.Response(body=body, headers=response.headers)
                await response.prepare(request)
                if request.method == "HEAD":
                    return response
                await response.write(bytes(head))
                async for piece in opened:
                    await response.write(piece)  # waits while the client takes nothing
    except ConnectionError:
        return response  # whoever asked has gone
    except Exception:  # noqa: BLE001 - logged; it is too late for another answer
        _log.exception("an answer to InfluxQL broke off")
        if request.transport is not None:
            request.transport.abort()
    return response
