"""Every reason that a client can get is of the catalogue, and the console has Chinese words for each code of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from terrazzo.analysis.regression import FIT_REASONS
from terrazzo.domain.campaigns.item import CAMPAIGN_REASONS
from terrazzo.domain.command import COMMAND_REASONS
from terrazzo.mapping.replay.reasons import REPLAY_REASONS
from terrazzo.messenger.message import MESSAGE_REASONS
from terrazzo.metadata.definitions.registry import ENTITIES
from terrazzo.ports.bridge import BRIDGE_REASONS
from terrazzo.ports.providers import PROVIDER_REASONS
from terrazzo.reasons import CATALOGUE, SEVERAL, access, files, payloads, records, requests, tables, work

PLATFORM = Path(__file__).parents[2] / "platform" / "terrazzo"
ADAPTERS = Path(__file__).parents[2] / "adapters" / "terrazzo_adapters" / "messenger"
WITH_TASKS = (PLATFORM, PLATFORM.parents[1] / "broker", ADAPTERS.parent)
WORDS = Path(__file__).parents[2] / "platform" / "console" / "words"
TABLES = (WORDS / "server-reasons.ts", WORDS / "value-reasons.ts")
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
    "ValueError": 0,
    "ExpressionError": 0,
    "RowError": 2,
    "_error": 1,  # a RowError of the row at hand
    "Reject": 1,
    "BadForm": 0,
    "BadCoding": 0,
    "Fenced": 0,
    "BodyRefused": 1,
    "WrongCode": 0,
    "_refusal": 0,
    "refused_with": 1,
    "encode_refusal": 1,
    "_refuse_head": 2,
}
"""The errors that clients are told of, as they are or as the reason of another one, and which argument is the text."""
OF_THE_PROGRAM = {
    "access/key_rotation.py": "told on the command line",
    "api/kernel/operation.py": "two actions of one name: at the start",
    "crypto": "key files: at the start",
    "files/folder.py": "a path that no client names",
    "replication": "between nodes",
}
"""Where a ``ValueError`` is no client's, with the reason."""
GIVERS = ("fail", "RolloutVerdict", "recall", "SendVerdict", "_lost", "_verdict", "AddressRefused")
"""What is called with a reason that is kept as an argument of no name."""
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


