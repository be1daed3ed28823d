"""What fields mean whose types don't say it, in the words of the interface description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MEANINGS = {
    "action": "which operation",
    "address": "address",
    "category": "which of an object's dashboards it is",
    "city": "city or region",
    "client_id": "the MQTT client id, which is the terminal's uid",
    "command": "a code of the object's control table, or what the terminal itself is told",
    "config_id": "the terminal configuration",
    "contact": "contact person",
    "control": "control code",
    "created_by": "the creating user's number",
    "description": "description",
    "email": "e-mail",
    "entity": "the kind of record",
    "file_id": "resource table number",
    "fn": "what a bucket of time is reduced to",
    "gis": "location",
    "hardware": "hardware information",
    "head_image": "avatar",
    "id": "the record's number, instead of its uid",
    "idempotency_key": "a second request with the same key sends nothing",
    "image": "image path",
    "items": "how many of the newest records",
    "keep_alive": "seconds; 0 leaves it to the terminal",
    "last_modified_by": "the changing user's number",
    "lua_file": "Lua file",
    "lua_version": "Lua version",
    "maker": "manufacturer",
    "mcu_file": "MCU file",
    "mcu_version": "MCU version",
    "message": "comes back in the answer",
    "mobile": "mobile number",
    "mode": "how",
    "model": "model",
    "name": "name",
    "object_id": "the object",
    "page_size": "records a page",
    "password": "password",
    "permission_company_id": "the owning company; a super user's choice, else one's own",
    "payloads": "what terminals might report, to try the rows on",
    "phone": "telephone",
    "pin": "access password",
    "project_id": "the project",
    "province": "province",
    "reference": "reference number",
    "remosu_file": "Remosu file",
    "remosu_version": "Remosu version",
    "responsible": "responsible person",
    "responsible_phone": "their telephone",
    "rsa_privatekey": "RSA private key, PEM",
    "secret": "authorisation code or follow password",
    "serial_no": "serial number",
    "server": "terminal access server address",
    "session_expiry": "seconds that a session outlives its connection; 0 leaves it to the terminal",
    "state": "what became of it",
    "subscription": "which subscription",
    "target_code": "the variable that is explained",
    "terminal_id": "the terminal",
    "topic": "`all`, or what it may publish and subscribe to: `pub:r,a;sub:g/#`",
    "type": "terminal type",
    "uid": "the record's uid, or its id",
    "username": "user name",
    "value": "what it is set to; numbers are sent as numbers",
    "window": "seconds of records that are looked at",
}


def meaning(name: str, schema: Mapping[str, Any]) -> str:
    """What a field means: what its schema says, or one of its forms, or what fields of this name mean."""
    said = [schema, *schema.get("anyOf", ())]
    return next((each["description"] for each in said if "description" in each), MEANINGS.get(name, ""))
