"""HTTP requests to the server: version, writes, queries, and their errors."""

from __future__ import annotations

import asyncio
import base64
import io
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import aiohttp
import msgspec

from terrazzo.ports.store import StoreUnavailable
from terrazzo.system_trust import system_context
from terrazzo.userinfo import shown_address
from terrazzo_adapters.influxdb.naming import identifier
from terrazzo_adapters.influxdb.settings import InfluxSettings

_TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=3)
_LONGEST_GET = 4000
_PERMANENT = re.compile(r"field type conflict|beyond retention policy|unable to parse|partial write of line protocol")
_DROPPED = re.compile(r"beyond retention policy dropped=(\d+)")
_CONFLICT = re.compile(r'input field "(.+?)" on measurement')

R = TypeVar("R")

_MSGPACK = "application/x-msgpack"

Series = dict[str, Any]
"""One series of an answer: ``name``, ``tags``, ``columns``, ``values``."""


class Answer(NamedTuple):
    """What a server said to a question, unread."""

    body: bytes
    is_msgpack: bool
    server: str  # its address, for messages of errors


class Refused(Exception):
    """The server refuses some of these lines for good; it may have taken the others."""

    @property
    def expired(self) -> int:
        """The number of points that were older than the retention policy allows."""
        match = _DROPPED.search(str(self))
        return int(match[1]) if match else 0

    @property
    def field(self) -> str | None:
        """The field that has another type in the database, if that is why."""
        match = _CONFLICT.search(str(self))
        return match[1] if match else None


class Server:
    """One database of one server. Every method raises ``StoreUnavailable`` when it does not answer as it should."""

    def __init__(self, settings: InfluxSettings) -> None:
        self._settings = settings
        self._url = settings.url.rstrip("/")
        self._shown = shown_address(self._url)  # who asks in vain is told where, and no password
        self._database = settings.database_name
        connector = aiohttp.TCPConnector(ssl=system_context() if self._url.startswith("https:") else True)
        headers = {"Accept-Encoding": "identity", **_authorization(settings)}  # gzip takes the server twice the time
        self._http = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, headers=headers)
        self.version = ""

    @property
    def generation(self) -> int:
        """The major version: 1, 2 or 3; 0 before ``connect``."""
        return int(self.version[:1] or 0)

    async def close(self) -> None:
        """Closes the HTTP connections."""
        await self._http.close()

    async def connect(self) -> None:
        """Finds out the version, and creates the database if it is missing."""
        version = await self.ping()
        generation = int(version[0])
        if generation == 2:
            await asyncio.to_thread(import_module, "terrazzo_adapters.influxdb.buckets")  # its library is heavy
            from terrazzo_adapters.influxdb.buckets import ensure_bucket

            await asyncio.to_thread(ensure_bucket, self._settings)
        elif generation == 1:
            answer = await self._query_raw("SHOW DATABASES", "GET")
            names = {row[0] for series in answer[0].get("series", ()) for row in series.get("values", ())}
            if self._database not in names:
                _checked(await self._query_raw(f"CREATE DATABASE {identifier(self._database)}", "POST"))
        self.version = version

    async def ping(self) -> str:
        """The server's version, like ``1.6.7``."""
        status, headers, body = await self._request("GET", "/ping", {})
        version = headers.get("X-Influxdb-Version", "") or _version_in(body)
        if status not in (200, 204) or not version.lstrip("v")[:1].isdigit():
            raise StoreUnavailable(f"{self._shown}/ping answered {status}, not as InfluxDB does: {_text(body)}")
        return version.lstrip("v")

    async def write(self, lines: str) -> None:
        """Writes lines with times in nanoseconds.

        Raises:
            Refused: some lines can never be written.
        """
        parameters = {"db": self._database, "precision": "ns"}
        status, _, body = await self._request("POST", "/write", parameters, io.BytesIO(lines.encode()))
        if status in (200, 204):
            return
        text = _text(body)
        if status == 404:
            self.version = ""  # the database is gone: connect anew
        if status == 413 or (status in (400, 422) and _PERMANENT.search(text)):
            raise Refused(text)
        raise StoreUnavailable(f"InfluxDB at {self._shown} refused a write ({status}): {text}")

    async def query(self, statement: str) -> list[Series]:
        """The series in the answers to statements (separated by ``;``), in order. Times are UTC nanoseconds."""
        method = "POST" if statement.startswith("DELETE") or len(statement) > _LONGEST_GET else "GET"
        found = _checked(await self._query_raw(statement, method))
        if any(series.get("partial") for series in found):
            # a limit of the server (max-row-limit), or an answer of exactly 10,000 rows, which 1.6.7 calls partial too
            return _joined(_checked(await self._query_raw(statement, method, chunked=True)))
        return found

    async def query_each(self, statements: Sequence[str]) -> list[list[Series]]:
        """The series in the answer to each statement, all asked in one request."""
        found: list[list[Series]] = [[] for _ in statements]
        for series in await self.query("; ".join(statements)):
            found[series["statement"] or 0].append(series)
        return found

    async def answer(self, statement: str) -> Answer:
        """The answer to one statement of many rows, to be read by ``rows_of`` on a thread.

        InfluxDB 1.x gives it as MessagePack, which costs it a fifth less than JSON.
        """
        accept = {"Accept": _MSGPACK} if self.generation == 1 else {}
        method = "POST" if len(statement) > _LONGEST_GET else "GET"
        headers, body = await self._query_body(statement, method, headers=accept)
        return Answer(body, headers.get("Content-Type", "") == _MSGPACK, self._shown)

    async def _query_raw(self, statement: str, method: str, *, chunked: bool = False) -> list[dict[str, Any]]:
        parameters = {"chunked": "true"} if chunked else {}
        _, body = await self._query_body(statement, method, parameters)
        try:
            answers = [msgspec.json.decode(line) for line in (body.splitlines() if chunked else [body])]
            return [result for answer in answers for result in answer["results"]]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
            raise _not_influxdb(self._shown, body) from None

    async def _query_body(
        self,
        statement: str,
        method: str,
        parameters: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Mapping[str, str], bytes]:
        """The headers of an answer and what it says."""
        asked = {"db": self._database, "epoch": "ns", **parameters, **({"q": statement} if method == "GET" else {})}
        data = aiohttp.FormData({"q": statement}) if method == "POST" else None
        status, told, body = await self._request(method, "/query", asked, data, headers)
        if status != 200:
            raise StoreUnavailable(f"InfluxDB at {self._shown} refused a query ({status}): {_text(body)}")
        return told, body

    async def _request(
        self,
        method: str,
        path: str,
        parameters: dict[str, str],
        data: io.BytesIO | aiohttp.FormData | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any, bytes]:
        url = self._url + path
        try:
            async with self._http.request(method, url, params=parameters, data=data, headers=headers) as response:
                return response.status, response.headers, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise StoreUnavailable(f"InfluxDB at {self._shown} does not answer: {reason}") from None
        except RuntimeError as error:  # the session was closed under the call
            raise StoreUnavailable(f"InfluxDB at {self._shown}: {error}") from None