def calls_in(text: str) -> list[ast.Call]:
    """All calls in a file's text."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]


@cache
def sources() -> tuple[tuple[str, str, list[ast.Call]], ...]:
    """The platform's files: path, text, and all calls in them."""
    found = []
    for file in sorted(PLATFORM.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        found.append((str(file.relative_to(PLATFORM)), text, calls_in(text)))
    return tuple(found)


def said() -> Iterator[tuple[str, str]]:
    """Each reason in the source, and where."""
    for path, _, made in sources():
        if NOT_TOLD & set(path.split("/")):
            continue
        for node in made:
            name = _called(node)
            at = TEXT_AT.get(name)
            if name == "ValueError" and any(path.startswith(each) for each in OF_THE_PROGRAM):
                continue
            if at is not None and len(node.args) > at:
                place = f"{path}:{node.lineno}"
                yield from ((text, place) for text in texts_of(node.args[at]))


def _called(node: ast.AST) -> str:
    """The name of what is called, of a method too; empty: nothing is."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def calls() -> Iterator[tuple[ast.Call, str]]:
    """Each call of ``say`` in the platform, and where."""
    for path, text, made in sources():
        if "from terrazzo.reasons" not in text:  # the command line has a say of its own
            continue
        for node in made:
            if _called(node) == "say" and isinstance(node.func, ast.Name):
                yield node, f"{path}:{node.lineno}"


def wrong_with(call: ast.Call) -> str:
    """What is wrong with a call of ``say``; empty: its codes are of the catalogue and have all their parameters."""
    codes = [text for each in call.args for text in texts_of(each)]
    given = {each.arg for each in call.keywords if each.arg}
    spread = any(each.arg is None for each in call.keywords)
    for code in codes:
        if code not in CATALOGUE:
            return f"{code}: is none of the catalogue's"
        wanted = places_of(CATALOGUE[code])
        if not given <= wanted or (wanted != given and not spread):
            return f"{code}: needs {sorted(wanted)}, got {sorted(given)}"
    return ""


def places_of(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def chinese() -> dict[str, str]:
    """The console's Chinese words by code; a code that stands there twice doesn't compile."""
    text = "\n".join(each.read_text(encoding="utf-8") for each in TABLES)
    return dict(re.findall(r'^  (\w+): "((?:[^"\\]|\\.)*)",$', text, flags=re.MULTILINE))


def test_whatever_clients_are_told_is_of_the_catalogue() -> None:
    assert {text: place for text, place in said() if not _NO_WORDS.fullmatch(text)} == {}


def test_each_reason_is_said_with_its_parameters() -> None:
    found = [(wrong_with(call), place) for call, place in calls()]
    assert len(found) > 500
    assert [(wrong, place) for wrong, place in found if wrong] == []


def test_each_code_of_the_catalogue_is_said_somewhere() -> None:
    used = {text for call, _ in calls() for each in call.args for text in texts_of(each)}
    assert sorted(set(CATALOGUE) - used) == []


def test_the_areas_share_no_code() -> None:
    areas = [access, files, payloads, records, requests, tables, work]
    assert sum(len(each.SENTENCES) for each in areas) == len(CATALOGUE)


def test_each_code_has_chinese_words_with_the_same_parameters() -> None:
    known, wanted = chinese(), CATALOGUE | {SEVERAL: "{faults}"}
    assert len(known) > 400
    assert known.keys() == wanted.keys()
    places = {code: set(re.findall(r"\{(\w+)\}", words)) for code, words in known.items()}
    assert {code for code in known if places[code] != places_of(wanted[code])} == set()
    no_words = {code for code, words in known.items() if not re.search("[\u4e00-\u9fff]", words)}
    assert no_words == {SEVERAL, "text", "attachment_wrong", "run_at_wrong", "point_wrong", "code_wrong"}


def test_what_is_kept_as_a_sentence_is_said_in_chinese() -> None:
    table = (WORDS / "kept-reasons.ts").read_text(encoding="utf-8")
    known = dict(re.findall(r'^  "([^"]+)": "([^"]+)",$', table, flags=re.MULTILINE))
    wanted = (*COMMAND_REASONS, *CAMPAIGN_REASONS, *MESSAGE_REASONS, *PROVIDER_REASONS, *FIT_REASONS, *REPLAY_REASONS)
    assert list(known) == [each.replace(":g}", "}") for each in (*wanted, *BRIDGE_REASONS)]
    assert all(re.search("[\u4e00-\u9fff]", words) for words in known.values())
    givers = ("commands/", "campaigns/", "messenger/", "analysis/regression", "domain/campaign_", "domain/command.py")
    given = [node for path, _, made in sources() if path.startswith(givers) for node in made]
    given += [node for file in ADAPTERS.glob("*.py") for node in calls_in(file.read_text(encoding="utf-8"))]
    written = [each.value for node in given for each in node.keywords if each.arg == "reason"]
    written += [each for node in given if _called(node) in GIVERS for each in node.args]
    assert [text for each in written for text in texts_of(each) if not _NO_WORDS.fullmatch(text)] == []


def test_why_a_bridge_is_down_is_one_of_its_sentences() -> None:
    """What the remote broker or the system says stands in one of them, and is no sentence of ours."""
    known = {re.sub(r"\{\w+\}", _VALUE, each) for each in (*BRIDGE_REASONS, *PROVIDER_REASONS)}
    at = {"cut": 0, "RemoteLinkError": 0, "_drop": 1, "_refuse": 2}
    said = set[str]()
    for file in sorted((ADAPTERS.parent / "bridge").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Call() if (place := at.get(_called(node))) is not None and len(node.args) > place:
                    said.update(texts_of(node.args[place]))
                case ast.Assign(targets=[ast.Attribute(attr="last_error") | ast.Name(id="_CLOSED" | "_WITHHELD")]):
                    said.update(texts_of(node.value))
                case ast.Assign(targets=[ast.Name(id="said")]):
                    said.update(f"{text}: {_VALUE}" for text in texts_of(node.value))
    assert len(said) > 12
    outside = {"", _VALUE, f"{_VALUE}: {_VALUE}"}  # the last: a topic, and why MQTT has no place for it
    assert said - known - outside == set()


def test_why_a_connection_ended_is_said_in_chinese() -> None:
    table = (WORDS / "breaks.ts").read_text(encoding="utf-8")
    known = {one or other for one, other in re.findall(r'^  (?:"([^"]+)"|(\w+)): "', table, flags=re.MULTILINE)}
    folders = (PLATFORM.parents[1] / "broker", PLATFORM / "embedded")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    made = [node for file in files for node in calls_in(file.read_text(encoding="utf-8")) if _called(node) == "close"]
    said = {text for node in made for text in ([*texts_of(node.args[0])] if node.args else [])}
    assert len(said) > 10
    assert {text for text in said if not text.startswith("disconnected: ") and not _NO_WORDS.fullmatch(text)} <= known


def test_no_page_shows_or_parses_the_platforms_sentences_without_words() -> None:
    """Texts that the platform keeps go through the tables of words, and decisions go by codes."""
    console = WORDS.parent
    files = [*console.rglob("*.tsx"), *console.rglob("*.ts")]
    own = [file for file in files if not {"node_modules", "generated", "tests"} & set(file.relative_to(console).parts)]
    assert len(own) > 100
    raw = re.compile(
        r"(text=\{|>\{)[\w.]*\.(last_error|reason|info|svc_msg|message)\}"  # shown as it came
        r"|(\.test|\.exec)\((error|failure)\.(info|message)\)"  # parsed
        r"|(error|failure)\.(info|message)\.(includes|startsWith|match)\("
    )
    found = {
        f"{file.relative_to(console)}: {hit[0]}"
        for file in own
        for hit in raw.finditer(file.read_text(encoding="utf-8"))
    }
    assert found == {*AS_IT_CAME}


AS_IT_CAME = {
    "terminals/service.tsx: text={out.reason}": "what a person wrote",
    "words/errors.ts: .test(error.info)": "what a database says of a full disk, in its own words",
}
"""Places where the platform's text is shown or read as it came, with the reason."""


def test_each_action_of_the_audit_log_has_words() -> None:
    table = (WORDS.parent / "audit" / "action-words.ts").read_text(encoding="utf-8")
    known = set(re.findall(r'^  (\w+): \["', table, flags=re.MULTILINE))
    found: dict[str, str] = {}
    for path, _, made in sources():
        for node in made:
            if isinstance(node.func, ast.Name):
                found |= dict.fromkeys(_actions(node), path)
    assert len(found) > 10
    assert {name: file for name, file in found.items() if name not in known} == {}


def test_each_task_that_is_started_has_a_chinese_name() -> None:
    table = (WORDS / "task-names.ts").read_text(encoding="utf-8")
    known = dict(re.findall(r'^  "([^"]+)": "([^"]+)",$', table, flags=re.MULTILINE))
    texts = (file.read_text(encoding="utf-8") for folder in WITH_TASKS for file in folder.rglob("*.py"))
    starting = [text for text in texts if re.search(r"\b(spawn|_?repeat)\(", text)]
    started = {name for text in starting for name in _tasks_in(ast.parse(text))} - {_VALUE}
    assert {re.sub(r"\{\w+\}", _VALUE, each) for each in known} == started
    assert all(sorted(_PLACE.findall(name)) == sorted(_PLACE.findall(words)) for name, words in known.items())


_PLACE = re.compile(r"\{\w+\}")


def _tasks_in(tree: ast.Module) -> Iterator[str]:
    """The names of long-lived tasks that a file starts: given as such, by a function that makes them, or in a loop."""
    nodes = list(ast.walk(tree))
    made = [each for each in nodes if _called(each) in ("spawn", "repeat", "_repeat") and isinstance(each, ast.Call)]
    named = [each.args[0] for each in made if _is_text(each.args[:1])]
    for node in nodes if any(_called(each) == "spawn" for each in nodes) else []:
        match node:
            case ast.FunctionDef(name="_task_name", body=[*_, ast.Return(value=ast.JoinedStr() as text)]):
                named.append(text)
            case ast.For(target=ast.Tuple(elts=[ast.Name(id="name"), ast.Name(id="work")]), iter=ast.Tuple(elts=rows)):
                named += [row.elts[0] for row in rows if isinstance(row, ast.Tuple)]
            case ast.Assign(targets=[ast.Name(id="names")], value=ast.List(elts=[first, ast.Starred(value=rest)])):
                named += [first, rest.elt] if isinstance(rest, ast.GeneratorExp) else [first]
    yield from (text for each in named for text in texts_of(each))


def _is_text(given: list[ast.expr]) -> bool:
    return bool(given) and isinstance(given[0], ast.JoinedStr | ast.Constant)


def test_each_kind_of_record_of_the_audit_log_has_words() -> None:
    table = (WORDS.parent / "audit" / "entity-words.ts").read_text(encoding="utf-8")
    known = set(re.findall(r'^  (\w+): \["', table, flags=re.MULTILINE))
    named = [each for _, _, made in sources() for node in made for each in node.keywords if each.arg == "entity"]
    said = {text for each in named if _is_text([each.value]) for text in texts_of(each.value)}
    assert len(said) > 5
    assert known == said | {each.name for each in ENTITIES}


def _actions(call: ast.Call) -> list[str]:
    """What an entry of the audit log that is made here says was done."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    given = [each.value for each in call.keywords if name == "AuditEntry" and each.arg == "action"]
    given += call.args[1:2] if name == "about_user" else []
    return [text for each in given for text in texts_of(each) if text != _VALUE]


def test_what_is_missing_is_noticed() -> None:
    call = ast.parse('raise BadParameter("a", f"is {b} " + ("x" if c else d) + "y")').body[0]
    assert isinstance(call, ast.Raise)
    assert isinstance(call.exc, ast.Call)
    assert list(texts_of(call.exc.args[1])) == ["is {} xy", "is {} {}y"]
    assert not _NO_WORDS.fullmatch("is {} xy")


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ('say("longer_than", most=3)', ""),
        ('say("is_required" if a else "longer_than")', "longer_than: needs ['most'], got []"),
        ('say("is_required", most=3)', "is_required: needs [], got ['most']"),
        ('say("no_such_code")', "no_such_code: is none of the catalogue's"),
        ("say(code)", "{}: is none of the catalogue's"),
        ('say("row_wrong", **values, row=1)', ""),
    ],
)
def test_a_wrong_call_is_noticed(call: str, wrong: str) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert wrong_with(node) == wrong
