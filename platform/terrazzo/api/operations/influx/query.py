"""``/influx/query``: InfluxDB's address for questions, and the form of its answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from importlib import import_module
from typing import Any

import msgspec

from terrazzo.api.kernel.envelope import (
    BAD_PARAMETER,
    NOT_AUTHENTICATED,
    NOT_FOUND,
    NOT_PERMITTED,
    Answer,
    Failure,
    encodable,
    explain,
)
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.pieces import begun, in_turn
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.influx.measurements import Measurements
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.influxql.errors import QueryError, SyntaxFault
from terrazzo.influxql.moments import Epoch, zone_named
from terrazzo.influxql.statements import parse_query
from terrazzo.influxql.syntax import Select, Show, Statement, Unserved
from terrazzo.memory_shares import Holding
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.reasons import told_by
from terrazzo.times import now_us

QUERY_PATH = "/influx/query"
PING_PATH = "/influx/ping"
WRITE_PATH = "/influx/write"
VERSION = "1.6.7-terrazzo"
"""What InfluxDB's clients are told: the version whose language is spoken."""

_STATUS = {BAD_PARAMETER: 400, NOT_AUTHENTICATED: 401, NOT_PERMITTED: 403, NOT_FOUND: 404}
_MOST_CHUNK = 100_000
_CHUNK = 10_000
_JSON, _CSV = "application/json", "text/csv"
_EPOCHS: Mapping[str, Epoch] = {"": "", "ns": "ns", "u": "u", "µ": "u", "ms": "ms", "s": "s", "m": "m", "h": "h"}


class InfluxQuestion(msgspec.Struct, kw_only=True):
    """The parameters of InfluxDB's ``/query``; other ones are passed over, as InfluxDB does."""

    q: str = ""
    db: str = ""
    epoch: Epoch = ""
    chunked: bool = False
    chunk_size: int = _CHUNK
    pretty: bool = False
    is_csv: bool = False
    is_gone: Callable[[], bool] = lambda: False


class InfluxAnswer(msgspec.Struct):
    """An answer that is made while it is sent."""

    pieces: AsyncGenerator[bytes, None]
    media_type: str
    is_streamed: bool  # no document that could be laid out


class InfluxReply:
    """Failures as InfluxDB words them; keeps what a successful operation answered."""

    bad_parameter = BAD_PARAMETER
    not_found = NOT_FOUND

    def __init__(self) -> None:
        self.result: InfluxAnswer | None = None

    def present(self, result: Any) -> Any:
        """As it is."""
        return result

    def success(self, result: Any) -> Answer:
        """Keeps the result."""
        self.result = result
        return Answer(b"")

    def failure(self, failure: Failure) -> Answer:
        """``{"error": ...}``, with a status that says which kind."""
        status = _STATUS.get(failure.code, 500 if failure.status == 200 else failure.status)
        return Answer(msgspec.json.encode({"error": encodable(failure.info)}), status, failure.retry_after_s)


async def handle_influx_query(services: Services, actor: Actor, request: InfluxQuestion) -> InfluxAnswer:
    """The answers to some statements, one after the other.

    Raises:
        BadParameter: there is no query, or it is no InfluxQL.
        Throttled: too many queries of the company wait.
    """
    if not request.q.strip():
        raise BadParameter("missing required parameter", '"q"')
    try:
        statements = await asyncio.to_thread(parse_query, request.q)
    except SyntaxFault as error:
        raise BadParameter("error parsing query", told_by(error)) from None
    await asyncio.to_thread(_load)
    turn, holding = services.queries.turn(actor.company_id), services.memory.holding("queries", actor.company_id)
    run = _Run(services, actor, request, holding)
    pieces = in_turn(run.pieces(statements), turn, services.memory.holding("answers", actor.company_id))
    return InfluxAnswer(await begun(pieces), _CSV if request.is_csv else _JSON, request.is_csv or request.chunked)


