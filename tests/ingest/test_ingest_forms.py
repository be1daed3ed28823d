"""How configurations say that payloads are read: arrays, decoders in their process, and what is stored of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from decoder_package import install
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.payload import Reject, decode
from terrazzo.domain.payloads.form import PayloadForm, parse_payload_form
from terrazzo.domain.payloads.stored import json_payload, marked_raw, raw_payload
from terrazzo.ingest import decoders as decoders_module
from terrazzo.ingest.decoder_process import DecoderHost
from terrazzo.ingest.decoders import PayloadDecoders, ToDecode

ODD = """
import os, sys, time


def odd(payload, topic):
    match payload:
        case b"loop":
            while True:
                try:
                    while True:
                        pass
                except Exception:
                    pass
        case b"sleep":
            time.sleep(60)
        case b"exit":
            os._exit(3)
        case b"sys.exit":
            sys.exit(3)
        case b"memory":
            return {"n": len(bytearray(1 << 30))}
        case b"print":
            print("x" * 100_000)
            os.write(1, b"x" * 1000)
        case b"list":
            return [1]
        case b"long":
            return {"a": "x" * (1 << 20)}
        case b"wide":
            return {"a": 2 ** 70}
        case b"deep":
            raise ValueError("\\udc80 is no text" + "!" * 1000)
    return {"text": payload.decode(), "topic": "/".join(topic)}


