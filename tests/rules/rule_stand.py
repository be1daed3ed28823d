"""A running platform with one mapped object, rules that tell over HTTP, and who takes what they tell."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mqtt_bytes import login, publish
from running import Platform
from terrazzo.database.database import Database
from terrazzo.database.tables.messages import RULE_NOTICE

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", ""],
    ["RUN", "", "", "STA", "$AdapterID-1.run", ""],
    ["HOT", "Too hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 80"],
]
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
DOCUMENT = Path(__file__).parents[2] / "docs" / "messenger.md"
SECRET = "0123456789abcdef"


def documented_check() -> Callable[[dict[str, str], bytes, bytes], bool]:
    """``is_genuine`` as docs/messenger.md has it."""
    (source,) = re.findall(r"```python\n(def is_genuine.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"hashlib": hashlib, "hmac": hmac, "time": time}
    exec(source, names)
    return names["is_genuine"]  # type: ignore[no-any-return]


class Receiver:
    """Takes webhooks and the requests of an SMS provider."""

    def __init__(self) -> None:
        self.hooks: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/sms":
                    outer.texts.append(json.loads(body)["text"])
                else:
                    outer.take(body, dict(self.headers))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        """As docs/messenger.md tells receivers to check."""
        if not documented_check()(headers, body, SECRET.encode()):
            self.faults.append("signature")
        self.hooks.append(json.loads(body) | {"delivery": headers["X-Terrazzo-Delivery"]})

    @property
    def hook(self) -> dict[str, Any]:
        """What a rule needs to send its webhooks here."""
        return {"channel": "webhook", "url": f"{self.url}/hook", "secret": SECRET}

    def of(self, rule: str) -> list[dict[str, Any]]:
        """A rule's webhooks."""
        return [hook for hook in self.hooks if hook["rule"] == rule]

    def told(self, rule: str) -> int:
        """How many events and labels a rule's webhooks have told of."""
        return sum(hook["count"] for hook in self.of(rule))

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def config_of(receiver: Receiver, folder: Path) -> tuple[str, ...]:
    """The arguments of a platform that sends SMS to the receiver."""
    config = folder / "terrazzo.toml"
    config.write_text(
        'messenger.allow_private = ["127.0.0.0/8"]\n[[messenger.project]]\nid = 1\nname = "plant"\n'
        f'sms = {{ url = "{receiver.url}/sms", body = \'{{"text": "{{msgdata}}"}}\' }}\n'
    )
    return ("--config", str(config))


def prepare(platform: Platform) -> None:
    """A boiler with a terminal and a retainer that runs."""
    platform.add_terminal("m1", platform.add_config())
    mapping = platform.call("create_mapping", name="m", script=ROWS, **BY)["uid"]
    item = platform.call("create_object", name="Boiler", mapping_id=mapping, terminal_list=["m1"])["uid"]
    script = [["RUN", "On", "开", "1", ""]]
    retainer = platform.call("create_retainer", name="r", description="", object_list=[item], script=script)
    platform.call("start_retainer", uid=retainer["uid"])


def report(platform: Platform, *bodies: dict[str, Any], topic: str = "g/m1/r") -> None:
    """As the terminal; returns when all is stored."""
    with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
        client.sendall(login("m1", "u-m1", "pin-m1"))
        assert client.recv(4) == b"\x20\x02\x00\x00"
        for number, body in enumerate(bodies, 1):
            client.sendall(publish(topic, json.dumps(body).encode(), packet_id=number))
            assert client.recv(4)[:2] == b"\x40\x02"


def add_rule(platform: Platform, **fields: Any) -> str:
    """A rule that is started; its uid."""
    uid = platform.call("create_rule", **{"name": "hot", **fields})["uid"]
    platform.call("start_rule", uid=uid)
    return str(uid)


def open_notices(platform: Platform) -> list[tuple[str, str]]:
    """Kind and state of what will still be told, by what the database has."""

    async def read() -> list[tuple[str, str]]:
        database = await Database.open("", data_dir=platform.data, upgrade=False)
        table = RULE_NOTICE.c
        try:
            async with database.reading() as connection:
                query = sa.select(table.kind, table.state).where(table.state != "done").order_by(table.kind)
                return [(row.kind, row.state) for row in await connection.execute(query)]
        finally:
            await database.close()

    return asyncio.run(read())