def _authorization(settings: InfluxSettings) -> dict[str, str]:
    if settings.token:
        return {"Authorization": f"Token {settings.token}"}
    if settings.username:
        credentials = base64.b64encode(f"{settings.username}:{settings.password}".encode()).decode()
        return {"Authorization": f"Basic {credentials}"}
    return {}


class _RowSeries(msgspec.Struct, Generic[R]):
    values: list[R]
    partial: bool = False


class _RowResult(msgspec.Struct, Generic[R]):
    series: list[_RowSeries[R]] = []
    error: str = ""


class _RowAnswer(msgspec.Struct, Generic[R]):
    results: list[_RowResult[R]]


def rows_of(answer: Answer, row: type[R]) -> tuple[list[R], bool]:
    """The rows of an answer to one statement, each decoded as ``row``, and whether these are all.

    Raises:
        StoreUnavailable: it says that it can't answer, or isn't InfluxDB's.
    """
    decode = msgspec.msgpack.decode if answer.is_msgpack else msgspec.json.decode
    try:
        results = decode(answer.body, type=_RowAnswer[row]).results  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _not_influxdb(answer.server, answer.body) from None
    rows: list[R] = []
    for result in results:
        if result.error:
            raise StoreUnavailable(f"InfluxDB can't answer: {result.error}")
        for series in result.series:
            rows += series.values
    return rows, not any(series.partial for result in results for series in result.series)


def _not_influxdb(server: str, body: bytes) -> StoreUnavailable:
    return StoreUnavailable(f"{server}/query did not answer as InfluxDB does: {_text(body)}")


def _checked(results: list[dict[str, Any]]) -> list[Series]:
    found: list[Series] = []
    for result in results:
        if "error" in result:
            raise StoreUnavailable(f"InfluxDB can't answer: {result['error']}")
        found += [{**series, "statement": result.get("statement_id")} for series in result.get("series", ())]
    return found


def _joined(pieces: list[Series]) -> list[Series]:
    """The series of a chunked answer, joined from their pieces."""
    found: list[Series] = []
    for piece in pieces:
        if found and found[-1].get("partial") and _identity(found[-1]) == _identity(piece):
            found[-1] = {**piece, "values": found[-1]["values"] + piece["values"]}
        else:
            found.append(piece)
    return found


def _identity(series: Series) -> tuple[Any, ...]:
    return series["statement"], series.get("name"), series.get("tags")


def _version_in(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["version"])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        return ""


def _text(body: bytes) -> str:
    try:
        decoded = msgspec.json.decode(body)
        return str(decoded.get("error") or decoded.get("message") or decoded)[:500]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
        return body[:500].decode(errors="replace").strip()
