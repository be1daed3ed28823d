"""Reasons: text that knows its code, on its way from where it is raised to an answer."""

from __future__ import annotations

import pickle
from string import Formatter
from typing import Any

import msgspec
import pytest

from terrazzo.api.kernel.envelope import EMPTY_TEXT, ComponentReply, GatewayReply, Reply, explain
from terrazzo.api.kernel.schema_faults import schema_fault
from terrazzo.bulk.report import ImportRefused, Issues, Report
from terrazzo.domain.mapping_row import RowError
from terrazzo.errors import BadParameter, Conflict, NotFound, QuotaExceeded
from terrazzo.reasons import CATALOGUE, Reason, Said, reason_of, retold, say, say_each, told_by

GATEWAY = GatewayReply("ping", EMPTY_TEXT)


def answer(error: Exception, reply: Reply = GATEWAY) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(reply.failure(explain(error, reply)).body)
    return found


def told(text: str, field: str = "") -> Any:
    return msgspec.to_builtins(reason_of(text, field=field))


def test_a_sentence_is_text_with_a_code() -> None:
    said = say("too_many_characters", most=64, got=70)
    assert said == "at most 64 characters, got 70"
    assert told(said, "name") == {
        "code": "too_many_characters",
        "parameters": {"most": 64, "got": 70},
        "field": "name",
    }


@pytest.mark.parametrize("code", CATALOGUE)
def test_each_sentence_can_be_filled(code: str) -> None:
    found = [(name, spec or "") for _, name, spec, _ in Formatter().parse(CATALOGUE[code]) if name]
    places: dict[str, object] = {name: 7 if spec[-1:] in (",", "x", "f", "g") else "7" for name, spec in found}
    assert told(say(code, **places))["parameters"].keys() == places.keys()


def test_what_a_sentence_becomes_is_plain_text_that_encoders_take() -> None:
    said = say("is_required")
    for text in (str(said), said[:], f"{said}", f"uid: {said}", str(ValueError(said))):
        assert type(text) is str
    assert isinstance(told_by(ValueError(said)), Said)


@pytest.mark.parametrize("reply", [GATEWAY, ComponentReply()])
def test_answers_carry_text_and_reason(reply: Reply) -> None:
    found = answer(BadParameter("uid", say("is_required")), reply)
    assert found["info"] == "uid: is required"
    assert found["reason"] == {"code": "is_required", "parameters": {}, "field": "uid"}


def test_records_and_quotas_have_reasons() -> None:
    assert answer(NotFound("uid", "a"))["reason"]["parameters"] == {"value": "'a'"}
    found = answer(QuotaExceeded("uid", 10_001, 10_000, "terminals", "limits.terminals"))
    assert found["info"] == "uid: your company would have 10,001 terminals, and may have 10,000 (limits.terminals)"
    assert found["reason"]["parameters"]["has"] == 10_001


def test_words_of_another_program_have_none() -> None:
    assert "reason" not in answer(Conflict("UNIQUE constraint failed"))
    assert "reason" not in answer(BadParameter("uid", "whatever"))


def test_an_internal_error_has_one() -> None:
    found = answer(KeyError("x"))
    assert found["info"] == f"internal error; the log has it as {found['reason']['parameters']['incident']}"


def test_a_reason_within_a_reason_has_its_own_code() -> None:
    error = RowError(3, 6, say("no_row_with_code", code="B"))
    assert str(error) == "row 3, column 6: no row has the code 'B'"
    within = {"code": "no_row_with_code", "parameters": {"code": "'B'"}}
    assert told(told_by(error)) == {
        "code": "row_column_wrong",
        "parameters": {"row": 3, "column": 6, "reason": within},
    }


def test_an_error_within_a_reason_is_told_with_its_code() -> None:
    said = say("payload_wrong", payload=2, reason=ValueError(say("payload_empty")))
    assert said == "payload 2: the payload is empty"
    assert told(said)["parameters"]["reason"]["code"] == "payload_empty"


def test_reasons_in_one_another_end() -> None:
    said = say("is_required")
    for row in range(100):
        said = say("row_wrong", row=row, reason=said)
    found, depth = told(said), 0
    while isinstance(found, dict):
        found, depth = found["parameters"].get("reason"), depth + 1
    assert depth < 12


