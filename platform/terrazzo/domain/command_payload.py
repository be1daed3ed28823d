"""The payload bytes that a terminal is sent for a command (section 2 "Pusher", rules 4 to 6)."""

from __future__ import annotations

import math
import re
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from terrazzo.errors import BadParameter
from terrazzo.reasons import say

MAX_TEXT = 64  # characters of a command and of a value

FIRMWARE_UNITS = ("LUA", "MCU")

RESERVED = frozenset({"Reboot", "Diag", "Upgrade", "AXUpgrade"})

_MASK = "******"
_SIGNATURE = re.compile(r"([?&]signature=)[^&#]*")
_encode = msgspec.json.Encoder().encode
_number = msgspec.json.Decoder(int | float).decode


class Firmware(msgspec.Struct, frozen=True):
    """The URLs of the files that a terminal's configuration names and their versions; empty where it names none.

    ``size`` (bytes) and ``sha256`` (hexadecimal) are of the file that is sent; None and empty where they aren't known.
    """

    lua_file: str = ""
    mcu_file: str = ""
    lua_version: str = ""
    mcu_version: str = ""
    size: int | None = None
    sha256: str = ""


def needs_firmware(command: str) -> bool:
    """Whether ``build_payload`` wants the terminal's ``Firmware``."""
    return command == "AXUpgrade"


def build_payload(command: str, value: Any, firmware: Firmware | None = None, *, with_details: bool = False) -> bytes:
    """The payload of a command to a terminal.

    Args:
        command: ``Reboot``, ``Diag``, ``AXUpgrade``, or the point to control.
        value: ``LUA`` or ``MCU`` for ``AXUpgrade``; text, number or boolean for a point. Text that is a JSON number is
            sent as that number.
        firmware: what ``AXUpgrade`` takes its URL from.
        with_details: whether ``AXUpgrade`` says what is known of the file: ``Size``, ``Sha256``, ``Version``.

    Raises:
        BadParameter: names ``command``, ``value`` or the configuration's file.
    """
    check_command(command)
    text = value_text(value)
    if command in ("Reboot", "Diag"):
        return _encode({"Act": command})
    if command == "AXUpgrade":
        return _encode(_upgrade(text, firmware or Firmware(), with_details=with_details))
    return build_control(command, value)


def build_control(point: str, value: Any) -> bytes:
    """The payload that sets a point.

    Raises:
        BadParameter: names ``command``, whose point it is, or ``value``.
    """
    if point == "Act":
        raise BadParameter("command", say("act_is_reserved"))
    value_text(value)
    return _encode({"Act": "Control", point: _wire_value(value)})


def check_command(command: Any) -> None:
    """Checks a command's name.

    Raises:
        BadParameter: it is empty, too long, reserved or unsupported.
    """
    if not isinstance(command, str) or not command.strip():
        raise BadParameter("command", say("expected_point_or_reserved"))
    if len(command) > MAX_TEXT:
        raise BadParameter("command", say("longer_than", most=MAX_TEXT))
    if not command.isprintable():
        raise BadParameter("command", say("contains_control_character"))
    if command == "Upgrade":
        raise BadParameter("command", say("upgrade_not_supported"))


def value_text(value: Any) -> str:
    """A command's value as the journal stores it.

    Raises:
        BadParameter: it is no text, number or boolean, or too long.
    """
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool | int | float) and math.isfinite(value):
        text = _encode(value).decode()
    else:
        raise BadParameter("value", say("expected_scalar"))
    if len(text) > MAX_TEXT:
        raise BadParameter("value", say("longer_than", most=MAX_TEXT))
    if "\0" in text:
        raise BadParameter("value", say("contains_nul"))
    return text


def _wire_value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        _number(value)
    except (msgspec.MsgspecError, UnicodeError):
        return value
    return value if value != value.strip() else msgspec.Raw(value.encode())  # its digits as they were written


def _upgrade(unit: str, firmware: Firmware, *, with_details: bool) -> dict[str, Any]:
    if unit not in FIRMWARE_UNITS:
        raise BadParameter("value", say("expected_for_upgrade", expected=" or ".join(FIRMWARE_UNITS)))
    file = f"{unit.lower()}_file"
    url, user, password = split_credentials(getattr(firmware, file), file)
    payload = {"Act": "AXUpgrade", "Unit": unit, "URL": url, "User": user, "Pwd": password}
    return payload | _details(unit, firmware) if with_details else payload


def _details(unit: str, firmware: Firmware) -> dict[str, Any]:
    version = getattr(firmware, f"{unit.lower()}_version")
    known = {"Size": firmware.size, "Sha256": firmware.sha256, "Version": version}
    return {name: value for name, value in known.items() if value not in (None, "")}


def without_download_secrets(payload: Any) -> Any:
    """A command's payload without what lets one download in the terminal's place: password and signature."""
    if not isinstance(payload, dict) or payload.get("Act") != "AXUpgrade":
        return payload
    password = _MASK if payload.get("Pwd") else ""
    return {**payload, "URL": _SIGNATURE.sub(rf"\g<1>{_MASK}", str(payload.get("URL", ""))), "Pwd": password}


def split_credentials(link: str, file: str) -> tuple[str, str, str]:
    """Splits a download link into URL, user and password: an ftp link has them inside, an http one has none.

    Raises:
        BadParameter: ``value`` where there is no link, ``file`` where the link is no ftp or http URL.
    """
    if not link:
        raise BadParameter("value", say("configuration_names_no", what=file))
    try:
        parts = urlsplit(link)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadParameter(file, say("not_a_url", link=link, why=error)) from None
    if parts.scheme not in ("ftp", "http", "https") or not host:
        raise BadParameter(file, say("expected_ftp_or_http", link=link))
    if parts.scheme != "ftp":
        return link, "", ""
    host = f"[{host}]" if ":" in host else host
    bare = parts._replace(netloc=host if port is None else f"{host}:{port}")
    return urlunsplit(bare), unquote(parts.username or ""), unquote(parts.password or "")
