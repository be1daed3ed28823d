"""Exact payload bytes of commands."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.command_payload import Firmware, build_payload, needs_firmware, split_credentials, value_text
from terrazzo.errors import BadParameter

FILES = Firmware(lua_file="ftp://us%40er:p%2Fw@files.example:2121/fw/a.lua", mcu_file="http://files.example/a.bin?v=2")


@pytest.mark.parametrize(
    ("command", "value", "payload"),
    [
        ("SETPOINT", "21.50", b'{"Act":"Control","SETPOINT":21.50}'),
        ("SETPOINT", 21.5, b'{"Act":"Control","SETPOINT":21.5}'),
        ("SWITCH", "1", b'{"Act":"Control","SWITCH":1}'),
        ("SWITCH", True, b'{"Act":"Control","SWITCH":true}'),
        ("N", "-1e3", b'{"Act":"Control","N":-1e3}'),
        ("N", "1e999", b'{"Act":"Control","N":"1e999"}'),
        ("N", "NaN", b'{"Act":"Control","N":"NaN"}'),
        ("N", "007", b'{"Act":"Control","N":"007"}'),
        ("N", " 1", b'{"Act":"Control","N":" 1"}'),
        ("N", "+1", b'{"Act":"Control","N":"+1"}'),
        ("N", "true", b'{"Act":"Control","N":"true"}'),
        ("N", "", b'{"Act":"Control","N":""}'),
        ("N", '"}', b'{"Act":"Control","N":"\\"}"}'),
        ("Mode", "auto", b'{"Act":"Control","Mode":"auto"}'),
        ("a.b", "0", b'{"Act":"Control","a.b":0}'),
        ("Reboot", "", b'{"Act":"Reboot"}'),
        ("Reboot", "now", b'{"Act":"Reboot"}'),
        ("Diag", "", b'{"Act":"Diag"}'),
        (
            "AXUpgrade",
            "LUA",
            b'{"Act":"AXUpgrade","Unit":"LUA","URL":"ftp://files.example:2121/fw/a.lua","User":"us@er","Pwd":"p/w"}',
        ),
        (
            "AXUpgrade",
            "MCU",
            b'{"Act":"AXUpgrade","Unit":"MCU","URL":"http://files.example/a.bin?v=2","User":"","Pwd":""}',
        ),
    ],
)
def test_payloads(command, value, payload):
    assert build_payload(command, value, FILES) == payload


def test_an_upgrade_says_what_is_known_of_its_file_where_that_is_asked_for():
    plain = json.loads(build_payload("AXUpgrade", "LUA", FILES))
    told = Firmware(lua_file="http://x/a", lua_version="3.1", mcu_version="9", size=0, sha256="ab" * 32)
    assert plain.keys() == {"Act", "Unit", "URL", "User", "Pwd"}
    assert json.loads(build_payload("AXUpgrade", "LUA", FILES, with_details=True)) == plain
    assert json.loads(build_payload("AXUpgrade", "LUA", told)).keys() == plain.keys()
    more = json.loads(build_payload("AXUpgrade", "LUA", told, with_details=True))
    assert {name: more[name] for name in more.keys() - plain.keys()} == {
        "Size": 0,
        "Sha256": "ab" * 32,
        "Version": "3.1",
    }


@pytest.mark.parametrize(
    ("command", "value", "reason"),
    [
        ("", "1", "command: expected"),
        ("  ", "1", "command: expected"),
        (5, "1", "command: expected"),
        (None, "1", "command: expected"),
        ("x" * 65, "1", "command: longer than 64"),
        ("a\nb", "1", "command: contains a control character"),
        ("Act", "1", "command: 'Act' is reserved"),
        ("Upgrade", "1", "command: Upgrade is not supported"),
        ("SWITCH", "x" * 65, "value: longer than 64"),
        ("SWITCH", "a\0", "value: contains"),
        ("SWITCH", None, "value: expected"),
        ("SWITCH", [1], "value: expected"),
        ("SWITCH", {"a": 1}, "value: expected"),
        ("SWITCH", float("nan"), "value: expected"),
        ("AXUpgrade", "lua", "value: expected LUA or MCU"),
        ("AXUpgrade", "", "value: expected LUA or MCU"),
    ],
)
def test_what_is_wrong_is_named(command, value, reason):
    with pytest.raises(BadParameter, match=reason):
        build_payload(command, value, FILES)


def test_a_configuration_without_the_file():
    with pytest.raises(BadParameter, match="names no mcu_file"):
        build_payload("AXUpgrade", "MCU", Firmware(lua_file="http://x/y"))
    with pytest.raises(BadParameter, match="names no lua_file"):
        build_payload("AXUpgrade", "LUA")
    assert needs_firmware("AXUpgrade")
    assert not needs_firmware("Reboot")


@pytest.mark.parametrize(
    "link", ["fw/a.bin", "file:///etc/passwd", "http://", "//x/y", "http://[::1/x", "ftp://x:99999/"]
)
def test_files_that_are_no_links(link):
    with pytest.raises(BadParameter, match="lua_file: "):
        split_credentials(link, "lua_file")


def test_ftp_over_ipv6_without_credentials():
    assert split_credentials("ftp://[::1]:21/a", "lua_file") == ("ftp://[::1]:21/a", "", "")


@given(st.text(max_size=64).filter(lambda text: "\0" not in text))
def test_any_text_arrives_as_itself_or_as_the_number_that_it_reads_as(text):
    point = json.loads(build_payload("P", text))["P"]
    assert point == text or point == json.loads(text)
    assert value_text(text) == text
