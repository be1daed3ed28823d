"""What each column takes and refuses; every refusal names the column."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st
from registry_stand import ROOT, Stand

from terrazzo.database.field import FieldKind, structure
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import CONFIGURATION, ENTITIES, TERMINAL
from turns_of_loop import WorkClock


def pem(key: Any, password: bytes | None = None) -> str:
    sealed = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    text: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed)
    return text.decode()


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    """Made when a test asks for it: it takes up to a second, which each process that collects this file would pay."""
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(params=["sqlite"])
def url() -> str:
    return ""


LENGTHS = {
    "terminal": {
        "uid": 64, "name": 64, "description": 255, "maker": 64, "type": 16, "username": 32, "pin": 16, "topic": 64,
        "server": 32, "reference": 64, "mode": 16, "access": 16,
    },
    "configuration": {
        "name": 64, "description": 255, "hardware": 64, "mcu_file": 128, "remosu_file": 128, "lua_file": 128,
        "mcu_version": 32, "remosu_version": 32, "lua_version": 32, "reference": 64,
    },
    "object": {
        "name": 64, "description": 255, "image": 128, "province": 16, "city": 16, "model": 32, "serial_no": 32,
        "gis": 128, "secret": 16, "control": 16, "reference": 64,
    },
    "mapping": {"name": 64, "description": 255, "reference": 64},
    "control": {"name": 64, "description": 255, "reference": 64},
}  # fmt: skip


def test_lengths_are_those_of_the_documents() -> None:
    for entity in ENTITIES:
        for name, length in LENGTHS.get(entity.name, {}).items():
            assert entity.fields[name].max_length == length, f"{entity.name}.{name}"


async def test_longest_text_fits_and_one_more_does_not(stand: Stand) -> None:
    texts = {name: "ü" * length for name, length in LENGTHS["configuration"].items()}
    row = await stand.entities.configurations.create(stand.first, texts)
    assert {name: row[name] for name in texts} == texts
    for name, length in LENGTHS["configuration"].items():
        with pytest.raises(BadParameter, match=f"{name}: at most {length} characters, got {length + 1}"):
            await stand.entities.configurations.create(stand.first, texts | {name: "x" * (length + 1)})


def terminal_refusals() -> list[tuple[str, object, str]]:
    """Field, value and reason."""
    return [
        ("uid", "a/b", "contains '/'"),
        ("uid", "a+", "contains '\\+'"),
        ("uid", "#", "contains '#'"),
        ("uid", " a", "starts or ends with a blank"),
        ("uid", "a\n", "starts or ends with a blank"),
        ("uid", "a\x07b", "contains a control character"),
        ("uid", "a\0b", "contains a NUL character"),
        ("uid", "", "is required"),
        ("uid", 7, "expected text, got an integer"),
        ("name", "   ", "is required"),
        ("name", None, "is required"),
        ("name", "a\ud800", "contains an unpaired surrogate"),
        ("name", ["a"], "expected text, got an array"),
        ("type", "", "is required"),
        ("type", "Adapter-II-and-more", "at most 16"),
        ("config_id", "nothing", "no configuration 'nothing'"),
        ("config_id", 999, "no configuration 999"),
        ("config_id", True, "expected a uid or an id, got a boolean"),
        ("config_id", 1.5, "expected a uid or an id, got a number"),
        ("config_id", "", "is required"),
        ("mode", "password", "expected one of pwd, auto, cert, got 'password'"),
        ("pin", "", "is required"),
        ("pin", "x" * 17, "at most 16 characters, got 17"),
        ("access", "none", "expected one of all, pub, sub"),
        ("topic", "pub:x", "pub: 'x' is not a channel"),
        ("topic", "everything", "expected 'all'"),
        ("session_expiry", -1, "expected 0..4294967295, got -1"),
        ("session_expiry", 2**32, "expected 0..4294967295"),
        ("keep_alive", 65_536, "expected 0..65535, got 65536"),
        ("keep_alive", "60", "expected an integer, got text"),
        ("keep_alive", True, "expected an integer, got a boolean"),
        ("keep_alive", 1.0, "expected an integer, got a number"),
        ("dixie", 2, "expected 0..1, got 2"),
        ("is_available", "yes", "expected an integer, got text"),
        ("created_by", 2**63, "expected 0.."),
        ("rsa_privatekey", "not a key", "not a readable PEM private key"),
        ("rsa_privatekey", pem(rsa_key())[:500], "not a readable PEM private key"),
        ("rsa_privatekey", pem(ec.generate_private_key(ec.SECP256R1())), "not an RSA key"),
        ("rsa_privatekey", pem(rsa_key(), b"secret"), "encrypted with a password"),
        ("rsa_privatekey", "x" * 20_000, "at most 16384"),
        ("serial_no", "1", "no such field"),
        ("config_uid", "1", "no such field"),
        ("", "1", "no such field"),
    ]


async def test_terminal_refuses(stand: Stand) -> None:
    await stand.terminal("G1")
    for name, value, reason in terminal_refusals():
        with pytest.raises(BadParameter, match=f"^{name}: .*{reason}"):
            await stand.terminal("G2", **{name: value})
        if name not in ("uid", "created_by"):  # which an update doesn't change
            with pytest.raises(BadParameter, match=f"^{name}: .*{reason}"):
                await stand.entities.terminals.update(stand.first, "G1", {name: value})
    assert (await stand.entities.terminals.page(ROOT)).total == 1


async def test_terminal_takes(stand: Stand) -> None:
    for number, values in enumerate(
        [
            {"uid": "x" * 64},
            {"uid": "Größe 7 \U0001f600"},
            {"uid": "$SYS"},
            {"topic": ""},
            {"topic": "pub:r,a,v,p,i,n;sub:g/#"},
            {"topic": "sub:g/#"},
            {"rsa_privatekey": pem(rsa_key())},
            {"rsa_privatekey": None},
            {"is_route": True},
            {"type": "Something new"},
        ]
    ):
        row = await stand.terminal(values.get("uid", f"G{number}"), **values)
        for name, value in values.items():
            assert row[name] == (value if value not in (None, "") else {"topic": "all"}.get(name, ""))


ROWS: list[tuple[str, Any, str | None]] = [
    ("mappings", [["A", "a", "一", "STA", "$AdapterID-1.T", "x", ""]], None),
    ("mappings", '[["A","a","a","STA","G1.T","x"]]', None),
    ("mappings", [["A", "a", "a", "EVNT", "Changed", "G1.B", "@Compare", [">", 5]]], None),
    ("mappings", [], None),
    ("mappings", [["A"] * 5], "row 1: expected an array of 6, 7 or 8 elements, got 5"),
    (
        "mappings",
        [["A", "", "", "STA", "G1.T", ""], "row"],
        "row 2: expected an array of 6, 7 or 8 elements, got something else",
    ),
    ("mappings", [[1] * 6], "row 1, column 1: expected a code"),
    ("mappings", [[" "] * 6], "row 1, column 1: expected a code"),
    ("mappings", {"a": 1}, "expected an array of rows"),
    ("mappings", "{", "not valid JSON"),
    ("mappings", "7", "expected a JSON object or array, got an integer"),
    ("mappings", "", "is required"),
    ("mappings", None, "is required"),
    ("mappings", "[" * 100_000, "(nested too deeply|not valid JSON)"),
    ("mappings", [["A\1"] * 6], "row 1, column 1: contains a brace or a control character"),
    ("mappings", [["A", "B\0", "", "EVNT", "$AdapterID-1.T", "", "x > 1"]], "contains a NUL character"),
    ("mappings", [["A", "", "", "FUNC", "", "B + 1"]], "row 1, column 6: no row has the code 'B'"),
    ("controls", [["A\1"] * 6], "row 1, column 1: contains a control character"),
    ("controls", [["Open", "", "", "OBJ", "$AdapterID-1", "1"]], "row 1, column 5: .* names no point"),
    ("controls", [["Upgrade", "", "", "APR", "$AdapterID-1", ""]], "row 1, column 1: Upgrade is not supported"),
    ("controls", [["Open", "", "", "OBJ", "t.V", "1"], ["Open", "", "", "OBJ", "t.W", ""]], "row 2, column 1: 'Open'"),
    ("controls", [["AXUpgrade", "", "", "APR", "$AdapterID-1", "lua"]], "row 1, column 6: expected LUA or MCU"),
    ("controls", [["Open", "Open", "开", "OBJ", "$AdapterID-1.Valve", "1"]], None),
    ("controls", [["Open"] * 7], "row 1: expected an array of 6 elements, got 7"),
]


async def test_scripts_are_rows(stand: Stand) -> None:
    for entity, script, reason in ROWS:
        repository = getattr(stand.entities, entity)
        if reason is not None:
            with pytest.raises(BadParameter, match=f"^script: {reason}"):
                await repository.create(stand.first, {"name": "s", "script": script})
            continue
        row = await repository.create(stand.first, {"name": "s", "script": script})
        assert isinstance(row["script"], list)
        assert (await repository.item(stand.first, row["uid"]))["script"] == row["script"]


LONG = {
    "texts": ["x" * 20] * 43_000,
    "one text": ["x" * 999_000],
    "numbers": list(range(150_000)),
    "objects": [{"a": 1}] * 110_000,
    "nested": [[[[]]]] * 110_000,
    "names": {str(number): number for number in range(70_000)},
}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_a_megabyte_is_looked_through_in_steps(value: Any) -> None:
    steps, clock, longest_s = structure("template").parsing(value), WorkClock(), 0.0
    is_over = False
    while not is_over:
        began_s = clock.now_s()
        is_over = next(steps, True) is True
        longest_s = max(longest_s, clock.now_s() - began_s)
    clock.stop()
    assert structure("template").parse(value) == value
    assert longest_s < 0.015, "in one go it takes 30 to 90 ms"


@pytest.mark.parametrize("wrong", ["a\0", {"a\0": 1}, {"a": ["b", {"c": "\0"}]}])
@pytest.mark.parametrize("as_text", [True, False])
def test_no_text_within_has_a_nul_character(wrong: Any, as_text: bool) -> None:
    value = [0] * 20_000 + [wrong]
    with pytest.raises(BadParameter, match="contains a NUL character"):
        structure("template").parse(msgspec.json.encode(value).decode() if as_text else value)


def test_backslashes_before_a_zero_are_no_nul_character() -> None:
    assert structure("template").parse(["\\u0000"]) == ["\\u0000"]


def test_what_is_taken_by_default_is_each_one_s_own() -> None:
    field = structure("tags", default=[])
    assert field.parse(None) == []
    assert field.parse(None) is not field.default


NEVER_WRITTEN = {
    "configurations": {"terminal_script": {}, "config_script": {}},
    "mappings": {"addition": [], "template": None},
    "objects": {"addition": [], "template": {}, "script": {}},
    "dashboards": {"template": {}},
    "collects": {"option": [], "script": None},
    "files": {"file": []},
}
"""What structures read as that nobody wrote, or that were emptied; ``null`` where the documents have it."""


@pytest.mark.parametrize("entity", sorted(NEVER_WRITTEN))
async def test_a_structure_that_was_never_written(stand: Stand, entity: str) -> None:
    repository, empty = getattr(stand.entities, entity), NEVER_WRITTEN[entity]
    required = {"mappings": {"script": []}, "dashboards": {"script": {}}}.get(entity, {})
    row = await repository.create(stand.first, {"name": "n", **required})
    assert {name: row[name] for name in empty} == empty
    for name, value in empty.items():
        for sent in ("", None, value):  # read and written back: the same
            changed = await repository.update(stand.first, row["id"], {name: sent})
            assert changed[name] == value
    listed = (await repository.page(stand.first)).rows[-1]
    assert {name: listed[name] for name in empty} == empty
    fresh = [await repository.create(stand.first, {"name": "n", **required}) for _ in range(2)]
    for name, value in empty.items():
        assert value is None or fresh[0][name] is not fresh[1][name], "nobody's change is another's"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON) | st.dictionaries(st.text(), JSON))
def test_any_json_is_kept_as_it_is_or_refused_by_name(value: Any) -> None:
    field = CONFIGURATION.fields["terminal_script"]
    try:
        assert field.parse(value) == value
        assert not any("\0" in text for text in texts_of(value))
    except BadParameter as error:
        assert error.field == "terminal_script"  # noqa: PT017 - either outcome is right, silence isn't
        if "NUL" in error.reason:
            assert any("\0" in text for text in texts_of(value))
        else:
            assert "surrogate" in error.reason or "JSON" in error.reason  # noqa: PT017


def texts_of(value: Any) -> Iterator[str]:
    """All texts in JSON, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in [*value, *(value.values() if isinstance(value, dict) else ())]:
            yield from texts_of(each)


