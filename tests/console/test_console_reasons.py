"""Every reason that a client can get is said in Chinese, too: the platform's source against the console's table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PLATFORM = Path(__file__).parents[2] / "platform" / "terrazzo"
TABLE = Path(__file__).parents[2] / "platform" / "console" / "words" / "server-reasons.ts"
NOT_TOLD = {"backup", "cli", "client", "config", "influx", "runtime"}
"""Folders whose errors the log, the command line, ``/readyz`` or an answer as InfluxDB has it tells."""
TEXT_AT = {
    "BadParameter": 1,
    "NotAuthenticated": 0,
    "SecondFactorNeeded": 0,
    "NotPermitted": 0,
    "Conflict": 0,
    "Skipped": 0,
    "Throttled": 0,
    "Unavailable": 0,
    "ServiceFailed": 0,
    "StoreUnavailable": 0,
}
"""The errors that clients are told of, and which argument is the text."""
_VALUE = "{}"
_NO_WORDS = re.compile(r"(([\w.]|\{\})+: )?(\{\}|[^a-zA-Z])*")
"""Nothing but what differs, perhaps behind a field: its words are made elsewhere."""


def texts_of(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may come to, with ``{}`` for what differs."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else _VALUE for each in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from (one + other for one in texts_of(left) for other in texts_of(right))
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts_of(body)
            yield from texts_of(orelse)
        case _:
            yield _VALUE


def said() -> Iterator[tuple[str, str]]:
    """Each reason in the source, and where."""
    for file in sorted(PLATFORM.rglob("*.py")):
        if NOT_TOLD & set(file.relative_to(PLATFORM).parts):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            at = TEXT_AT.get(node.func.id)
            if at is not None and len(node.args) > at:
                place = f"{file.relative_to(PLATFORM)}:{node.lineno}"
                yield from ((text, place) for text in texts_of(node.args[at]))


def table() -> set[str]:
    """The console's English texts, with ``{}`` for what differs."""
    rows = re.findall(r'^  \["((?:[^"\\]|\\.)*)", "', TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"\{\d\}", _VALUE, row.replace('\\"', '"')) for row in rows}


def test_every_reason_has_chinese_words() -> None:
    known = table()
    assert len(known) > 200
    reasons = [(text, place) for text, place in said() if not _NO_WORDS.fullmatch(text)]
    assert len(reasons) > 250
    assert {text: place for text, place in reasons if text not in known} == {}


def test_each_action_of_the_audit_log_has_words() -> None:
    table = (TABLE.parents[1] / "audit" / "action-words.ts").read_text(encoding="utf-8")
    known = set(re.findall(r'^  (\w+): \["', table, flags=re.MULTILINE))
    found: dict[str, str] = {}
    for file in sorted(PLATFORM.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found |= dict.fromkeys(_actions(node), str(file.relative_to(PLATFORM)))
    assert len(found) > 10
    assert {name: file for name, file in found.items() if name not in known} == {}


def _actions(call: ast.Call) -> list[str]:
    """What an entry of the audit log that is made here says was done."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    given = [each.value for each in call.keywords if name == "AuditEntry" and each.arg == "action"]
    given += call.args[1:2] if name == "about_user" else []
    return [text for each in given for text in texts_of(each) if text != _VALUE]


def test_a_reason_that_is_missing_is_noticed() -> None:
    call = ast.parse('raise BadParameter("a", f"is {b} " + ("x" if c else d) + "y")').body[0]
    assert isinstance(call, ast.Raise)
    assert isinstance(call.exc, ast.Call)
    assert list(texts_of(call.exc.args[1])) == ["is {} xy", "is {} {}y"]
    assert "is {} xy" not in table()
