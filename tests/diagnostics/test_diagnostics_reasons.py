"""The table of reasons: each cause of the broker is in it, and docs/troubleshooting.md shows all of it.

``python tests/diagnostics/test_diagnostics_reasons.py`` writes the document's table.
"""

from __future__ import annotations

from pathlib import Path

from mqtt5 import ConnAckReasonCode, DisconnectReasonCode, SubAckReasonCode

from terrazzo.domain.refusals import reasons as refusal_reasons
from terrazzo.domain.refusals.reasons import REASONS, STRANGERS_ARE_TOLD, Reason
from terrazzo_broker.refusals import TOLD, Cause

DOCUMENT = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
BEGIN, END = "<!-- reasons -->\n", "<!-- /reasons -->"


def table() -> str:
    rows = ["| reason | MQTT 5 | the terminal is told | what was wrong | what to do |", "|---|---|---|---|---|"]
    for each in REASONS.values():
        code = f"0x{each.code:02X}" if each.code else "–"
        told = each.told or ("what was wrong" if each.code else "–")
        rows.append(f"| `{each.name}` | {code} | {told} | {each.text} | {each.advice.replace('<', '&lt;')} |")
    return "\n".join(rows) + "\n"


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == table(), f"run python {Path(__file__).name}"


def test_each_reason_of_the_module_is_in_the_table_once() -> None:
    named = [each for each in vars(refusal_reasons).values() if isinstance(each, Reason)]
    assert all(REASONS[each.name] is each for each in named)
    rows = (*refusal_reasons._LOGIN, *refusal_reasons._CONNECT, *refusal_reasons._PACKETS, *refusal_reasons._ENDS)
    assert len(REASONS) == len(rows)


def test_each_cause_of_the_broker_is_in_the_table_and_said_alike() -> None:
    assert {str(cause) for cause in Cause} <= REASONS.keys()
    for cause, told in TOLD.items():
        assert REASONS[cause].told == told


def test_codes_are_those_of_mqtt_5() -> None:
    codes = {int(code) for kind in (ConnAckReasonCode, DisconnectReasonCode, SubAckReasonCode) for code in _all(kind)}
    assert {each.code for each in REASONS.values() if each.code} <= codes


def _all(kind: type) -> list[object]:
    return [getattr(kind, name) for name in vars(kind) if name.isupper()]


def test_strangers_are_told_one_thing() -> None:
    """What is decided before the proof and hangs on the uid: one code and one text."""
    hidden = [
        refusal_reasons.WRONG_USER_NAME,
        refusal_reasons.WRONG_PIN,
        refusal_reasons.WRONG_SIGNATURE,
        refusal_reasons.SCRAM_MESSAGE,
        refusal_reasons.UNKNOWN_TERMINAL,
    ]
    assert {(each.code, each.told) for each in hidden} == {(0x86, STRANGERS_ARE_TOLD)}
    assert all(each.text and each.advice and each.text[-1] not in ".!" for each in REASONS.values())


if __name__ == "__main__":
    document = DOCUMENT.read_text(encoding="utf-8")
    head, _, rest = document.partition(BEGIN)
    DOCUMENT.write_text(head + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")
