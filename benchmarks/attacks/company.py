"""A company on a platform, set up over the gateway: its users, terminals and objects."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterable
from typing import Any

from attacks.mqtt_peer import RETAIN, connected
from running import PASSWORD, Platform
from terrazzo.api.operations.files import UPLOAD
from terrazzo.client import Client

AUTHOR = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
FIRMWARE = bytes(40_000)
Row = list[Any]


class Company:
    """One company with an administrator and a viewer, called after it."""

    def __init__(self, platform: Platform, name: str) -> None:
        self.name = name
        self.platform = platform
        self.id = str(platform.call("create_company", name=name, **AUTHOR)["id"])
        self.tokens: dict[str, str] = {}
        for role in ("admin", "viewer"):
            user = f"{name}-{role}"
            platform.call("create_user", username=user, password=PASSWORD, role=role, permission_company_id=self.id)
            self.tokens[role] = Client(platform.url).call("login", username=user, password=PASSWORD)["token"]
        self._client = Client(platform.url, token=self.tokens["admin"])
        self._config = self.call("create_terminal_config", name=name, **AUTHOR)["uid"]

    def call(self, action: str, **fields: Any) -> Any:
        """What an action answers its administrator."""
        return self._client.call(action, **fields)

    def terminal(self, uid: str, **fields: Any) -> str:
        """Creates a terminal whose user name and pin are ``u-<uid>`` and ``pin-<uid>``; its uid."""
        known = {"name": uid, "type": "Other", "mode": "pwd", "config_id": self._config, "access": "all"}
        credentials = {"username": f"u-{uid}", "pin": f"pin-{uid}"[:16], "topic": "all"}
        self.call("create_terminal", uid=uid, **{**known, **credentials, **AUTHOR, **fields})
        return uid

    def terminals(self, count: int, *, config: str) -> list[str]:
        """Imports terminals that never connect; their uids."""
        uids = [f"{self.name}-t{number}" for number in range(count)]
        shared = {"type": "Adapter-II", "config_id": config, "mode": "pwd"}
        rows = [{"uid": uid, "name": uid, "username": f"u-{uid}", "pin": f"p-{uid}"[-16:], **shared} for uid in uids]
        for start in range(0, count, 1_000):
            self.call("import_terminals", rows=rows[start : start + 1_000])
        return uids

    def firmware(self) -> str:
        """A configuration whose Lua file is stored on the platform; its uid."""
        headers = {"Authorization": f"Bearer {self.tokens['admin']}"}
        asked = urllib.request.Request(f"{self.platform.url}{UPLOAD.path}?name=lua.bin", FIRMWARE, headers)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            file = json.load(answer)["result"]["uid"]
        given = {"name": "firmware", "lua_file": file, "lua_version": "3.0.0"}
        return str(self.call("create_terminal_config", **given, **AUTHOR)["uid"])

    def mapping(self, rows: list[Row], **fields: Any) -> str:
        """Creates a mapping; its uid."""
        return str(self.call("create_mapping", name="rows", script=rows, **AUTHOR, **fields)["uid"])

    def object(self, *terminals: str, rows: list[Row] | None = None) -> str:
        """Creates an object that these terminals serve; its id."""
        mapping = self.mapping(rows) if rows else ""
        made = self.call("create_object", name=self.name, mapping_id=mapping, terminal_list=list(terminals))
        return str(made["id"])

    def report(self, uid: str, reports: Iterable[tuple[str, bytes]], *, retained: bool = False) -> None:
        """Has a terminal report topics and payloads at QoS 1; returns when all are acknowledged."""

        async def send() -> None:
            async with connected(self.platform.mqtt, uid) as peer:
                await peer.publish_all(reports, flags=RETAIN if retained else 0)

        asyncio.run(send())
