"""A whole platform with a firmware file, simulated terminals that fetch it, and campaigns driven over the gateway."""

from __future__ import annotations

import hashlib
import json
import random
import urllib.request
from typing import Any

from running import Platform, wait_for

FIRMWARE = random.Random(7).randbytes(40_000)
SHA256 = hashlib.sha256(FIRMWARE).hexdigest()


def upload(platform: Platform, name: str, content: bytes = FIRMWARE) -> str:
    """Stores a file on the platform; its uid."""
    mark = "terrazzo-test-boundary"
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={mark}", "Authorization": f"Bearer {platform.token}"}
    request = urllib.request.Request(f"{platform.url}/object/api/v1/file/upload", body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        found = json.load(answer)
    assert found["code"] == 200, found
    return str(found["result"]["uid"])


def add_firmware(platform: Platform, version: str = "3.0.0", **fields: Any) -> str:
    """A configuration whose Lua file is stored on the platform; its uid."""
    file = upload(platform, f"lua-{version}.bin")
    given = {"name": f"firmware {version}", "lua_file": file, "lua_version": version, **fields}
    return str(
        platform.call("create_terminal_config", **given, created_by=1, last_modified_by=1, is_available=1)["uid"]
    )


def add_terminals(platform: Platform, config: str, uids: list[str]) -> list[dict[str, Any]]:
    """Registers terminals; what a simulated fleet needs to know of them."""
    rows = [
        {
            "uid": uid,
            "name": uid,
            "type": "Adapter-II",
            "config_id": config,
            "mode": "pwd",
            "username": f"u-{uid}",
            "pin": f"p-{uid}",
        }
        for uid in uids
    ]
    platform.call("import_terminals", rows=rows)
    return [{"uid": uid, "username": f"u-{uid}", "pin": f"p-{uid}", "type": "Adapter-II"} for uid in uids]


def create(platform: Platform, config: str, **fields: Any) -> str:
    """A campaign's uid."""
    given = {"name": "c", "config_id": config, "unit": "LUA", **fields}
    return str(platform.call("create_campaign", **given)["uid"])


def item(platform: Platform, uid: str) -> dict[str, Any]:
    """A campaign's record."""
    return dict(platform.call("get_campaign_item", uid=uid))


def terminals(platform: Platform, uid: str, **fields: Any) -> dict[str, dict[str, Any]]:
    """A campaign's terminals by uid."""
    page = platform.call("get_campaign_terminal_list", uid=uid, page_size=1_000, **fields)
    return {each["terminal_id"]: each for each in page["data"]}


def reaches(platform: Platform, uid: str, state: str, *, timeout_s: float = 20) -> dict[str, Any]:
    """Waits for a campaign's state; its record."""
    wait_for(lambda: item(platform, uid)["state"] == state, f"campaign {state}", timeout_s=timeout_s)
    return item(platform, uid)


def fares(platform: Platform, uid: str, terminal: str, state: str, *, timeout_s: float = 20) -> dict[str, Any]:
    """Waits for the state of one of its terminals; where it stands."""
    wait_for(lambda: terminals(platform, uid)[terminal]["state"] == state, f"{terminal} {state}", timeout_s=timeout_s)
    return terminals(platform, uid)[terminal]