def _load() -> None:
    """Imports what reads and answers, with its heavy library."""
    import_module("terrazzo.api.operations.influx.reading")
    import_module("terrazzo.influxql.answers")


class _Run:
    """One request under way."""

    def __init__(self, services: Services, actor: Actor, request: InfluxQuestion, holding: Holding) -> None:
        from terrazzo.api.operations.influx.reading import SelectReader
        from terrazzo.api.operations.influx.show import ShowReader
        from terrazzo.influxql.answers import encoder_of

        measurements = Measurements(services, actor)
        self._request = request
        chunk = request.chunk_size if request.chunked else 0
        self._encoder = encoder_of(epoch=request.epoch, chunk=chunk, is_csv=request.is_csv)
        self._actor = actor
        self._holding = holding
        self._timeout_s = services.limits.influx_s
        now_ns = now_us() * 1_000
        self._select = SelectReader(services, measurements, holding, is_gone=request.is_gone, now_ns=now_ns)
        self._show = ShowReader(services, measurements)

    async def pieces(self, statements: Sequence[Statement]) -> AsyncGenerator[bytes, None]:
        """The answer, in pieces of some thousand rows."""
        encoder = self._encoder
        yield encoder.begin()
        failed = False
        for number, statement in enumerate(statements):
            error = "not executed" if failed else ""
            found: Sequence[Any] = ()
            if not failed:
                found, error = await self._answer(statement)
            failed = failed or bool(error)
            async for piece in _steps(encoder.result(number, found, error, _zone_of(statement))):
                yield piece
            self._holding.resize(0)
        yield encoder.end()

    async def _answer(self, statement: Statement) -> tuple[Sequence[Any], str]:
        """The series of a statement, or why there are none."""
        work = at_work.begin(Work("influx_query", self._actor.company_id))
        try:
            async with asyncio.timeout(self._timeout_s):
                match statement:
                    case Unserved(reason):
                        return (), reason
                    case Show():
                        return await self._show.answer(statement, self._request.db), ""
                return await self._select.answer(statement, self._request.db), ""
        except QueryError as error:
            return (), str(error)
        except TimeoutError:
            return (), f"query timeout: it took longer than {self._timeout_s} s (limits.influx_s)"
        except Exception as error:  # noqa: BLE001 - explain() logs what nobody expected
            return (), explain(error, InfluxReply()).info
        finally:
            at_work.end(work)


def _zone_of(statement: Statement) -> tzinfo:
    try:
        return zone_named(statement.zone if isinstance(statement, Select) else "")
    except QueryError:
        return zone_named("")


async def _steps(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces that are each made on a thread."""
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece


INFLUX_QUERY = Operation(
    name="influx_query",
    summary="InfluxQL over objects and terminals, read-only",
    request=InfluxQuestion,
    result=str,
    permission=Role.VIEWER,
    handler=handle_influx_query,
    method="POST",
    path=QUERY_PATH,
    media_types=(_JSON, _CSV),
)


def parse_question(fields: Sequence[tuple[str, str]], accept: str, is_gone: Callable[[], bool]) -> InfluxQuestion:
    """What a request's parameters ask for; of two of one name the first counts."""
    values = dict(reversed(fields))
    size = values.get("chunk_size", "")
    is_size = size.isascii() and size.isdigit() and 0 < len(size) < 9 and int(size) > 0
    return InfluxQuestion(
        q=values.get("q", ""),
        db=values.get("db", ""),
        epoch=_EPOCHS.get(values.get("epoch", ""), "ns"),
        chunked=values.get("chunked", "") == "true",
        chunk_size=min(int(size), _MOST_CHUNK) if is_size else _CHUNK,
        pretty=values.get("pretty", "") == "true",
        is_csv=accept.partition(",")[0].partition(";")[0].strip() in ("application/csv", "text/csv"),
        is_gone=is_gone,
    )