@pytest.mark.parametrize("value", [True, float("nan"), float("-inf"), 2**64, None, [1]])
def test_what_json_has_no_number_for_is_text(value: object) -> None:
    parameters = told(say("fixed_for_good", value=value))["parameters"]
    assert parameters == {"value": str(value)}
    reason = reason_of(say("fixed_for_good", value=value))
    assert msgspec.json.decode(msgspec.json.encode(reason), type=Reason) == reason


def test_numbers_that_are_no_decimal_ones_are_told_as_written() -> None:
    assert told(say("payload_unknown_format", byte=255))["parameters"] == {"byte": "ff"}


def test_an_imports_first_error_keeps_its_code() -> None:
    issues = Issues()
    issues.add(2, "uid", say("is_taken", value="a"))
    issues.add(3, "uid", say("is_required"))
    report = Report(dry_run=True, mode="create")
    issues.put_into(report)
    found = answer(ImportRefused(report))
    assert found["info"] == "row 2, column uid: a is taken; and 1 more"
    assert found["reason"]["parameters"]["reason"] == {"code": "is_taken", "parameters": {"value": "a"}}
    assert found["result"]["errors"][1]["told"] == {"code": "is_required", "parameters": {}}


def test_several_fields_are_told_apart() -> None:
    text = say_each([("a", say("is_required")), ("b", "of another program")])
    found = answer(BadParameter("a", text))
    assert found["info"] == "a: is required; b: of another program"
    assert found["reason"] == {
        "code": "several",
        "parameters": {
            "faults": [
                {"code": "is_required", "parameters": {}, "field": "a"},
                {"code": "text", "parameters": {"text": "of another program"}, "field": "b"},
            ]
        },
    }


def test_one_of_several_is_itself() -> None:
    assert say_each([("a", say("is_required"))]) == "is required"
    named = answer(BadParameter("group", say_each([("a", say("is_required"))], named=True)))
    assert named["info"] == "group: a: is required"
    assert named["reason"]["field"] == "group"


def test_other_processes_say_the_same() -> None:
    said = say("row_wrong", row=1, reason=ValueError(say("expected_a_code")))
    assert told(pickle.loads(pickle.dumps(said))) == told(said)
    reason = reason_of(said)
    assert reason_of(retold(str(said), reason), field="script") == reason_of(said, field="script")


def test_the_same_sentence_with_another_value() -> None:
    said = say("field_is_taken", field="uid", value="a")
    assert said.again(field="terminal_id") == "terminal_id: a is taken"


def test_lone_surrogates_are_escapes() -> None:
    said = say("no_record", value="\udcff")
    assert msgspec.json.encode(reason_of(said))
    assert msgspec.json.encode(reason_of(say_each([("a", "\udcff"), ("b", "x")])))


def test_what_was_cut_in_the_sentence_is_cut_in_the_parameter() -> None:
    parameters = told(say("no_time", got="9" * 100_000))["parameters"]
    assert len(parameters["got"]) == 80


class _Asked(msgspec.Struct):
    name: str
    count: msgspec.UnsetType | int = 1


@pytest.mark.parametrize(
    ("body", "kind", "path", "reason", "code"),
    [
        (b"1", str, "", "expected str, got int", "expected_kind_got"),
        (b"[1, null]", list[int], "[1]", "expected int, got null", "expected_kind_got"),
        (b"{}", _Asked, "", "object missing required field `name`", "missing_field"),
    ],
)
def test_what_msgspec_says_has_a_code(body: bytes, kind: Any, path: str, reason: str, code: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(body, type=kind)
    place, text = schema_fault(raised.value)
    assert (place, text) == (path, reason)
    assert told(text)["code"] == code


def test_text_of_another_kind_is_told_as_text() -> None:
    """Names of tables are SQLAlchemy's, which no encoder takes."""

    class Name(str):
        __slots__ = ()

    told = reason_of(say("no_record", value=Name("pump")), field=Name("terminal"))
    assert msgspec.json.decode(msgspec.json.encode(told)) == {
        "code": "no_record",
        "field": "terminal",
        "parameters": {"value": "'pump'"},
    }
