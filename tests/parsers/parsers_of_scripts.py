"""Parsers of what users save: scripts, mappings, expressions, templates."""

from __future__ import annotations

import msgspec
from parser_kinds import Parser

from row_checks import check_calculate_rows, check_mapping_rows
from terrazzo.analysis.statistics_rows import parse_statistics_rows
from terrazzo.domain.control_table import check_control_rows, plan_command
from terrazzo.domain.events.definition import parse_event_definitions
from terrazzo.domain.mapping_table import parse_table
from terrazzo.domain.payloads.form import parse_payload_form
from terrazzo.domain.script_rows import (
    check_codes,
    check_object,
    check_retainer_rows,
    check_statistics_rows,
    parse_duration,
)
from terrazzo.domain.variables.definition import parse_variable_definitions
from terrazzo.errors import Skipped
from terrazzo.expressions.expression import parse_expression
from terrazzo.expressions.tokens import MAX_TOKENS, ExpressionError
from terrazzo.objects.dashboard_values import read_dashboard_pictures, read_dashboard_values
from terrazzo.points import find_point, parse_point

EXPRESSIONS = (
    "x * 0.1 + 1",
    "a.b + {CH-1} ** 2 // 0x1F",
    "'on' == \"off\" or not 1 < x <= 9.5e3",
    "min(a, b, 3) if bit(x, 0) else -sqrt(x) % .5",
)


def _statistics(text: str) -> object:
    """A cell as it was stored before cells had a length, and as it is saved now."""
    parse_statistics_rows([["a", text, "A"]])
    return check_statistics_rows([["a", text, "A"]])


def _mapping(text: str) -> object:
    """A text in each cell of the rows that it could stand in."""
    for row in (
        ["A", "", "", "STA", text, "x"],
        ["A", "", "", "STA", "T.p", text],
        ["A", "", "", "EVNT", "T.p", "", text],
        ["A", "", "", "EVNT", "", "T.p", "@Compare", text],
        ["A", "", "", "EVNT", "", "T.p", "==", text],
        ["A", "", "", "STT", "", text, "@Stat", text],
        ["A", "", "", text, "Cycled", text, "", "1"],
        [text, text, "", "COL", text, ""],
    ):
        for parse in (parse_table, check_mapping_rows):
            try:
                parse([row])
            except ValueError as error:
                last = error
    raise last


def _point(text: str) -> object:
    """A reference, and the terminal that it means."""
    parse_point(text)
    return find_point(text, ["T1", "a.b"], {"T.9"}.__contains__)


def _rows(text: str) -> object:
    """Any JSON as rows of each kind of script."""
    rows = msgspec.json.decode(text)
    for check in (
        check_statistics_rows,
        check_retainer_rows,
        check_calculate_rows,
        check_control_rows,
        check_codes,
        check_object,
        check_mapping_rows,
    ):
        try:
            check(rows)
        except ValueError as error:
            last = error
    raise last


def _dashboard(text: str) -> object:
    """Any JSON as a dashboard, and a text as each of its parts."""
    for script in (msgspec.json.decode(text), _page(text)):
        read_dashboard_values(script)
        read_dashboard_pictures(script)
        last = read_dashboard_values(script, shown=1)
    return last


def _page(text: str) -> object:
    widget = {"type": text, "name": text, "attribute": {"values": [{"objectId": text, "code": text}]}}
    return {text: {"name": text, "webSocket": {"objectId": text}, "data": [widget, {"name": text}]}}


def _command(text: str) -> object:
    return plan_command([["go", "", "", "OBJ", text, ""]], "go", "1", terminals=["T1"], is_known=lambda uid: False)


def _definitions(text: str) -> object:
    """Any JSON as what is said of events."""
    return parse_event_definitions(msgspec.json.decode(text))


def _variables(text: str) -> object:
    """Any JSON as what is said of variables."""
    return parse_variable_definitions(msgspec.json.decode(text))


def _form(text: str) -> object:
    """Any JSON as what a configuration says of payloads."""
    return parse_payload_form(msgspec.json.decode(text))