@pytest.mark.parametrize(("text", "is_taken"), [("\\u0000", True), ("\0", False), ("\\\0", False), ("\\\\u0000", True)])
def test_a_nul_in_json_is_told_from_its_name(text: str, *, is_taken: bool) -> None:
    field = CONFIGURATION.fields["terminal_script"]
    for value in ([text], {"a": [text]}, {text: 1}):
        if is_taken:
            assert field.parse(value) == value
        else:
            with pytest.raises(BadParameter, match="NUL"):
                field.parse(value)


ANYTHING = JSON | st.binary() | st.sampled_from([object(), 1 + 2j, float("nan"), {1, 2}, (1, 2), 10**400])


@given(st.sampled_from(sorted(TERMINAL.fields)), ANYTHING)
def test_any_value_for_any_column_is_taken_or_refused_by_name(name: str, value: Any) -> None:
    field = TERMINAL.fields[name]
    try:
        parsed = field.parse(value)
    except BadParameter as error:
        assert error.field == name  # noqa: PT017 - either outcome is right, another exception isn't
        assert len(str(error)) < 600  # noqa: PT017
    else:
        kinds: dict[FieldKind, tuple[type, ...]] = {
            FieldKind.TEXT: (str,),
            FieldKind.SECRET: (str,),
            FieldKind.REFERENCE: (int, str),
            FieldKind.JSON: (list, dict),
        }
        assert parsed is None or isinstance(parsed, kinds.get(field.kind, (int,)))
