"""Parsers of InfluxQL and of what comes with it over HTTP."""

from __future__ import annotations

import base64
from datetime import UTC
from urllib.parse import parse_qsl

from parser_kinds import Parser

from terrazzo.api.operations.influx.query import parse_question
from terrazzo.api.transports.influx_routes import token_of
from terrazzo.influxql.errors import QueryError, SyntaxFault
from terrazzo.influxql.moments import parse_length, parse_moment
from terrazzo.influxql.statements import parse_query
from terrazzo.influxql.tokens import MOST_CHARACTERS


def _question(text: str) -> object:
    """The parameters of a request, and who asks."""
    fields = parse_qsl(text)
    encoded = base64.b64encode(text.encode()).decode()
    return parse_question(fields, text, lambda: False), token_of(text, fields), token_of(f"Basic {encoded}", fields)


def _moment(text: str) -> object:
    return parse_moment(text, UTC)


SELECT = (
    'SELECT mean("a") * 2 AS b, top(c.d, 3) FROM "m".autogen."x y", /^(a|b)$/ '
    "WHERE time > now() - 1h30m AND (t = 'a\\'b' OR f >= -1.5e3 OR n =~ /a\\/b/) "
    "GROUP BY time(1m, -10s), t, * fill(previous) ORDER BY time DESC LIMIT 5 tz('UTC')"
)

PARSERS: list[Parser[str]] = [
    Parser(
        covers=(
            "terrazzo.influxql.statements:parse_query",
            "terrazzo.influxql.tokens:_TOKEN",
            "terrazzo.influxql.tokens:_PATTERN",
            "terrazzo.influxql.tokens:_ESCAPED",
        ),
        run=parse_query,
        raises=(SyntaxFault,),
        most=MOST_CHARACTERS,
        worst=(
            lambda n: "SELECT " + "(" * n,
            lambda n: "SELECT " + "-" * n,
            lambda n: "SELECT " + "a(" * (n // 2),
            lambda n: "SELECT a FROM b WHERE " + "c = 1 AND " * (n // 10),
            lambda n: "SELECT a FROM b WHERE " + "1+" * (n // 2),
            lambda n: "SELECT a" + ",a" * (n // 2),
            lambda n: "SELECT " + "1" * n,
            lambda n: "SELECT " + "1s" * (n // 2) + ".",
            lambda n: "SELECT " + "1s." * (n // 3),
            lambda n: 'SELECT "' + "a" * n,
            lambda n: 'SELECT "' + "\\" * n,
            lambda n: "SELECT '" + "\\'" * (n // 2) + "'",
            lambda n: "SELECT /" + "a" * n,
            lambda n: "SELECT /" + "(a*)*" * 800 + "/ FROM b",
            lambda n: "SELECT a FROM " + "/a/," * (n // 4),
            lambda n: "SELECT a FROM " + "(SELECT a FROM " * (n // 15),
            lambda n: "SELECT a FROM b" + "." * n,
            lambda n: "SHOW DATABASES;" * (n // 15),
            lambda n: ";" * n,
            lambda n: " " * n,
            lambda n: "--" * (n // 2),
            lambda n: "DROP " + "a " * (n // 2),
        ),
        samples=(
            SELECT,
            "SELECT max(x) FROM (SELECT sum(y) AS x FROM z GROUP BY time(1h)) WHERE x != true",
            'SHOW TAG VALUES ON db FROM "m" WITH KEY IN ("a", b) WHERE c = \'d\' LIMIT 3 OFFSET 1',
            "SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)a/; SHOW SERIES CARDINALITY; DROP DATABASE x",
        ),
    ),
    Parser(
        covers=("terrazzo.influxql.moments:parse_length", "terrazzo.influxql.moments:_PART"),
        run=parse_length,
        raises=(SyntaxFault,),
        most=MOST_CHARACTERS,
        worst=(lambda n: "1" * n, lambda n: "1s" * (n // 2), lambda n: "1m" * (n // 2) + "x", lambda n: "s" * n),
        samples=("1h30m", "10ms", "5µ"),
    ),
    Parser(
        covers=("terrazzo.influxql.moments:parse_moment", "terrazzo.influxql.moments:_TIME"),
        run=_moment,
        raises=(QueryError,),
        most=MOST_CHARACTERS,
        worst=(lambda n: "1" * n, lambda n: "2026-03-01 00:00:00." + "1" * n, lambda n: "2026-03-01" + " " * n),
        samples=("2026-03-01", "2026-03-01 10:20:30.123456789", "2026-03-01T10:20:30Z", "2026-03-01T10:20:30+05:30"),
    ),
    Parser(
        covers=("terrazzo.api.operations.influx.query:parse_question",),
        run=_question,
        worst=(
            lambda n: "q=1&" * (n // 4),
            lambda n: "chunk_size=" + "1" * n,
            lambda n: "Token " + ":" * n,
            lambda n: "Basic " + "A" * n,
            lambda n: "," * n,
        ),
        samples=("q=a&db=b&epoch=ms&chunked=true&chunk_size=5&p=x", "Token a:b", "Basic YTpi"),
    ),
]
