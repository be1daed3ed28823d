"""Pages of a list of 100,000 terminals, through the running platform, on SQLite or on PostgreSQL.

``python benchmarks/lists.py [--terminals N] [--postgresql URL] [--repeats N] [--only TEXT]`` fills an empty database,
starts Terrazzo on it and asks for pages over HTTP: early and late, filtered and sorted, by a super user and a company
admin. Of the terminals' configurations nine in ten are confirmed, the others differ or were not reported.
Prints the median and the worst time of each, and the CPU time of the platform, which hardly suffers from neighbours.
``URL`` is of an empty PostgreSQL database; without it, SQLite.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import sqlalchemy as sa
from cpu_clock import cpu_seconds

from running import PASSWORD, Platform
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION
from terrazzo.metadata.definitions.registry import CONFIGURATION, TERMINAL

_CHUNK = 5_000
_LIKE = ["name", "like", "%0777%"]

REQUESTS: dict[str, dict[str, Any]] = {
    "first page of 20": {},
    "last page of 20": {"page_index": "last"},
    "first page of 100, order_by name": {"page_size": 100, "order_by": ["name", "asc"]},
    "last page of 20, order_by name desc": {"page_index": "last", "order_by": ["name", "desc"]},
    "name like %0777%": {"where_and": [_LIKE]},
    "name like %0777%, order_by name": {"where_and": [_LIKE], "order_by": ["name", "asc"]},
    "name like %a%, last page, order_by name": {
        "page_index": "last",
        "where_and": [["name", "like", "%a%"]],
        "order_by": ["name", "asc"],
    },
    "name like %a%": {"where_and": [["name", "like", "%a%"]]},
    "name like %a%, middle page, order_by name": {
        "page_index": 2_500,
        "where_and": [["name", "like", "%a%"]],
        "order_by": ["name", "asc"],
    },
    "type = Other, middle page": {"page_index": "half", "where_and": [["type", "=", "Other"]]},
    "order_by created desc, late page": {"page_index": "half", "order_by": ["created", "desc"]},
    "order_by last_modified, late page": {"page_index": "half", "order_by": ["last_modified", "asc"]},
    "page of 1,000 in the middle": {"page_index": 50, "page_size": 1000},
    "name like %a%, page of 1,000 in the middle, order_by name": {
        "page_index": 50,
        "page_size": 1000,
        "where_and": [["name", "like", "%a%"]],
        "order_by": ["name", "asc"],
    },
    "order_by username, middle page": {"page_index": 2_500, "order_by": ["username", "asc"]},
    "order_by activated (no index), middle page": {"page_index": 2_500, "order_by": ["activated", "asc"]},
    "configuration agrees, middle page": {"page_index": 2_500, "configuration": "agrees"},
    "configuration differs": {"configuration": "differs"},
    "configuration unreported, order_by name": {"configuration": "unreported", "order_by": ["name", "asc"]},
    "name or username like %77%": {"where_or": [["name", "like", "%77%"], ["username", "like", "%77%"]]},
}


def rows(start: int, company: int, config: int, pin: str) -> list[dict[str, Any]]:
    """Terminals as a fleet has them, every fourth of another type."""
    at = 1_700_000_000_000_000
    texts = {name: "" for name, field in TERMINAL.fields.items() if field.default == ""}
    return [
        texts
        | {name: field.default for name, field in TERMINAL.fields.items() if isinstance(field.default, int)}
        | {
            "uid": f"T{number:08}",
            "permission_company_id": company,
            "name": f"Pump station {number * 7919 % 1_000_000:06}",
            "type": "Other" if number % 4 == 0 else "Adapter-II",
            "config_id": config,
            "mode": "pwd",
            "username": f"u-{number}",
            "pin": pin,
            "access": "all",
            "topic": "all",
            "created": at + number,
            "last_modified": at + number * 7919 % 1_000_003,
        }
        for number in range(start, start + _CHUNK)
    ]


def states(company: int) -> sa.Insert:
    """How far each terminal is with its configuration."""
    columns, number = TERMINAL.table.c, TERMINAL.table.c.id % 20
    state = sa.case((number == 0, "differs"), (number == 1, "sent"), else_="confirmed")
    reported = sa.case((number == 1, sa.null()), else_=columns.last_modified)
    found = sa.select(
        columns.id, sa.literal(company), sa.literal("v"), state, columns.created, reported, sa.literal("[]")
    )
    names = ["terminal_id", "company_id", "version", "state", "since_us", "reported_us", "difference"]
    return TERMINAL_CONFIGURATION.insert().from_select(names, found)


async def fill(folder: Path, url: str, count: int, company: int) -> None:
    """Straight into the table: how fast records are made is measured elsewhere."""
    database = await Database.open(url, data_dir=folder, upgrade=False)
    pin = Secrets.open(folder).seal("pin-of-it", "terminal.pin")
    async with database.writing() as connection:
        query = sa.select(CONFIGURATION.table.c.id).where(CONFIGURATION.table.c.permission_company_id == company)
        config = (await connection.execute(query)).scalars().first()
        for start in range(0, count, _CHUNK):
            await connection.execute(TERMINAL.table.insert(), rows(start, company, int(config or 0), pin))
        await connection.execute(states(company))
    if url:  # PostgreSQL does it by itself a minute later
        async with database.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(sa.text("VACUUM ANALYZE"))
    await database.close()


class Client:
    """One kept connection, as a console has it."""

    def __init__(self, platform: Platform, username: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", platform.http)
        self._headers = {"Content-Type": "application/json"}
        token = self.ask("login", username=username, password=PASSWORD)["result"]["token"]
        self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, action: str, **fields: Any) -> Any:
        self._connection.request("POST", "/apiproxy/api", json.dumps({"action": action, **fields}), self._headers)
        return json.loads(self._connection.getresponse().read())


def measure(client: Client, request: dict[str, Any], total: int, repeats: int, pid: int) -> tuple[float, float, float]:
    """Median and worst of a page, and the CPU it costs, in ms."""
    before = cpu_seconds(pid)
    pages = -(-total // request.get("page_size", 20))
    index = {"last": pages, "half": pages // 8}.get(request.get("page_index", 1), request.get("page_index", 1))
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        answer = client.ask("get_terminal_list", **(request | {"page_index": index}))
        times.append((time.perf_counter() - started) * 1_000)
        if answer["code"] != 200 or not answer["result"]:
            raise SystemExit(f"{request}: {str(answer)[:300]}")
    cpu_ms = (cpu_seconds(pid) - before) / repeats * 1_000
    return statistics.median(times), max(times), cpu_ms


def run(name: str, url: str, arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder_name:
        data = Path(folder_name) / "data"
        environment = {"TERRAZZO_DATABASE__URL": url} if url else {}
        with Platform(data, env=environment) as platform:
            platform.login()
            platform.add_config()
            company = int(platform.call("get_user_item", uid="admin")["permission_company_id"])
            platform.call("create_user", username="fleet-admin", password=PASSWORD, role="admin")
        asyncio.run(fill(data, url, arguments.terminals, company))
        with platform.again() as again:
            clients = {"super": Client(again, "admin"), "admin": Client(again, "fleet-admin")}
            for title, request in REQUESTS.items():
                if arguments.only not in title:
                    continue
                for who, client in clients.items():
                    figures = measure(client, request, arguments.terminals, arguments.repeats, again.pid)
                    print(f"| {name} | {title} | {who} |", *(f"{each:.1f} |" for each in figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terminals", type=int, default=100_000)
    parser.add_argument("--postgresql", metavar="URL", default="")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="pages with this in their names")
    arguments = parser.parse_args()
    print("| database | page | who | median ms | worst ms | CPU ms |\n| --- | --- | --- | ---: | ---: | ---: |")
    if not arguments.postgresql:
        run("SQLite", "", arguments)
    else:
        run("PostgreSQL", arguments.postgresql, arguments)


if __name__ == "__main__":
    main()