PARSERS: list[Parser[str]] = [
    Parser(
        covers=("terrazzo.domain.payloads.form:parse_payload_form",),
        run=_form,
        raises=(ValueError, msgspec.MsgspecError, RecursionError),  # of the test's own decoder
        worst=(
            lambda n: '{"format":"array","names":[' + ",".join(f'"c{i}"' for i in range(n // 10)) + "]}",
            lambda n: '{"format":"' + "a" * n + '"}',
            lambda n: '{"format":"decoder","decoder":"x","channels":[' + ",".join(['"r"'] * (n // 4)) + "]}",
        ),
        samples=(
            '{"format":"array","names":["a","","b"]}',
            '{"format":"decoder","decoder":"x","channels":["a"]}',
            "{}",
        ),
    ),
    Parser(
        covers=(
            "terrazzo.domain.variables.definition:parse_variable_definitions",
            "terrazzo.domain.variables.definition:parse_variable_definition",
        ),
        run=_variables,
        raises=(ValueError, msgspec.MsgspecError, RecursionError),  # of the test's own decoder
        worst=(
            lambda n: "{" + ",".join(f'"c{i}":{{}}' for i in range(n // 10)) + "}",
            lambda n: '{"A":{"limits":[' + ",".join(['{"above":1}'] * (n // 12)) + "]}}",
            lambda n: '{"A":{"states":{' + ",".join(f'"{i}":{{}}' for i in range(n // 10)) + "}}}",
            lambda n: '{"A":{"unit":"' + "m" * n + '"}}',
        ),
        samples=('{"T":{"unit":"K","decimals":1,"low":0,"high":1,"limits":[{"below":0}],"states":{"1":{}}}}', "{}"),
    ),
    Parser(
        covers=("terrazzo.domain.events.definition:parse_event_definitions",),
        run=_definitions,
        raises=(ValueError, msgspec.MsgspecError, RecursionError),  # of the test's own decoder
        worst=(
            lambda n: "{" + ",".join(f'"c{i}":{{}}' for i in range(n // 10)) + "}",
            lambda n: '{"A":{"clears":[' + ",".join(['"x"'] * (n // 4)) + "]}}",
            lambda n: '{"A":{"severity":"' + "m" * n + '"}}',
            lambda n: '{"' + "A" * n + '":{}}',
        ),
        samples=('{"HOT":{"severity":"major","clears":["A"],"clears_itself":true,"clear_after_s":5,"name":"x"}}', "{}"),
    ),
    Parser(
        covers=(
            "terrazzo.domain.script_rows:parse_duration",
            "terrazzo.analysis.statistics_rows:parse_statistics_rows",
        ),
        run=_statistics,
        raises=(ValueError,),
        worst=(
            lambda n: "duration(a==v" + " " * n + "w)",
            lambda n: "duration(a" + " " * n + "b==v)",
            lambda n: "duration(a==v" + " " * n,
            lambda n: "duration(a" + " " * n + "==v)",
            lambda n: "duration(" + " " * n,
            lambda n: "duration(a==" + "v" * n,
            lambda n: "duration(" + "a=" * (n // 2),
        ),
        samples=("duration(a==v)", " duration( RUN == 'on' ) ", "avg", "duration(A.b==2.5)"),
    ),
    Parser(
        covers=("terrazzo.domain.script_rows:parse_duration",),
        run=parse_duration,
        worst=(lambda n: "duration(a==v" + " " * n + ")", lambda n: "duration(" + "'" * n + "==" + '"' * n + ")"),
        samples=("duration(a==v)", "duration(a== )"),
    ),
    Parser(
        covers=(
            "terrazzo.expressions.expression:parse_expression",
            "terrazzo.expressions.parser:parse",
            "terrazzo.expressions.parser:_parse_number",
            "terrazzo.expressions.tokens:split",
            "terrazzo.expressions.tokens:_NUMBER",
            "terrazzo.expressions.tokens:_NAME",
            "terrazzo.expressions.tokens:_QUOTED",
            "terrazzo.expressions.tokens:_TEXT",
            "terrazzo.expressions.tokens:_BLANK",
        ),
        run=parse_expression,
        raises=(ExpressionError,),
        worst=(
            lambda n: "a" + "+a" * min(n // 2, MAX_TOKENS // 2 - 1),
            lambda n: "(" * n,
            lambda n: "{" * n,
            lambda n: "1" * n,
            lambda n: "a." * (n // 2),
            lambda n: "'" + "a" * n,
            lambda n: " " * n,
            lambda n: "not " * (n // 4),
            lambda n: "-" * n,
        ),
        samples=EXPRESSIONS,
    ),
    Parser(
        covers=(
            "terrazzo.domain.mapping_table:parse_table",
            "terrazzo.domain.mapping_row:parse_row",
            "terrazzo.domain.script_rows:_PART",
        ),
        run=_mapping,
        raises=(ValueError,),
        worst=(
            lambda n: "[" * n,
            lambda n: "." * n,
            lambda n: '["=",' * (n // 5),
            lambda n: "9" * n,
            lambda n: " " * n,
        ),
        samples=(*EXPRESSIONS, "T1.p", "$AdapterID-1.p", '["=", 5]', '{"fn": "avg", "of": "A"}', "60", "STA"),
    ),
    Parser(
        covers=(
            "terrazzo.points:parse_point",
            "terrazzo.points:_splits",
            "terrazzo.points:_POSITION",
        ),
        run=_point,
        raises=(ValueError,),
        worst=(
            lambda n: "." * n,
            lambda n: "a." * (n // 2),
            lambda n: "$AdapterID-" + "1" * n,
            lambda n: "$AdapterID-1" + "." * n,
            lambda n: " " * n + "a",
        ),
        samples=("$AdapterID-1.p", "T1.p", "a.b.c", "T.9.x.y"),
    ),
    Parser(
        covers=("terrazzo.domain.control_table:plan_command",),
        run=_command,
        raises=(Skipped,),
        worst=(lambda n: "." * n, lambda n: "a." * (n // 2)),
        samples=("$AdapterID-1.p", "T1.p"),
    ),
    Parser(
        covers=(
            "terrazzo.objects.dashboard_values:read_dashboard_values",
            "terrazzo.objects.dashboard_values:read_dashboard_pictures",
        ),
        run=_dashboard,
        raises=(msgspec.MsgspecError, RecursionError),  # of the test's own decoder
        worst=(
            lambda n: '{"p":{"data":[' + ",".join('{"name":"a"}' for _ in range(n // 13)) + "]}}",
            lambda n: "{" + ",".join(f'"{i}":{{"data":[{{"name":"a"}}]}}' for i in range(n // 32)) + "}",
            lambda n: '{"p":{"data":[{"attribute":{"values":[' + ",".join("{}" for _ in range(n // 3)) + "]}}]}}",
            lambda n: '{"p":{"data":[{"attribute":{"values":[{"objectId":"' + "9" * n + '","code":"A"}]}}]}}',
        ),
        samples=(
            '{"Dashboard-1":{"webSocket":{"objectId":"1"},"data":[{"name":"T"},{"attribute":{"values":[{"code":"A"}]}}]}}',
            '{"p":{"webSocket":{"objectId":1.5},"data":[{"attribute":{"values":[{"objectId":1e99,"code":7}]}}]}}',
        ),
    ),
    Parser(
        covers=("terrazzo.domain.script_rows:check_statistics_rows",),
        run=_rows,
        raises=(ValueError, msgspec.MsgspecError, RecursionError),  # of the test's own decoder
        worst=(
            lambda n: "[" + ",".join(f'["v{i}","duration(a==v{i})","a"]' for i in range(n // 32)) + "]",
            lambda n: "[" + ",".join('["a","b"]' for _ in range(n // 10)) + "]",
            lambda n: "[" + ",".join(f'["{i}"]' for i in range(n // 10)) + "]",
            lambda n: '[["' + " " * n + '"]]',
        ),
        samples=(
            '[["a","duration(a==v)","A"]]',
            '[["go","","","OBJ","$AdapterID-1.p","1"]]',
            '[["A","","","STA","T.p","x"]]',
            '[["a","x + 1"]]',
            '["a", "b"]',
            '[["A","on","an","1","0"]]',
        ),
    ),
]
