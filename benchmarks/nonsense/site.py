"""The platform that random content is sent to: its ports, users and terminals, and what came of it so far."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import aiohttp
from attacks.attack import GATEWAY
from attacks.company import AUTHOR, Company

from nonsense.large import large_request
from nonsense.values import Values
from running import PASSWORD, Platform
from terrazzo.api.openapi.document import load_examples
from terrazzo.client import Client, ClientError

POINTS = ("p0", "p1", "p2", "text")
TERMINALS = {"a-plain": {}, "a-sealed": {"encryption": 1}, "a-wide": {"topic": "pub:r,a,v,p,i,n;sub:#"}}
ROWS = [
    ["V0", "", "", "STA", "a-plain.p0", "x * 0.1"],
    ["V1", "", "", "STA", "a-sealed.p1", ""],
    ["TEXT", "", "", "STA", "a-plain.text", ""],
    ["F", "", "", "FUNC", "", "V0 + V1 > 10"],
    ["HOT", "", "", "EVNT", "a-plain.p0", "", "x > 80"],
    ["SAME", "", "", "EVNT", "", "", "TEXT == 'x' or F"],
]
LARGE = 0.03  # the share of requests and reports
ROLES = ("admin", "operator", "viewer")
_FAULT = re.compile(rb"internal error; the log has it as \w+")


class Site:
    """One company's users and terminals, all of which random requests may change or delete: ``mend`` makes them anew.

    Args:
        ports: by name: http, mqtt, mqtt_websocket, websocket, tcp.
        large: what is as large as may come, now and then: requests, reports.
    """

    def __init__(
        self, platform: Platform, ports: dict[str, int], values: Values, *, large: Collection[str] = ()
    ) -> None:
        self.large = large
        self.platform = platform
        self.ports = ports
        self.values = values
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.tokens: dict[str, str] = {}
        self.http: aiohttp.ClientSession
        self._company = Company(platform, "a")
        self.examples = [json.loads(json.dumps(each.request)) for each in _examples()]
        values.known += [*TERMINALS, *POINTS, *ROLES, "V0", "HOT", "r", "1", "2", self._company.id, GATEWAY]
        values.known += [str(each) for example in self.examples for each in example.values() if isinstance(each, str)]
        self.mend()
        self._company.object(*TERMINALS, rows=ROWS)

    def mend(self) -> None:
        """Whoever is not there any more is made again."""
        for role in ROLES:
            name = f"a-{role}"
            if not self._has_token(role):
                with suppress(ClientError):
                    self._root("create_user", username=name, role=role, permission_company_id=self._company.id)
                self.tokens[role] = self._log_in(name)
        self._company.tokens = self.tokens
        for uid, fields in TERMINALS.items():
            with suppress(ClientError):
                self._company.terminal(uid, **fields)

    def _has_token(self, role: str) -> bool:
        if role not in self.tokens:
            return False
        return Client(self.platform.url, token=self.tokens[role]).ask("ping")["code"] == 200

    def _log_in(self, name: str) -> str:
        try:
            return str(Client(self.platform.url).call("login", username=name, password=PASSWORD)["token"])
        except ClientError:  # somebody has given it another password, or none: then there is another user
            again = f"{name}-{self.values.random.randrange(10**9)}"
            role = name.removeprefix("a-").partition("-")[0]
            self._root("create_user", username=again, role=role, permission_company_id=self._company.id)
            return str(Client(self.platform.url).call("login", username=again, password=PASSWORD)["token"])

    def _root(self, action: str, **fields: Any) -> None:
        self.platform.call(action, password=PASSWORD, **AUTHOR, **fields)

    def headers(self, share: float = 0.9) -> dict[str, str]:
        """The token of one of the users, in this share of all cases."""
        if self.values.chance(share):
            return {"Authorization": f"Bearer {self.tokens[self.values.pick(ROLES)]}"}
        text = self.values.text().encode("ascii", "replace").decode()[:1_000]
        return {"Authorization": "".join(each if each.isprintable() else "?" for each in text)}

    def request(self) -> bytes:
        """A request of the gateway: an example with something changed."""
        values = self.values
        example = values.pick(self.examples)
        if "requests" in self.large and values.chance(LARGE):
            return large_request(values, example)
        changed = values.changed(example) if values.chance(0.95) else values.value()
        if isinstance(changed, dict) and values.chance(0.95):
            changed["action"] = example["action"]
        return values.json(changed)

    def note(self, way: str, status: int, body: bytes) -> None:
        """Takes an answer: an internal error is a fault, whatever was sent."""
        self.counts[f"{way}: {status}"] += 1
        if found := _FAULT.search(body):
            self.faults.append(f"{way}: {found[0].decode()}")
        elif status >= 500 and status != 503:
            self.faults.append(f"{way}: HTTP {status}: {body[:200]!r}")

    async def connect(self, port: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to one of the ports."""
        return await asyncio.open_connection("127.0.0.1", self.ports[port], limit=1 << 22)


def _examples() -> list[Any]:
    """Those of actions that nobody outside is called by: addresses in them are this machine's."""
    return [
        each
        for name, each in load_examples().items()
        if name not in ("login", "logout") and "http" not in json.dumps(each.request)
    ]


async def read_for(reader: asyncio.StreamReader, seconds: float) -> bytes:
    """What comes within so many seconds, or until the other side has ended."""
    found = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while data := await reader.read(1 << 16):
                found += data
    return bytes(found[: 1 << 20])