broken = 5
"""


def form(**fields: Any) -> PayloadForm:
    found = parse_payload_form(fields)
    assert found is not None
    return found


def array(*names: str) -> PayloadForm:
    return form(format="array", names=list(names))


@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
def test_an_array_has_a_name_for_each_value(encode: Any) -> None:
    read = array("T", "", "N", "Time").read_array
    assert read(encode([21.5, 3, None, 1_700_000_000])) == {"T": 21.5, "N": None, "Time": 1_700_000_000}
    assert read(encode({"other": {"a": True}})) == {"other": {"a": True}}, "an object is read as ever"


def test_blanks_may_stand_before_an_array() -> None:
    assert array("a").read_array(b" \n[1]") == {"a": 1}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"[1]", "the array has 1 values, and the configuration names 2"),
        (b"[1,2,3]", "the array has 3 values, and the configuration names 2"),
        (b"[1,[2]]", "b: an array is not a value"),
        (b"[1,", "not an array: "),
        (b"[1,1e999]", "not an array: "),
        (b"[1,18446744073709551616]", "beyond 64 bits"),
        (b"[1,9223372036854775808]", "b: an integer beyond 64 bits"),
        (b'[1,"\xff"]', "not an array: "),
        (b"", "empty"),
        (b"7", "the payload is a number"),
        (b"\x92\x01", "not an array: "),
        (b"\x92\x01\xc4\x01x", "b: binary data is not a value"),
    ],
)
def test_what_is_refused_of_an_array(payload: bytes, reason: str) -> None:
    with pytest.raises(Reject, match=reason.replace("[", r"\[")):
        array("a", "b").read_array(payload)


@given(st.lists(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9), max_size=9))
def test_an_array_is_read_as_the_object_would_be(values: list[Any]) -> None:
    names = [f"n{number}" for number in range(len(values))] or ["n"]
    payload = json.dumps(values or [1]).encode()
    assert array(*names).read_array(payload) == decode(
        json.dumps(dict(zip(names, values or [1], strict=True))).encode()
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], "expected an object"),
        ({"names": ["a"]}, "format"),
        ({"format": "csv"}, "expected array or decoder"),
        ({"format": "array"}, "names: needed"),
        ({"format": "array", "names": ["a", "a"]}, "names: one occurs twice"),
        ({"format": "array", "names": ["a"] * 1_001}, "length <= 1000"),
        ({"format": "array", "names": ["a" * 257]}, "length <= 256"),
        ({"format": "array", "names": ["a"], "decoder": "x"}, "decoder: needed with format decoder, and only there"),
        ({"format": "decoder"}, "decoder: needed"),
        ({"format": "decoder", "decoder": "x", "channels": ["n"]}, "channels: expected r, a, i, got 'n'"),
        ({"format": "decoder", "decoder": "x", "channels": []}, "length >= 1"),
        ({"format": "decoder", "decoder": "x", "more": 1}, "unknown field"),
    ],
)
def test_what_no_configuration_may_say(said: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_payload_form(said)


def test_nothing_said_is_objects() -> None:
    assert parse_payload_form({}) is None


@given(st.binary(max_size=300))
def test_bytes_are_stored_as_they_came_and_shown_as_base64(payload: bytes) -> None:
    body = marked_raw(payload)
    assert raw_payload(body) == payload
    assert body[0] >= 0x80
    assert list(json_payload(body)) == ["base64"]


@pytest.mark.parametrize("body", [b"{}", b'{"a":1}', b"[1]", msgspec.msgpack.encode({"a": 1}), b"\x92\x01\x02"])
def test_other_bodies_are_shown_as_they_were(body: bytes) -> None:
    assert raw_payload(body) is None
    shown = msgspec.json.decode(msgspec.json.encode(json_payload(body)))
    assert shown == (msgspec.json.decode(body) if body[0] < 0x80 else msgspec.msgpack.decode(body))


# Decoders


@pytest.fixture
async def decoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PayloadDecoders]:
    monkeypatch.setattr(decoders_module, "_LEAST_WAIT_S", 1.0)
    monkeypatch.setattr(decoders_module, "_SLACK", 1.0)
    names = {"odd": "odd", "broken": "broken", "gone": "none_such"}
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "packages", "odd_decoder", ODD, names)))
    made = PayloadDecoders(["odd", "broken", "gone", "missing"], cpu_ms=50)
    yield made
    await made.close()


async def one(decoders: PayloadDecoders, payload: bytes, name: str = "odd") -> Any:
    (found,) = await decoders.decode([ToDecode(name, ("g", "t", "r"), payload)])
    return str(found) if isinstance(found, Reject) else json.loads(found)


async def test_a_decoder_gets_bytes_and_the_topic(decoders: PayloadDecoders) -> None:
    assert await one(decoders, b"x") == {"text": "x", "topic": "g/t/r"}
    assert await one(decoders, b"print") == {"text": "print", "topic": "g/t/r"}, "what it prints is no answer"
    assert decoders.stats.starts == 1


@pytest.mark.parametrize(
    ("payload", "reason", "ended"),
    [
        (b"\xff", "the decoder refuses it: UnicodeDecodeError: ", 0),
        (b"loop", "the decoder took more than 0.05 s of a processor", 0),
        (b"sys.exit", "the decoder refuses it: SystemExit: 3", 0),
        (b"memory", "the decoder refuses it: MemoryError", 0),
        (b"list", "the decoder refuses it: TypeError: the decoder returned list, not a mapping", 0),
        (b"long", "the decoder made 10", 0),
        (b"deep", "the decoder refuses it: ValueError: ", 0),
        (b"sleep", "the decoder took too long", 1),
        (b"exit", "the decoder ended its process", 1),
    ],
)
async def test_what_a_decoder_does_is_its_payloads_alone(
    decoders: PayloadDecoders, payload: bytes, reason: str, ended: int
) -> None:
    await one(decoders, b"x")
    found = await one(decoders, payload)
    assert found.startswith(reason)
    assert len(found) <= 300
    assert await one(decoders, b"x") == {"text": "x", "topic": "g/t/r"}
    assert (decoders.stats.ended, decoders.stats.decoded, decoders.stats.refused) == (ended, 2, 1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "there is no decoder missing"),
        ("broken", "the decoder broken is int, not a function"),
        ("gone", "the decoder gone can't be loaded: AttributeError"),
        ("other", "the decoder other of the configuration is none of ingest.decoders"),
    ],
)
async def test_what_can_not_be_had_is_a_reject(decoders: PayloadDecoders, name: str, reason: str) -> None:
    assert (await one(decoders, b"x", name)).startswith(reason)


async def test_a_piece_ends_in_time_and_a_cancelled_one_leaves_nothing_behind(decoders: PayloadDecoders) -> None:
    many = [ToDecode("odd", ("g", "t", "r"), b"x")] * 50
    assert len(await decoders.decode(many)) == 50
    assert len(await decoders.decode(many, within_s=0.0)) == 1
    task = asyncio.create_task(one(decoders, b"sleep"), name="decoding")
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await one(decoders, b"y") == {"text": "y", "topic": "g/t/r"}, "it is not the answer of before"


def test_the_host_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    host = DecoderHost(1.0, 100)
    assert host.answer("none such", ("g", "t", "r"), b"")[0] is False
