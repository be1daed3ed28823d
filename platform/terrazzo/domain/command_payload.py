"""The payload bytes that a terminal is sent for a command (section 2 "Pusher", rules 4 to 6)."""

from __future__ import annotations

import math
import re
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from terrazzo.errors import BadParameter

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
        raise BadParameter("command", "'Act' is reserved: it is the key that names the action")
    value_text(value)
    return _encode({"Act": "Control", point: _wire_value(value)})


def check_command(command: Any) -> None:
    """Checks a command's name.

    Raises:
        BadParameter: it is empty, too long, reserved or unsupported.
    """
    if not isinstance(command, str) or not command.strip():
        raise BadParameter("command", "expected a point's name or one of Reboot, Diag, AXUpgrade")
    if len(command) > MAX_TEXT:
        raise BadParameter("command", f"longer than {MAX_TEXT} characters")
    if not command.isprintable():
        raise BadParameter("command", "contains a control character")
    if command == "Upgrade":
        raise BadParameter("command", "Upgrade is not supported; AXUpgrade is")


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
        raise BadParameter("value", "expected text, a number or a boolean")
    if len(text) > MAX_TEXT:
        raise BadParameter("value", f"longer than {MAX_TEXT} characters")
    if "\0" in text:
        raise BadParameter("value", "contains a NUL character")
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
        raise BadParameter("value", f"expected {' or '.join(FIRMWARE_UNITS)} for AXUpgrade")
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
        raise BadParameter("value", f"the terminal's configuration names no {file}")
    try:
        parts = urlsplit(link)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadParameter(file, f"{link!r} is not a URL: {error}") from None
    if parts.scheme not in ("ftp", "http", "https") or not host:
        raise BadParameter(file, f"{link!r}: expected an ftp or http URL")
    if parts.scheme != "ftp":
        return link, "", ""
    host = f"[{host}]" if ":" in host else host
    bare = parts._replace(netloc=host if port is None else f"{host}:{port}")
    return urlunsplit(bare), unquote(parts.username or ""), unquote(parts.password or "")
