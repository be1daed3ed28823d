"""Descriptions of terminals: what is accepted, and how what is not is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from terrazzo_simulators.spec import Naming, SpecError, TerminalSpec, generate_specs, parse_spec, read_specs

LEAST = {"uid": "a", "username": "u", "pin": "p"}


def test_the_fields_of_a_record() -> None:
    record = {**LEAST, "mode": "auto", "dixie": 1, "scram": "SCRAM-SHA-256", "type": "Adapter-X", "format": "msgpack"}
    assert parse_spec({**record, "encryption": 1, "rsa_publickey": None, "protocol": "5.0"}) == TerminalSpec(
        uid="a",
        username="u",
        pin="p",
        mode="auto",
        dixie=True,
        scram="SCRAM-SHA-256",
        type="Adapter-X",
        format="msgpack",
        encryption=True,
        protocol="5.0",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"uid": "a/b"}, "uid must not contain"),
        ({"uid": ""}, "uid must have 1 to 64"),
        ({"uid": 5}, "uid must be a string"),
        ({"username": "x" * 33}, "username must have 1 to 32"),
        ({"pin": "x" * 17}, "pin must have 1 to 16"),
        ({"mode": "none"}, "mode must be one of pwd, auto"),
        ({"dixie": 2}, "dixie must be 0 or 1"),
        ({"dixie": "1"}, "dixie must be 0 or 1"),
        ({"dixie": 1, "protocol": "3.1.1"}, "protocol must be 5.0"),
        ({"type": "Adapter-IX"}, "type must be one of"),
        ({"format": []}, "format must be one of"),
        ({"rsa_publickey": "secret"}, "rsa_publickey must be a PEM"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_a_bad_field_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match="terminal: ") as caught:
        parse_spec({**LEAST, **change})
    assert said in str(caught.value)


@pytest.mark.parametrize("missing", sorted(LEAST))
def test_a_missing_field_is_named(missing: str) -> None:
    with pytest.raises(SpecError, match=f"{missing} is missing"):
        parse_spec({name: value for name, value in LEAST.items() if name != missing})


@pytest.mark.parametrize("content", ["", "{}", "[]", "[1]", '[{"uid":"a"}]', '["\\ud83d"]', "NaN"])
def test_a_bad_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "terminals.json"
    path.write_text(content)
    with pytest.raises(SpecError, match=r"terminals\.json"):
        read_specs(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.json: cannot be read"):
        read_specs(tmp_path / "none.json")


def test_two_terminals_of_one_uid_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "terminals.json"
    path.write_text(json.dumps([LEAST, LEAST]))
    with pytest.raises(SpecError, match="uid: 'a' is there twice"):
        read_specs(path)


def test_generated_terminals_follow_the_patterns_and_take_the_types_in_turn() -> None:
    specs = generate_specs(4, naming=Naming(uid="t{n}", username="u{n}", pin="{n:04d}", first=9))
    assert [spec.uid for spec in specs] == ["t9", "t10", "t11", "t12"]
    assert specs[0].pin == "0009"
    assert [spec.type for spec in specs] == ["Adapter-II", "Adapter-III", "Adapter-X", "Adapter-II"]


@pytest.mark.parametrize("pattern", ["{m}", "{}", "{n", "{n.x}", "{n:zz}"])
def test_a_bad_pattern_is_named(pattern: str) -> None:
    with pytest.raises(SpecError, match="pin: pattern"):
        generate_specs(1, naming=Naming(pin=pattern))


def test_a_pattern_without_a_number_gives_one_uid_twice() -> None:
    with pytest.raises(SpecError, match="uid"):
        generate_specs(2, naming=Naming(uid="same"))


def test_what_a_terminal_goes_on_from() -> None:
    spec = parse_spec(
        {**LEAST, "interval_s": 0, "rated": 40, "last": {"ENERGY": 7}, "kept_since": "1970-01-02T00:00:00Z"}
    )
    assert (spec.interval_s, spec.rated, dict(spec.last), spec.kept_since) == (0, 40, {"ENERGY": 7}, 86_400)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interval_s": "1"}, "interval_s must be a number from 0 to 86400"),
        ({"interval_s": True}, "interval_s must be a number"),
        ({"rated": 0}, "rated must be a number from 0.1"),
        ({"last": [1]}, "last must be an object of numbers"),
        ({"last": {"ENERGY": "much"}}, "last must be an object of numbers"),
        ({"last": {"ENERGY": float("nan")}}, "last must be an object of numbers"),
        ({"kept_since": "yesterday"}, "kept_since must be a time such as"),
        ({"kept_since": 5}, "kept_since must be a time such as"),
        ({"kept_step_s": 0}, "kept_step_s must be a number from 1"),
    ],
)
def test_what_it_can_not_go_on_from_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_spec({**LEAST, **change})
